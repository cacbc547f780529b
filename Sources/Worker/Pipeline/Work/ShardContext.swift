// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import Kafka
import PushCore
import Redis
import Telemetry

/// Data shared by all components of a shard: its loop, its state in Redis, its metrics. Loop-bound.
final class ShardContext {
    let loop: Loop
    private(set) var limits: PipelineLimits
    let store: StateStore
    let log: Log
    let metrics: PipelineMetrics
    let traces: TracePlan
    /// The process's share of the events topic.
    let share: PartitionShare
    /// Of the process.
    let unread: UnreadPartitions
    let zones = SystemZones()
    let reader: EventReader
    let stateProgress: StateProgress
    /// Whether Redis accepts writes.
    let writes: RedisWrites
    /// Of the process.
    let unstoredChanges: UnstoredChanges
    let unstoredCounts: UnstoredCounts
    private let wallClock: WallClock
    private var clock: ShardClock
    /// Redis' clock at the last heartbeat.
    private var redisClock: ShardClock?
    var clockWatch = ClockWatch()
    let timers: Timers
    let statistics: Statistics
    /// Nil if waits are not measured.
    let waits: StageWaits?
    /// Of the process.
    let conversations: ConversationsInHand
    /// The dedup keys of the process; nil with one shard.
    let sharedKeys: SharedKeys?
    /// Names the process in the records that it parks.
    let processMark: String
    /// Redis may have older data of users than before (`DataAge`): no decision uses it.
    var isRedisBehind = false
    /// Keys of several users may be in one call. False for a cluster, where users have separate slots, and once a
    /// server refused it.
    private(set) var batchesAcrossUsers: Bool
    /// Called by `requestTurn`.
    var runTurn: () -> Void = {}
    private var isTurnDue = false
    private var mistakes = LogLimiter<String>()
    private var handoversSeen: UInt32 = 0
    private var handoverNanos: UInt64?
    private let retryPauses = Backoff(baseNanos: 50_000_000, capNanos: 3_200_000_000)
    var random: SmallRandom

    init(_ parts: PipelineParts) {
        loop = parts.loop
        limits = parts.limits
        store = parts.store
        batchesAcrossUsers = !parts.store.client.isCluster
        log = parts.log
        metrics = parts.metrics
        traces = parts.traces
        reader = EventReader(apps: parts.apps.map(\.id), zones: zones)
        stateProgress = parts.shared.stateProgress
        share = parts.shared.share
        unread = parts.shared.unread
        conversations = parts.shared.conversations
        sharedKeys = parts.shared.dedupKeys
        processMark = parts.shared.mark
        unstoredChanges = parts.shared.unstoredChanges
        unstoredCounts = parts.shared.unstoredCounts
        writes = RedisWrites(log: parts.log, counts: parts.shared.unstoredCounts)
        waits = parts.waits
        wallClock = parts.shared.wallClock
        clock = ShardClock(wallMs: parts.shared.wallClock.nowMs(on: parts.loop), nowNanos: parts.loop.nowNanos)
        parts.loop.unixOriginMs = clock.originMs
        timers = Timers(loop: parts.loop)
        statistics = Statistics(
            store: parts.store, days: parts.statisticsDays,
            owner: "\(parts.shared.mark)-\(parts.shardIndex)-\(parts.loop.makeSeed())",
            sessionMs: parts.sessionMs, lost: parts.metrics.statisticsLost)
        random = SmallRandom(seed: parts.loop.makeSeed())
        timers.didBecomeDue = { [unowned self] in requestTurn() }
    }

    /// Records of another app are read.
    ///
    /// - Parameter isShared: several apps share the work now.
    func add(app id: String, isShared: Bool) {
        reader.add(app: id)
        limits.isShared = isShared
    }

    /// A call with keys of several users was refused because of its form.
    func noteRefusedBatch(_ fault: RedisFault) {
        if fault.code != .crossSlot || !batchesAcrossUsers { return }
        batchesAcrossUsers = false
        log.info("Redis refuses keys of several users in one call: claims are sent one by one")
    }

    /// An answer, a timer or an end came for work that has ended or gone on. That is normal, and nothing follows.
    func noteLate() { metrics.lateEvents.add() }

    /// A state that cannot be: a mistake of this worker's own. A debug build stops; a release counts and logs it, and goes on.
    @inline(never)
    func mistake(_ what: StaticString) {
        metrics.internalErrors.add()
        if let suppressed = mistakes.admit("\(what)", nowNanos: nowNanos) {
            log.error(
                "met a state that cannot be",
                ["what": .string("\(what)"), "suppressed": .int(Int(clamping: suppressed))])
        }
        assertionFailure("\(what)")
    }

    /// Redis accepted a write.
    func noteWritten() {
        if writes.refusal != nil { writes.taken(nowNanos: nowNanos) }
    }

