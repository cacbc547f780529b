// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Kafka
import PushCore
import Telemetry

/// One consumer of a shard with its offset ledger: records in, offsets out, pauses, and rebalances.
///
/// A shard has three: for events, for user state, which pushes never hold back, and for large groups' chunks, which
/// hold back no other events. Read records are in `received`, bad ones in `rejected`.
final class Intake {
    let received = Tray<ReceivedRecord>()
    let rejected = Tray<RejectedRecord>()
    var checked = CheckedRecords()
    let consumer: KafkaConsumer
    /// The class of each of the consumer's topics.
    let classes: [InputClass]
    let shard: ShardContext
    /// Records taken per turn of the loop.
    private let batch: Int
    var ledgers: InputLedgers
    private var gate = ReadingGate()
    private var lags = TopicLags()
    private let brokers: BrokerMetrics
    /// By librdkafka's code.
    private var errorLines = LogLimiter<Int32>()
    private var brokerStates = BrokerStates()
    private(set) var restarts = PartitionRestarts()
    private(set) var refusals = TopicRefusals()
    private(set) var notes = IntakeNotes()
    /// Partitions with records of a later version that this one leaves unsettled.
    private var holding: Set<TopicPartition> = []
    /// Reasons why none of its partitions is read.
    private var blocks: Set<Block> = []
    private(set) var revocation: Revocation?
    /// The group has assigned partitions, or none, at least once.
    private(set) var isAssigned = false
    private var watcher: FDWatcher?
    private weak var owner: (any IntakeOwner)?

    /// Reasons to stop reading other than a lack of room.
    enum Block {
        /// The process ends.
        case closing
        /// Redis accepts no writes, and many changes wait for it.
        case redisRefusesWrites
        /// The user state present at the assignment comes first.
        case stateFirst
        /// Redis seems to have lost its tokens.
        case tokenLoss
        /// The worker's clock is wrong, or nobody has said the time yet.
        case clock
        /// Redis has older data than before.
        case olderData
        /// It is not known yet which records an earlier owner counted.
        case statistics
        /// The brokers let the producers write nothing, so no outcome could be recorded.
        case denied
        /// Workers of another group use the same Redis.
        case otherGroup
    }

    /// Partitions being revoked, and the deadline for their pushes in flight.
    struct Revocation {
        var partitions: Set<TopicPartition>
        var deadlineNanos: UInt64
        /// A part of their work has ended since the last check.
        var hasChanged = false
    }

    init(_ shard: ShardContext, consumer: KafkaConsumer, classes: [InputClass], batch: Int) {
        self.shard = shard
        self.consumer = consumer
        self.classes = classes
        self.batch = batch
        brokers = shard.metrics.brokers()
        ledgers = InputLedgers(classes, limits: shard.limits.window)
        for (topic, inputClass) in zip(consumer.topics, classes) where !inputClass.isOurs {
            shard.metrics.kafka.begin(topic)
        }
    }

    func start(owner: any IntakeOwner) throws(LoopFault) {
        self.owner = owner
        consumer.delegate = self
        watcher = try FDWatcher(loop: shard.loop, fd: consumer.wakeFD) { [unowned self] in
            self.owner?.intakeIsReadable(self)
        }
    }

    func cancel() { watcher?.cancel() }

    /// This shard's partitions in the process's share.
    private var sharedCount = 0

    /// Reports the number of assigned partitions, and requests the total number if it is unknown.
    ///
    /// - Parameter topics: the topics that count for the process's share.
    func noteShare(of topics: [String]) {
        let count = consumer.assignment.count
        shard.share.add(count - sharedCount)
        sharedCount = count
        if !shard.share.beginAsking() { return }
        consumer.countPartitions(of: topics) { [share = shard.share] in share.learn($0) }
    }

    // MARK: Reading

    /// Reading has stopped for lack of room.
    var isHeld: Bool { gate.isHeld }

    var isClosing: Bool { blocks.contains(.closing) }

