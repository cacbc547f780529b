import APNs
import EventLoop
import Kafka
import PushCore
import Redis
import Telemetry

/// What all components of a shard share: its loop, its state in Redis, its numbers. Loop-bound.
final class ShardContext {
    let loop: Loop
    private(set) var limits: PipelineLimits
    let store: StateStore
    let log: Log
    let metrics: PipelineMetrics
    let traces: TracePlan
    /// How much of the events topic the process reads.
    let share: PartitionShare
    let zones = SystemZones()
    let reader: EventReader
    let stateProgress: StateProgress
    /// Whether Redis takes writes.
    let writes: RedisWrites
    private let wallClock: WallClock
    private var clock: ShardClock
    var clockWatch = ClockWatch()
    let timers: Timers
    /// Nil: nobody asks.
    let waits: StageWaits?
    /// Of the process.
    let conversations: ConversationsInHand
    /// Names the process in the records that it parks.
    let processMark: String
    /// Redis may have older data of users than before (`DataAge`): no decision uses it.
    var isRedisBehind = false
    /// Keys of several users may be in one call. False for a cluster, whose users have slots of their own, and once a server
    /// refused to take them.
    private(set) var asksTogether: Bool
    /// What `requestTurn` asks for.
    var runTurn: () -> Void = {}
    private var isTurnDue = false
    private var handoversSeen: UInt32 = 0
    private var handoverNanos: UInt64?
    private let retryPauses = Backoff(baseNanos: 50_000_000, capNanos: 3_200_000_000)
    private var random: SmallRandom

    init(_ parts: PipelineParts) {
        loop = parts.loop
        limits = parts.limits
        store = parts.store
        asksTogether = !parts.store.client.isCluster
        log = parts.log
        metrics = parts.metrics
        traces = parts.traces
        reader = EventReader(apps: parts.apps.map(\.id), zones: zones)
        stateProgress = parts.shared.stateProgress
        share = parts.shared.share
        conversations = parts.shared.conversations
        processMark = parts.shared.mark
        writes = RedisWrites(log: parts.log)
        waits = parts.waits
        wallClock = parts.shared.wallClock
        clock = ShardClock(wallMs: parts.shared.wallClock.nowMs, nowNanos: parts.loop.nowNanos)
        timers = Timers(loop: parts.loop)
        random = SmallRandom(seed: .random(in: 0 ... .max))
        timers.didBecomeDue = { [unowned self] in requestTurn() }
    }

    /// Records of one more app are read.
    ///
    /// - Parameter isShared: several apps share the work in hand now.
    func add(app id: String, isShared: Bool) {
        reader.add(app: id)
        limits.isShared = isShared
    }

    /// A call with keys of several users was refused for how it was made.
    func noteRefusedTogether(_ fault: RedisFault) {
        guard fault.code == .crossSlot, asksTogether else { return }
        asksTogether = false
        log.info("Redis takes no keys of several users in one call: claims go one by one")
    }

    /// Redis' keys have been with the same processes for a while. Otherwise what a process had not copied when it died may be
    /// missing, until the workers have made it once more (`UserStates.serverMayHaveChanged`).
    var areKeysWhole: Bool {
        let handovers = store.client.handovers
        if handovers != handoversSeen {
            handoversSeen = handovers
            handoverNanos = nowNanos
        }
        guard let handoverNanos else { return true }
        return nowNanos &- handoverNanos > Self.handoverCareNanos
    }

    /// The master of the user's keys, as it is now; nil: it does not tell.
    func reign(of job: RecipientJob) -> Int64? {
        store.client.reign(ofTag: (app: job.event.app.id, uid: job.uid))
    }

    /// Retries of changes pause up to 3.2 s; a minute has room for a node that is slow to come.
    private static let handoverCareNanos: UInt64 = 60_000_000_000

    /// Has the pipeline carry what lies in the trays at the end of this turn of the loop.
    func requestTurn() {
        if isTurnDue { return }
        isTurnDue = true
        loop.atEndOfTurn { [weak self] in
            self?.isTurnDue = false
            self?.runTurn()
        }
    }

    /// What follows is that stage's, where somebody asks.
    @inline(__always)
    func enter(_ stage: StageClock.Stage) { loop.stageClock?.enter(stage) }

    /// How long marks that lie together live: as long as that of any member, who may be finished an hour later.
    func marksSeconds(_ subject: ClaimSubject) -> Int64 {
        let seconds = StateKeys.markSeconds(expireAtMs: subject.expireAtMs, nowMs: nowMs)
        return (traces.isOff ? seconds : max(seconds, traces.lifeSeconds)) + 3600
    }

    /// Since the original record's Kafka time; 0 where Kafka gave none, or one in the future.
    func latencyMs(sinceKafkaMs kafkaMs: Int64) -> Int64 { kafkaMs > 0 ? max(0, nowMs &- kafkaMs) : 0 }