    /// Redis has stored everything that changes the user's badge, as far as this process can know: its number may be sent.
    func isBadgeExact(app: String, uid: String) -> Bool {
        unstoredCounts.isEmpty
            || unstoredCounts.isExact(UnstoredChanges.user(app, uid), isWhole: share.isWhole, nowNanos: nowNanos)
    }

    /// Redis' keys have been with the same processes for a while. Otherwise data that a process had not replicated when
    /// it died may be missing, until the workers have repeated it (`UserStates.serverMayHaveChanged`).
    var areKeysWhole: Bool {
        let handovers = store.client.handovers
        if handovers != handoversSeen {
            handoversSeen = handovers
            handoverNanos = nowNanos
        }
        guard let handoverNanos else { return true }
        return nowNanos &- handoverNanos > Self.handoverCareNanos
    }

    /// The present master of the user's keys; nil if it does not report one.
    func reign(of job: RecipientJob) -> Int64? {
        store.client.reign(ofTag: (app: job.event.app.id, uid: job.uid))
    }

    /// Retries of changes pause up to 3.2 s; a minute has room for a slow node.
    private static let handoverCareNanos: UInt64 = 60_000_000_000

    /// Makes the pipeline carry the trays at the end of this turn of the loop.
    func requestTurn() {
        if isTurnDue { return }
        isTurnDue = true
        loop.atEndOfTurn { [weak self] in
            self?.isTurnDue = false
            self?.runTurn()
        }
    }

    /// Attributes the following time to that stage, if stages are measured.
    @inline(__always)
    func enter(_ stage: StageClock.Stage) { loop.stageClock?.enter(stage) }

    /// The lifetime of common marks: as long as that of any member, which may be finished an hour later.
    func marksSeconds(_ subject: ClaimSubject) -> Int64 {
        let seconds = StateKeys.markSeconds(expireAtMs: subject.expireAtMs, nowMs: nowMs)
        return (traces.isOff ? seconds : max(seconds, traces.lifeSeconds)) + 3600
    }

    /// Since the original record's Kafka time; 0 where Kafka gave none, or one in the future.
    func latencyMs(sinceKafkaMs kafkaMs: Int64) -> Int64 { kafkaMs > 0 ? max(0, nowMs &- kafkaMs) : 0 }

    var nowNanos: UInt64 { loop.turnTimeNanos }
    /// Unix ms.
    var nowMs: Int64 { clock.ms(nowNanos: nowNanos) }

    /// Unix ms by Redis' clock, as far as it is known.
    var redisMs: Int64 { redisClock?.ms(nowNanos: nowNanos) ?? nowMs }

    /// The time, Unix ms, by which workers tell each other how long work waits: Redis' where the two clocks differ by more than an
    /// answer takes.
    var sharedMs: Int64 { (redisMs &- nowMs).magnitude > 1_000 ? redisMs : nowMs }

    func redisIsAt(ms: Int64) { redisClock = ShardClock(wallMs: ms, nowNanos: nowNanos) }

    /// Asks Redis when an operator accepted a loss of data last.
    func askAcceptance() { try? store.lossAccepted(tag: Tag(.none, .lossAccepted).bits) }

    /// Compares the wall clock with others, and goes by it unless it is wrong.
    func lookAtClock() -> ClockWatch.Verdict {
        let (wallMs, nowNanos) = (wallClock.nowMs(on: loop), nowNanos)
        let verdict = clockWatch.verdict(wallMs: wallMs, nowNanos: nowNanos)
        if verdict == .right || verdict == .off {
            clock.take(wallMs: wallMs, nowNanos: nowNanos)
            loop.unixOriginMs = clock.originMs
        }
        metrics.clock.set(clockWatch, wallMs: wallMs, nowNanos: nowNanos)
        return verdict
    }

    /// The reference from which the clock is furthest.
    var worstClock: (reference: ClockWatch.Reference, skewMs: Int64)? {
        clockWatch.worst(wallMs: wallClock.nowMs(on: loop), nowNanos: nowNanos)
    }

    /// Milliseconds of a clock that never jumps: delays in memory go by it.
    var steadyMs: Int64 { Int64(clamping: nowNanos / 1_000_000) }
    /// The moment of this clock at which a Unix time comes.
    func steadyMs(at unixMs: Int64) -> Int64 {
        let (leftMs, hasOverflowed) = unixMs.subtractingReportingOverflow(nowMs)
        return steadyMs &+ (hasOverflowed ? 0 : max(0, min(leftMs, 1 << 50)))
    }

    /// The latest time that the `sent_ms` of a record from there may name.
    func latestMs(_ source: EventSource) -> Int64 { EventReader.latestMs(kafkaMs: source.kafkaMs, nowMs: nowMs) }

    /// Reads the bytes of an event, the first time or once more.
    func read(event raw: [UInt8], _ source: EventSource) throws(BadRecord) -> Event {
        try reader.read(raw, of: .events, latestMs: latestMs(source))
    }

    func read(event bytes: UnsafeRawBufferPointer, _ source: EventSource) throws(BadRecord) -> Event {
        try reader.read(bytes, of: .events, latestMs: latestMs(source))
    }

