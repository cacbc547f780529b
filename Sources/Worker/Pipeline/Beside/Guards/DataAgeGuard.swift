// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Kafka
import PushCore
import Redis
import Telemetry

/// Beats in each server of Redis and says whether one returned with older data (`DataAge`). Then the pipeline uses nothing that
/// Redis says of users, reads no events, and applies user state since then again. After that, reading goes on.
final class DataAgeGuard {
    private let shard: ShardContext
    private let apps: AppTable
    private let fanOut: FanOut
    private let lookup: Lookup
    private let userStates: UserStates
    private let clock: ClockGuard
    private let tokenLoss: TokenLossGuard
    let otherGroup: OtherGroup
    private let intakes: [Intake]
    private let userState: Intake
    private var age: DataAge
    /// `token_loss: stop`.
    let stopsReading: Bool
    private let source: any StateReplaySource
    /// Applies user state again; nil if that is not in progress.
    private var replay: (any StateReplay)?
    /// Servers that have not answered the last beat.
    private var awaited: Set<Int> = []
    /// The last beat: its number, when it was sent (monotonic), and the offsets that it carries (`Intake.settledPlaces`).
    private var round: UInt32 = 0
    private var sentNanos: UInt64 = 0
    private var places: [Int32: Int64] = [:]
    /// The last beat carries the ends of these partitions; the ends of those were compared with the places since the assignment.
    private var comparedNext: Set<Int32> = []
    private var compared: Set<Int32> = []
    /// The last beat asks for evictions.
    private var looksAtEviction = false
    private var lines = LogLimiter<ReplayLine>()

    /// Log lines that a failing replay would repeat.
    private enum ReplayLine: Hashable { case failed }

    /// - Parameters:
    ///   - intakes: they do not read while Redis has older data.
    ///   - stopsReading: `token_loss: stop`.
    init(
        _ shard: ShardContext, _ apps: AppTable, fanOut: FanOut, lookup: Lookup, userStates: UserStates,
        clock: ClockGuard, tokenLoss: TokenLossGuard, _ intakes: [Intake], userState: Intake,
        source: any StateReplaySource, stopsReading: Bool
    ) {
        self.shard = shard
        self.apps = apps
        self.fanOut = fanOut
        self.lookup = lookup
        self.userStates = userStates
        self.clock = clock
        self.tokenLoss = tokenLoss
        otherGroup = OtherGroup(shard, intakes + [userState])
        self.intakes = intakes
        self.userState = userState
        self.source = source
        self.stopsReading = stopsReading
        age = DataAge(isCluster: shard.store.client.isCluster)
    }

    /// Ends a replay for good.
    func cancel() {
        replay?.cancel()
        replay = nil
    }

    // MARK: The heartbeat

    /// Beats in each server. Once a second, and whenever a link is ready: the answer to a link's first command comes before
    /// those to its reads.
    func beat() {
        if !shard.store.client.isReady { return }
        let servers = shard.store.client.tagNumbers(StateStore.serverWord)
        places = userState.settledPlaces
        let ends = userState.givenEnds(places.keys)
        comparedNext = Set(ends.keys)
        looksAtEviction = tokenLoss.looksAtEviction()
        awaited = Set(servers)
        round = (round &+ 1) & 0xFF_FFFF
        sentNanos = shard.nowNanos
        for var request in age.requests(servers, keys: tokenLoss.keysBefore) {
            request.looksAtEviction = looksAtEviction
            request.log = userState.logName
            request.offsets = places.merging(request.noted) { place, _ in place }
            // Above its end the log has begun again: reading shows that soon (`Intake.restart`), and nothing can be compared.
            request.ends = ends.filter { places[$0.key] ?? 0 <= $0.value }
            request.restarted = userState.restartedPlaces
            request.group = shard.limits.group
            try? shard.store.beat(request, nowMs: shard.nowMs, tag: beatTag(.beat, request.server))
        }
    }