    /// Takes one batch. The rest waits until the answers to earlier records are handled.
    func poll(hasRoom: Bool) {
        guard isClosing || gate.admitRecords(hasRoom: hasRoom, nowNanos: shard.nowNanos) else {
            // Its descriptor remains readable and would call again at once.
            watcher?.suspend()
            return
        }
        consumer.poll(max: batch)
        readChecked()
        if !received.isEmpty || !rejected.isEmpty { shard.requestTurn() }
    }

    /// Work ended: resumes reading if it had stopped for lack of room.
    func pollIfReady(hasRoom: Bool) {
        if gate.isHeld { perform(gate.roomFreed(hasRoom: hasRoom), hasRoom) }
    }

    /// Once a second.
    ///
    /// - Parameter commits: whether to commit settled offsets now.
    func tick(hasRoom: Bool, commits: Bool = true) {
        perform(gate.tick(hasRoom: hasRoom, nowNanos: shard.nowNanos), hasRoom)
        for partition in fullPartitions { relieve(partition) }
        consumer.passEmptyOffsets()
        if commits { consumer.commitChanges() }
        consumer.watchLag()
        lags.measure(consumer, classes, shard.metrics, nowMs: shard.nowMs)
        completeRevocationIfOver()
    }

    private func perform(_ action: ReadingGate.Action, _ hasRoom: Bool) {
        switch action {
        case .none: return
        case .poll: break
        case .pauseAndPoll:
            applyPauses()
            shard.log.warning("intake paused: a bound is reached")
        case .resumeAndPoll:
            applyPauses()
            shard.log.info("intake resumed")
        }
        watcher?.resume()
        poll(hasRoom: hasRoom)
    }

    /// Adds or removes a reason to stop reading.
    func block(_ block: Block, _ isBlocked: Bool) {
        let hasChanged = isBlocked ? blocks.insert(block).inserted : blocks.remove(block) != nil
        if hasChanged { applyPauses() }
    }

    /// Stops reading. Work in progress may be settled and committed. Records that were read and not begun are left to
    /// the next owner.
    func close() {
        checked.removeAll()
        received.removeAll { _ in true }
        rejected.removeAll { _ in true }
        block(.closing, true)
        watcher?.resume()
    }

    /// Leaves the group. The owner receives `closed`.
    func leaveGroup() {
        if consumer.isClosed { return }
        consumer.beginClose()
        watcher?.resume()
    }

    /// The only place that decides which partitions are paused, for any reason.
    private func applyPauses() {
        let isNothingRead = gate.isPaused || !blocks.isEmpty
        let paused = isNothingRead ? consumer.assignment : fullPartitions
        consumer.resume(consumer.paused.subtracting(paused))
        consumer.pause(paused)
    }

    // MARK: Settling

    /// Records read and not settled.
    var unsettledCount: Int { ledgers.unsettledCount }
    var unsettledBytes: Int { ledgers.unsettledBytes }

    /// Nil if everything is settled.
    var oldestUnsettledNanos: UInt64? { ledgers.main.oldestUnsettledAgeNanos(nowNanos: shard.nowNanos) }

    /// - Returns: whether everything before these offsets is read and settled, or now belongs to another member.
    func hasSettled(_ ends: [TopicPartition: Int64]) -> Bool {
        consumer.hasReached(ends)
            && ends.allSatisfy { partition, end in
                ledgers.main.unsettled(in: partition) == 0 || (ledgers.main.next(partition) ?? 0) >= end
            }
    }

    func settle(_ place: RecordPlace) {
        settle(place, RecordCounts(), 0)
    }

    /// - Parameters:
    ///   - counted: the record's outcomes, which count from now on.
    ///   - partition: the record's.
    func settle(_ place: RecordPlace, _ counted: borrowing RecordCounts, _ partition: Int32) {
        let settlement = ledgers.with(place.inputClass) { $0.settle(place.slot) }
        // From before a revocation: the next owner settles it, and a record counts once.
        if settlement != .stale {
            shard.metrics.settled(place.inputClass)
            if !place.isCounted {
                shard.statistics.settled(counted, at: CountedPlace(place.inputClass, partition))
            }
        }
        if case .advanced(let partition, _) = settlement { relieve(partition) }
    }