    /// The recipients that an event names (`to.uids`); nil if it names none.
    func givenUIDs(_ raw: [UInt8], _ source: EventSource) -> [String]? {
        switch (try? read(event: raw, source))?.body {
        case .message(let message): message.value.to.uids
        case .liveActivity(let activity): activity.isForAllBound ? nil : activity.uids
        case .userState, nil: nil
        }
    }

    /// The conversation that gives the order of an event's records in `carillon.parked` (`EventJob.parkedConversation`).
    func parkedConversation(_ raw: [UInt8], _ source: EventSource) -> String? {
        switch (try? read(event: raw, source))?.body {
        case .message(let message): message.value.conversation.id
        case .liveActivity(let activity): activity.activityID
        case .userState, nil: nil
        }
    }

    /// When to retry a step that Redis could not answer: a jittered pause that doubles with each consecutive failure.
    func retryNanos(failures: Int) -> UInt64 {
        metrics.redisRetries.add()
        return loop.nowNanos &+ retryPauses.delayNanos(failures: failures, random: &random)
    }
}

/// The bounds of a pipeline.
struct PipelineLimits {
    /// Recipients in progress at one time, per shard.
    var recipientsMax = 20_000
    /// User-state records being applied at one time.
    var changesMax = 2_000
    /// Open Redis commands above which no records are read: about ten milliseconds of its work.
    var redisDepthMax = 512
    /// Open commands above which no recipients start: below the depth at which reading stops, so that records are read
    /// between a giant group's members.
    var redisDepthOfStarts: Int { redisDepthMax * 3 / 4 }
    /// A recipient's usual commands at one time: its reads, and then its claim.
    static let commandsPerStep = 3
    /// Pushes waiting for streams above which no records are read.
    var pushesAheadMax = 512
    /// Records taken from Kafka per turn of the loop.
    var pollBatch = 64
    /// Chunks of large groups taken per turn, each with up to a thousand members.
    var chunkBatch = 4
    /// Chunks with unstarted members above which no more are read.
    var openChunksMax = 8
    /// Events with an incompletely started audience above which no records are read.
    var expandingMax = 64
    /// Large groups that wait for their division above which no records are read: each has a page of its members in
    /// memory.
    var plannedMax = 1_024
    /// The shares of groups and chunks of the room for recipients.
    var lanes = LaneShares()
    /// A group with more members is divided into chunks.
    var directMax = 2_000
    /// Whether the header `traceparent` of events records is read (`kafka.traceparent`).
    var readsTraceparents = false
    /// The consumer group, for the log.
    var group = ""
    /// Members read per step of a group's scan.
    var memberPage = 256
    /// Claims in one call: it occupies Redis as long as some reads of a large hash.
    var claimsPerCall = 32
    /// Claims of revokes in one call: each may search a thousand messages of its user.
    var revokesPerCall = 4
    /// Targets in one record of `im.deliveries`.
    var deliveryTargetsMax = 500
    /// Time for pushes in flight to end before partitions go to another member.
    var revokeDrainNanos: UInt64 = 5_000_000_000
    /// Additional wait for an ack while user state lags.
    var ackGraceNanos: UInt64 = 30_000_000_000
    /// Maximum wait of events for the user state present at the assignment.
    var stateFirstNanos: UInt64 = 30_000_000_000
    var window = OffsetLedger.Limits()
    /// Offsets that a commit can name as settled (`SettledOffsets`): so far apart may unsettled records be where several apps share a
    /// partition.
    static let sharedSpan = 20_000
    /// Maximum of parked records without the broker's acknowledgement; above it no records are read. They are unsettled: if several
    /// apps share a partition, they must not fill its window, because a pause of a partition lasts seconds.
    var parkedPendingMax: Int { isShared ? min(4_096, max(16, window.records / 10)) : 4_096 }
    /// The unsettled records of a partition that several apps share out: without parked records on their way to the broker and one poll,
    /// below the point at which reading pauses. At least half of the records up to that point: a small window parks nothing without
    /// need.
    var sharedRecords: Int {
        let pause = window.records * window.pausePercent / 100
        return max(1, pause / 2, pause - parkedPendingMax - pollBatch)
    }
    /// A longer hold for a desktop is parked.
    var holdMs: Int64 = 3_000
    /// How long APNs must be away, or refuse the credential, before pushes are parked for it.
    var troubleNanos: UInt64 = 3_000_000_000
    /// How long a push waits in the client in this time, and for `limits.rate` in general.
    var patienceNanos: UInt64 = 5_000_000_000
    /// After this time, in ms, unsettled work has been pushed or parked: another worker may push later work.
    var outOfHandMs: Int64 { Int64(3 * patienceNanos / 1_000_000) }
    /// Pushes that wait in a client with a problem, to find out when it is over.
    var probesMax = 32
    /// Maximum parked records that begin per tenth of a second.
    var parkedPerLook = 256
    /// Several apps share the work.
    var isShared = false
}