    private func beatTag(_ question: Question, _ server: Int) -> UInt64 {
        Tag(WorkRef(slot: server, generation: round), question).bits
    }

    /// Once a second. User state is committed after the answers: every server has then noted the offsets that the commit settles,
    /// and the commit says so.
    func beatAndCommit() {
        let isLate = !awaited.isEmpty || !shard.store.client.isReady
        if isLate { userState.consumer.commitChanges() }
        beat()
    }

    /// The next owner of a partition compares the offset that a commit names, after a restart too.
    func compareCommitted() {
        var noted: [Int32: Int64] = [:]
        for (partition, offset) in userState.consumer.committedNotes where partition.topic == 0 {
            noted[partition.partition] = offset
        }
        age.learn(noted: noted, shard.store.client.tagNumbers(StateStore.serverWord))
        compared = []
        beat()
    }

    /// Whether the places of all its partitions were compared with the log's ends: until then one may be of another log. Ends that
    /// brokers have just given cause a beat at once.
    func hasComparedEnds() -> Bool {
        let missing = userState.settledPlaces.keys.filter { !compared.contains($0) }
        if missing.isEmpty { return true }
        if awaited.isEmpty, !userState.givenEnds(missing).isEmpty { beat() }
        return false
    }

    /// All servers have noted these offsets.
    private func didBeatEverywhere() {
        // The beats were writes.
        shard.noteWritten()
        userStates.retryRefused()
        fanOut.noteAgain()
        userState.restartedPlaces = []
        compared.formUnion(comparedNext)
        if looksAtEviction { tokenLoss.didLookEverywhere(sentNanos: sentNanos) }
        if !age.isBehind {
            for (partition, offset) in places {
                userState.consumer.commitNotes[TopicPartition(topic: 0, partition: partition)] = offset
            }
        }
        userState.consumer.commitChanges()
    }

    /// - Parameter round: of the beat, as its tag has it.
    func didBeat(_ ref: WorkRef, _ reply: borrowing RedisReply) {
        guard let beat = StateStore.Beat(reply) else {
            shard.log.warning("Redis answered a heartbeat with something else")
            return didFailToBeat(ref.slot, RedisFault(.protocolViolation))
        }
        let server = ref.slot
        let isLast = ref.generation == round
        otherGroup.didBeat(beat.otherGroup)
        let before = age.losses[server]
        age.didBeat(server, beat, compared: isLast)
        tokenLoss.didBeat(server, beat)
        clock.didBeat(server, beat, sentNanos: isLast ? sentNanos : nil)
        if let loss = beat.loss, loss.id != before?.id { didReturnOlder(server, loss) }
        applyAge()
        if isLast, awaited.remove(server) != nil, awaited.isEmpty { didBeatEverywhere() }
    }

    /// A replica takes no beat, and may be older than the master was.
    func didFailToBeat(_ server: Int, _ fault: RedisFault) {
        clock.didFailToBeat(server)
        if !fault.refusesWrite { return }
        compared.formUnion(comparedNext)
        try? shard.store.lookAtBeat(server: server, tag: beatTag(.beatLook, server))
    }

    func didLookAtBeat(_ server: Int, count: Int64?) {
        age.didLook(server, count: count)
        applyAge()
    }

    private func didReturnOlder(_ server: Int, _ loss: StateStore.Loss) {
        shard.metrics.rollbacks.add()
        let fields: KeyValuePairs<StaticString, LogValue> = [
            "server": .int(server), "data_of": .string(Self.timeText(loss)),
            "reading": .string(stopsReading ? "stopped" : "goes on"),
        ]
        if loss.isOfOtherLog {
            shard.log.error(
                "Redis has the user state of another Kafka cluster or topic: nothing is decided by it until all is applied again",
                fields)
        } else {
            shard.log.error(
                "Redis returned with older data: nothing is decided by it until user state since then is applied again",
                fields)
        }
        // The replay of an earlier loss began too late.
        cancel()
    }

