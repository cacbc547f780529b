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

    // MARK: Records
    // Records in: each is tracked in the offset ledger, checked, and read.

    func receive(_ record: borrowing KafkaRecord) {
        // Left over from before the end: the next owner reads it again.
        if isClosing { return }
        let inputClass = classes[record.partition.topic]
        if record.hasOddTime { noteOddTime(record.partition.topic) }
        let time = record.timestamp
        if let time, time.isAppendTime { shard.clockWatch.appended(ms: time.ms, nowNanos: shard.nowNanos) }
        let receipt = ledgers.with(inputClass) { ledger in
            ledger.receive(
                record.partition, offset: record.offset, bytes: record.byteCount, nowNanos: shard.nowNanos,
                timeMs: time?.ms)
        }
        if receipt == .settledBefore {
            shard.metrics.settledBefore.add()
            // It takes a place in the window behind an older record.
            relieve(record.partition)
        }
        if receipt == .otherEpoch { consumer.rewind(record.partition) }
        guard case .tracked(let slot) = receipt else { return }
        let partition = record.partition.partition
        let isCounted = shard.statistics.isCounted(
            CountedPlace(inputClass, partition), offset: record.offset, timeMs: time?.ms)
        let place = RecordPlace(
            slot, inputClass, name: RecordPlace.name(inputClass, partition, record.offset), isCounted: isCounted)
        if !inputClass.isOurs { shard.metrics.recordsConsumed.add() }
        relieve(record.partition)
        let origin = EventJob.Origin(
            partition: record.partition, place: place,
            source: EventSource(
                partition: record.partition.partition, offset: record.offset, kafkaMs: time?.ms ?? 0,
                traceparent: shard.limits.readsTraceparents && inputClass == .events ? traceparent(of: record) : nil))
        guard let value = record.value else {
            return reject(BadRecord(.empty, "the record is null"), key: record.key, value: nil, origin)
        }
        if inputClass == .events, value.count <= EventReader.checkedBytesMax {
            shard.reader.check(value, place: checked.count)
            checked.append(value, key: record.key, origin)
            if checked.count == EventReader.checkedMax { readChecked() }
            return
        }
        // In the order of the topic.
        readChecked()
        do throws(BadRecord) {
            received.append(try read(value, key: record.key, of: inputClass, origin))
        } catch {
            reject(error, key: record.key, value: value, origin)
        }
    }

    /// Nil for a record without the header. One that is malformed is counted.
    private func traceparent(of record: borrowing KafkaRecord) -> Traceparent? {
        guard let text = record.header(Traceparent.header) else { return nil }
        let read = Traceparent(text)
        if read == nil { shard.metrics.malformedTraceparents.add() }
        return read
    }

    /// Reads the records that are only checked yet.
    private func readChecked() {
        checked.takeAll { (place, value, key, origin) in
            do throws(BadRecord) {
                let event = try shard.reader.read(
                    value, place: place, of: .events, latestMs: shard.latestMs(origin.source))
                received.append(keep(event, value, key: key, origin))
            } catch {
                reject(error, key: key, value: value, origin)
            }
        }
    }

    private func keep(
        _ event: Event, _ value: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer?, _ origin: EventJob.Origin
    ) -> ReceivedRecord {
        if event.hasUnusualKey(key) { shard.metrics.unusualKey(.events) }
        if shard.reader.hadUnknownFields { shard.metrics.unknownFields(.events, app: event.app) }
        // The brokers may refuse to let a scheduled message wait.
        let kept = event.sentMs > shard.nowMs ? key.map { Array($0) } : nil
        return ReceivedRecord(content: .event(event, raw: Array(value)), origin: origin, key: kept)
    }

    private func read(
        _ value: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer?, of inputClass: InputClass,
        _ origin: EventJob.Origin
    ) throws(BadRecord) -> ReceivedRecord {
        switch inputClass {
        case .events:
            return keep(try shard.read(event: value, origin.source), value, key: key, origin)
        case .userState:
            let event = try shard.reader.read(value, of: .userState, latestMs: shard.latestMs(origin.source))
            if event.hasUnusualKey(key) { shard.metrics.unusualKey(inputClass) }
            if shard.reader.hadUnknownFields { shard.metrics.unknownFields(inputClass, app: event.app) }
            guard event.mayBeRefused else { return ReceivedRecord(content: .event(event, raw: []), origin: origin) }
            return ReceivedRecord(
                content: .event(event, raw: Array(value)), origin: origin, key: key.map { Array($0) })
        case .chunks:
            guard let chunk = ChunkRecord(value) else {
                throw BadRecord(.unknownKind, "not a group chunk of this version")
            }
            let event = try shard.read(event: chunk.raw, chunk.source)
            return ReceivedRecord(content: .chunk(chunk, event), origin: origin)
        case .parked:
            switch Deferred.read(value, uids: { [shard] in shard.givenUIDs($0, $1) }) {
            case .work(let work): return ReceivedRecord(content: .parked(work), origin: origin)
            case .marks(let marks): return ReceivedRecord(content: .owed(marks.claims), origin: origin)
            case .unknown: return ReceivedRecord(content: .unknown, origin: origin)
            case .other: break
            }
            if let earlier = ParkedRecord(earlier: value, conversation: { [shard] in shard.parkedConversation($0, $1) })
            {
                return ReceivedRecord(content: .parked(Deferred([earlier])), origin: origin)
            }
            guard let owed = EarlierOwedClaim.read(value) else {
                throw BadRecord(.unknownKind, "not a parked record of this version")
            }
            return ReceivedRecord(content: .owed([owed]), origin: origin)
        }
    }

    func topic(of partition: TopicPartition) -> String { consumer.topics[partition.topic] }

    private func reject(
        _ why: BadRecord, key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, _ origin: EventJob.Origin
    ) {
        rejected.append(
            RejectedRecord(
                why: why, origin: origin, topic: topic(of: origin.partition), offset: origin.source.offset,
                key: key.map { Array($0) }, value: value.map { Array($0) }))
    }

    // MARK: Status
    // The topics and partitions of a consumer, with its progress in numbers.

    /// Its partitions of the input topics; the worker's own topics do not count.
    var assignedCount: Int { consumer.assignment.reduce(0) { classes[$1.topic].isOurs ? $0 : $0 + 1 } }

    /// Its topics, if the group has never assigned them; some groups do not report an empty assignment.
    var awaitedTopics: [String] { isAssigned || !consumer.isToldOfEmptyShares ? [] : consumer.topics }

    /// The state of each partition that it reads, except those of `carillon.parked`.
    var partitionStatuses: [ShardStatus.Partition] {
        consumer.assignment.filter { !ledgers.isParked($0) }.map { partition in
            let age = ledgers.main.oldestUnsettledAgeNanos(in: partition, nowNanos: shard.nowNanos)
            let read = consumer.position(partition)
            let settled = ledgers.main.settledEnd(partition) ?? read
            let end = consumer.highWatermark(partition)
            return ShardStatus.Partition(
                topic: consumer.topics[partition.topic], partition: partition.partition,
                unsettled: ledgers.main.unsettled(in: partition),
                oldestSeconds: age.map { Double($0) / 1e9 }, settledTo: settled, readTo: read,
                lag: end.flatMap { end in settled.map { max(0, end - $0) } },
                isPaused: consumer.paused.contains(partition))
        }
    }

    /// By partition of its first topic: all before this offset is settled.
    var settledPlaces: [Int32: Int64] {
        var places: [Int32: Int64] = [:]
        for partition in consumer.assignment where partition.topic == 0 {
            places[partition.partition] = ledgers.main.settledEnd(partition) ?? consumer.position(partition)
        }
        return places
    }

    /// The ends of these partitions of its first topic, as far as brokers gave them.
    func givenEnds(_ partitions: some Sequence<Int32>) -> [Int32: Int64] {
        var ends: [Int32: Int64] = [:]
        for partition in partitions {
            ends[partition] = consumer.givenEnd(TopicPartition(topic: 0, partition: partition))
        }
        return ends
    }

    /// The log that offsets of its first topic belong to; empty: no broker has said which cluster it is.
    var logName: String { consumer.clusterID.map { "\($0)/\(consumer.topics[0])" } ?? "" }

    /// The number of `partitionStatuses`.
    var readPartitions: Int { consumer.assignment.reduce(0) { ledgers.isParked($1) ? $0 : $0 + 1 } }

    /// Those of them that are paused now.
    var pausedCount: Int { consumer.paused.reduce(0) { classes[$1.topic].isOurs ? $0 : $0 + 1 } }

    /// Partitions of `carillon.parked` with a full window.
    var fullParkedPartitions: Set<TopicPartition> { fullPartitions.filter { ledgers.isParked($0) } }

    /// Partitions with a full window.
    var fullPartitions: Set<TopicPartition> { ledgers.fullPartitions }

    /// The present ends of the input topics' partitions; nil if the broker has not reported them.
    func knownEnds() -> [TopicPartition: Int64]? { consumer.knownEnds()?.filter { !ledgers.isParked($0.key) } }

    /// Topics that the brokers do not let it read, in words.
    var unreadableTopics: [String] { refusals.texts(consumer.topics) }

    /// What an operator is to know, in words.
    var noteTexts: [String] {
        notes.texts(consumer.topics, group: shard.limits.group, nowNanos: shard.nowNanos)
    }

    /// Topics of which a partition began again at a lower offset lately.
    var restartedTopicNames: [String] { restarts.topics(nowNanos: shard.nowNanos).map { consumer.topics[$0] } }

    /// Compares the group's partitions with the brokers' at intervals, for the whole process.
    func watchShares(of topics: [String]) {
        guard isAssigned, shard.unread.beginAsking(nowNanos: shard.nowNanos) else { return }
        consumer.askShares(of: topics) { [unread = shard.unread] in unread.learn($0) }
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

/// A record that was read.
struct ReceivedRecord {
    enum Content {
        /// With the record's bytes; empty for a change of a user's state that no stored value makes wrong.
        case event(Event, raw: [UInt8])
        /// Of one event.
        case owed([OwedClaim])
        case parked(Deferred)
        /// Deferred work of a later version: it stays in the topic for a worker that knows it.
        case unknown
        case chunk(ChunkRecord, Event)
    }

    let content: Content
    let origin: EventJob.Origin
    /// The record's key, if the record may be refused later.
    var key: [UInt8]?
}

extension Event {
    /// The stored settings decide whether the record is bad: the dead-letter topic then needs its key and bytes.
    fileprivate var mayBeRefused: Bool {
        guard case .userState(let state) = body, case .settings(let change) = state.change else { return false }
        return change.touchesWindow
    }
}

/// A bad record for the dead-letter topic.
struct RejectedRecord {
    let why: BadRecord
    let origin: EventJob.Origin
    let topic: String
    let offset: Int64
    let key: [UInt8]?
    let value: [UInt8]?
}