    /// The settled records of a partition.
    func progress(of partition: TopicPartition) -> PartitionOffset? {
        ledgers.with(partition) { $0.progress(of: partition) }
    }

    func newestMs(_ partition: TopicPartition) -> Int64? { ledgers.with(partition) { $0.newestMs(partition) } }

    func countedPlace(_ partition: TopicPartition) -> CountedPlace {
        CountedPlace(classes[partition.topic], partition.partition)
    }

    func reads(_ place: CountedPlace) -> Bool { classes.contains { $0 == place.inputClass } }

    /// A partition with a full window is not read until half of it is settled.
    func relieve(_ partition: TopicPartition) {
        if ledgers.relieve(partition, of: consumer.assignment, nowNanos: shard.nowNanos) { applyPauses() }
    }

    /// The record's time is not in milliseconds.
    func noteOddTime(_ topic: Int) {
        shard.metrics.kafka.oddTime(consumer.topics[topic])
        notes.noteOddTime(topic, nowNanos: shard.nowNanos)
    }

    /// A record of the partition is of a later version: it stays unsettled for a worker that knows it.
    func hold(_ partition: TopicPartition) { holding.insert(partition) }

    /// Topics with records of a later version that wait.
    var heldTopics: [String] { Set(holding.map(\.topic)).sorted().map { consumer.topics[$0] } }

    // MARK: Epochs of a partition

    /// Partitions of the first topic that began again, before a heartbeat has lowered their places.
    var restartedPlaces: Set<Int32> {
        get { restarts.places }
        set { restarts.places = newValue }
    }

    /// A new epoch of the partition: unfinished records of the earlier one end as usual, and settle nothing here.
    private func restart(_ partition: TopicPartition, due: Int64, at offset: Int64) {
        ledgers.assign(partition, nowNanos: shard.nowNanos)
        shard.statistics.restarted(countedPlace(partition))
        applyPauses()
        restarts.note(partition, nowNanos: shard.nowNanos)
        shard.metrics.partitionRestarts.add()
        shard.log.error(
            "a partition began again at a lower offset: its topic was created again or its log was cut, and all of it is read",
            [
                "topic": .string(consumer.topics[partition.topic]), "partition": .int(Int(partition.partition)),
                "due_offset": .int(Int(clamping: due)), "offset": .int(Int(clamping: offset)),
            ])
        owner?.intakeDidRestart(self)
    }

    // MARK: Rebalances

    /// A part of its partitions' work has ended. The end of the turn checks the open work once (`endRevocation`): a turn
    /// may have thousands of ends, and a check after each would be quadratic.
    func mayEndRevocation() {
        if revocation == nil { return }
        revocation?.hasChanged = true
        shard.requestTurn()
    }

    /// At the end of a turn.
    func endRevocation() {
        if revocation?.hasChanged ?? false { completeRevocationIfOver() }
    }

    /// Completes a deferred revocation when nothing of its partitions is in flight, or at its deadline.
    private func completeRevocationIfOver() {
        guard let revocation else { return }
        self.revocation?.hasChanged = false
        let isOver = revocation.deadlineNanos <= shard.nowNanos
        guard isOver || !(owner?.intake(self, hasWorkOf: revocation.partitions) ?? false) else { return }
        self.revocation = nil
        consumer.completeRevocation()
    }
}

extension Intake: KafkaConsumerDelegate {
    func kafka(_ consumer: KafkaConsumer, didReceive record: borrowing KafkaRecord) { receive(record) }

    func kafka(_ consumer: KafkaConsumer, progressOf partition: TopicPartition) -> PartitionOffset? {
        let live = progress(of: partition)
        // While Redis takes no writes, only committed offsets keep a crash from repeating pushes.
        if shard.writes.refusesSome(nowNanos: shard.nowNanos) { return live }
        return shard.statistics.committable(countedPlace(partition), live, nowNanos: shard.nowNanos)
    }