    var nowNanos: UInt64 { loop.nowNanos }
    /// Unix ms.
    var nowMs: Int64 { clock.ms(nowNanos: nowNanos) }

    /// Compares the wall clock with others, and goes by it unless it is wrong.
    func lookAtClock() -> ClockWatch.Verdict {
        let (wallMs, nowNanos) = (wallClock.nowMs, nowNanos)
        let verdict = clockWatch.verdict(wallMs: wallMs, nowNanos: nowNanos)
        if verdict == .right || verdict == .off { clock.take(wallMs: wallMs, nowNanos: nowNanos) }
        metrics.clock.set(clockWatch, wallMs: wallMs, nowNanos: nowNanos)
        return verdict
    }

    /// The reference from which the clock is furthest.
    var worstClock: (reference: ClockWatch.Reference, skewMs: Int64)? {
        clockWatch.worst(wallMs: wallClock.nowMs, nowNanos: nowNanos)
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

    /// When a step that Redis could not answer is tried again: a jittered pause that doubles with each failure in a row.
    func retryNanos(failures: Int) -> UInt64 {
        metrics.redisRetries.add()
        return loop.nowNanos &+ retryPauses.delayNanos(failures: failures, random: &random)
    }
}

/// The bounds of a pipeline.
struct PipelineLimits {
    /// Recipients being worked on at once, per shard.
    var recipientsMax = 20_000
    /// User-state records being applied at once.
    var changesMax = 2_000
    /// Commands under way in Redis above which no records are read: some ten milliseconds of its work.
    var redisDepthMax = 512
    /// Commands under way above which no recipients start: below the depth at which reading rests, so that records go on
    /// between a giant group's members.
    var redisDepthOfStarts: Int { redisDepthMax * 3 / 4 }
    /// What a recipient asks at once, in the usual case: his reads, and then his claim.
    static let commandsPerStep = 3
    /// Pushes waiting for streams above which no records are read.
    var pushesAheadMax = 512
    /// Records taken from Kafka per turn of the loop.
    var pollBatch = 64
    /// Chunks of large groups taken per turn, each with up to a thousand members.
    var chunkBatch = 4
    /// Chunks whose members are not started all, above which no more are read.
    var openChunksMax = 8
    /// Events whose audience is not started whole, above which no records are read.
    var expandingMax = 64
    /// Large groups that wait to be divided, above which no records are read: each has a page of its members.
    var plannedMax = 1_024
    /// What groups and chunks have of the room for recipients.
    var lanes = LaneShares()
    /// A group with more members is divided into chunks.
    var directMax = 2_000
    /// The marks of a group's finished members lie in one key (`redis.group_marks`).
    var marksTogether = false
    /// Members read per step of a group's scan.
    var memberPage = 256
    /// Claims in one call: it keeps Redis from others for as long as some reads of a large hash.
    var claimsPerCall = 32
    /// Claims of recalls in one call: each may look through a thousand messages of its user.
    var recallsPerCall = 4
    /// Targets in one record of `im.deliveries`.
    var deliveryTargetsMax = 500
    /// How long pushes that are in flight may end before partitions go to another member.
    var revokeDrainNanos: UInt64 = 5_000_000_000
    /// How long an ack is waited for beyond its time while user state is behind.
    var ackGraceNanos: UInt64 = 30_000_000_000
    /// How long events wait at most for the user state that stood there at assignment.
    var stateFirstNanos: UInt64 = 30_000_000_000
    var window = OffsetLedger.Limits()
    /// Offsets that a commit can name as settled (`SettledOffsets`): so far apart may unsettled records be where several apps share a
    /// partition.
    static let sharedSpan = 20_000
    /// Parked records that the broker does not have yet, above which no records are read. They are unsettled: where several apps share a
    /// partition they must not fill its window, whose pause lasts seconds.
    var parkedPendingMax: Int { isShared ? min(4_096, max(16, window.records / 10)) : 4_096 }
    /// The unsettled records of a partition that several apps share out: without parked records on their way to the broker and one poll,
    /// below the point at which reading pauses.
    var sharedRecords: Int { max(1, window.records * window.pausePercent / 100 - parkedPendingMax - pollBatch) }
    /// A hold for a desktop that is longer is parked.
    var holdMs: Int64 = 3_000
    /// How long APNs must be away, or refuse the credential, until pushes are parked for it.
    var troubleNanos: UInt64 = 3_000_000_000
    /// How long a push waits in the client meanwhile, and for `limits.rate` ever.
    var patienceNanos: UInt64 = 5_000_000_000
    /// By then what is in hand has been pushed or is parked: another worker may push what is after it, ms.
    var outOfHandMs: Int64 { Int64(3 * patienceNanos / 1_000_000) }
    /// Pushes that wait in a client in trouble, to find out when it is over.
    var probesMax = 32
    /// Parked records that begin at a tenth of a second at most.
    var parkedPerLook = 256
    /// Several apps share the work in hand.
    var isShared = false
}