    /// - Parameter atMs: when an operator accepted a loss, by the server's clock, Unix ms.
    func didReadAcceptance(_ atMs: Int64) {
        for (server, loss) in age.losses where atMs >= loss.noticedMs {
            try? shard.store.dropLoss(server: server, loss: loss.id, tag: Tag.noteBits)
        }
    }

    /// The time of the older data, for operators; nil: Redis has lost nothing.
    var olderText: String? {
        if !age.isBehind { return nil }
        return age.losses.values.min { $0.fromMs < $1.fromMs }.map(Self.timeText) ?? "an unknown time"
    }

    private static func timeText(_ loss: StateStore.Loss) -> String {
        let ms = loss.fromMs
        if loss.isOfOtherLog { return "another Kafka cluster or topic" }
        return ms > 0 ? Timestamp.text(seconds: ms / 1000, nanos: ms % 1000 * 1_000_000) : "an unknown time"
    }

    /// Stops or goes on if `age` has changed, and applies the partitions of this shard again.
    private func applyAge() {
        let isBehind = age.isBehind
        let stops = isBehind && stopsReading
        shard.metrics.olderData.set(isBehind ? 1 : 0)
        if stops != shard.isRedisBehind {
            shard.isRedisBehind = stops
            for intake in intakes { intake.block(.olderData, stops) }
            if !stops {
                lookup.readPostponed(evenIfEarly: true)
                shard.log.warning("Redis has its data again, or the loss was accepted: reading resumed")
            }
            shard.requestTurn()
        }
        if isBehind {
            shard.askAcceptance()
            startReplay()
        } else {
            cancel()
        }
    }

    // MARK: User state once more

    private func startReplay() {
        let starts = age.starts(userState.settledPlaces.keys)
        // By a clock that is not known to be right, newer stored times would lie in the future, and give way to older ones.
        guard replay == nil, !starts.isEmpty, !userState.isClosing, clock.verdict == .right || clock.verdict == .off
        else { return }
        let losses = age.losses
        shard.log.info("user state is applied again", ["partitions": .int(starts.count)])
        let partitions = starts.keys.sorted()
        // It is called on the loop, and not after `cancel`.
        nonisolated(unsafe) let guardian = self
        let replay = source.makeReplay(shard.loop) { guardian.take($0, of: losses, partitions) }
        self.replay = replay
        userStates.didMakeAgain = { [unowned self] in self.replay?.goOn() }
        replay.start(from: starts)
    }

    private func take(_ step: StateReplayStep, of losses: [Int: StateStore.Loss], _ partitions: [Int32]) {
        switch step {
        case .records(let records): applyAgain(records)
        case .ended(let partitionCount):
            replay = nil
            for (server, loss) in losses.sorted(by: { $0.key < $1.key }) {
                try? shard.store.endReplay(
                    server: server, loss: loss.id, partitions: partitions, total: partitionCount,
                    tag: beatTag(.endReplay, server))
            }
            beat()
        case .failed(let why):
            // The next beat begins it again.
            replay = nil
            guard let suppressed = lines.admit(.failed, nowNanos: shard.nowNanos) else { return }
            shard.log.warning(
                "user state cannot be read again yet",
                ["why": .string(why), "suppressed": .int(Int(clamping: suppressed))])
        }
    }

    private func applyAgain(_ records: [StateReplayRecord]) {
        for record in records {
            // A bad record went to the dead-letter topic when it was read first.
            let latestMs = EventReader.latestMs(kafkaMs: record.kafkaMs, nowMs: shard.nowMs)
            let event = try? shard.reader.read(record.value, of: .userState, latestMs: latestMs)
            guard let event, case .userState(let state) = event.body, let app = apps[event.app] else { continue }
            userStates.applyAgain(state, of: event, app: app)
            shard.metrics.replayed.add()
        }
        if !userStates.beginAgain() { replay?.goOn() }
    }
}