    func kafka(
        _ consumer: KafkaConsumer, willRevoke partitions: [TopicPartition], lost: Bool
    ) -> KafkaRevocation {
        shard.metrics.rebalances.add()
        if lost { shard.metrics.assignmentsLost.add() }
        let going = Set(partitions)
        readChecked()
        received.removeAll { going.contains($0.origin.partition) }
        rejected.removeAll { going.contains($0.origin.partition) }
        owner?.intake(self, handBack: going, isLost: lost)
        if lost { partitions.forEach { shard.statistics.end(countedPlace($0), nowNanos: shard.nowNanos) } }
        guard !lost, owner?.intake(self, hasWorkOf: going) ?? false else { return .complete }
        // A push on a stream may end and be marked; otherwise the next owner would push it again.
        revocation = Revocation(
            partitions: going, deadlineNanos: shard.nowNanos &+ shard.limits.revokeDrainNanos)
        return .deferred
    }

    func kafka(_ consumer: KafkaConsumer, didLearnCommitted offsets: [PartitionOffset]) {
        for one in offsets {
            ledgers.with(one.partition) { ledger in
                ledger.noteCommitted(one.partition, offset: one.offset, settled: one.settled)
            }
        }
        owner?.intakeDidLearnCommitted(self)
    }

    func kafka(_ consumer: KafkaConsumer, didMeet event: KafkaConsumerEvent) {
        switch event {
        case .assigned(let partitions):
            isAssigned = true
            refusals.assigned(partitions)
            for partition in partitions { ledgers.assign(partition, nowNanos: shard.nowNanos) }
            let counted = partitions.map { (countedPlace($0), $0, topic(of: $0)) }
            if shard.statistics.begin(counted) { block(.statistics, true) }
            applyPauses()
            owner?.intakeDidAssign(self)
            shard.log.info(
                "partitions assigned", ["topic": .string(consumer.topics[0]), "count": .int(partitions.count)])
        case .revoked(let partitions, let lost):
            revocation = nil
            for partition in partitions {
                holding.remove(partition)
                ledgers.revoke(partition)
                shard.statistics.end(countedPlace(partition), nowNanos: shard.nowNanos)
            }
            owner?.intakeDidAssign(self)
            shard.log.info(
                "partitions revoked",
                ["topic": .string(consumer.topics[0]), "count": .int(partitions.count), "lost": .bool(lost)])
        case .restarted(let partition, let due, let offset): restart(partition, due: due, at: offset)
        case .committed(_, let error):
            notes.noteCommit(error, nowNanos: shard.nowNanos)
            if let error {
                shard.metrics.commitFailures.add()
                shard.metrics.kafka.failed(error)
                log("the group refused a commit", error)
            } else {
                shard.metrics.commits.add()
            }
            owner?.intakeDidCommit(self)
        case .passed(let partition, let start, let offset):
            ledgers.with(partition) { $0.pass(partition, from: start, to: offset) }
        case .failed(let error, let partition):
            shard.metrics.kafka.failed(error)
            refusals.note(error, partition, topics: consumer.topics)
            log("Kafka reported an error", error)
        case .unanswered(let error):
            shard.metrics.kafka.failed(error)
        case .fatal(let error):
            shard.metrics.kafka.failed(error)
            shard.log.error(
                "the Kafka client failed permanently", ["error": .string(error.name), "text": .string(error.text)])
            owner?.intakeDidMeetFatalError(self)
        case .closed:
            owner?.intakeDidClose(self)
        }
    }

    /// A condition that each start of a group has is no warning.
    private func log(_ message: StaticString, _ error: KafkaError) {
        guard let suppressed = errorLines.admit(error.code, nowNanos: shard.nowNanos) else { return }
        let fields: KeyValuePairs<StaticString, LogValue> = [
            "error": .string(error.name), "text": .string(error.text),
            "topics": .string(consumer.topics.joined(separator: ", ")), "group": .string(shard.limits.group),
            "suppressed": .int(Int(clamping: suppressed)),
        ]
        if error.isUsualInGroups { shard.log.info(message, fields) } else { shard.log.warning(message, fields) }
    }

    func kafka(_ consumer: KafkaConsumer, didReceiveStatistics json: UnsafeRawBufferPointer) {
        for (id, isUp) in brokerStates.read(json) { brokers.set(id, isUp: isUp) }
    }
}
