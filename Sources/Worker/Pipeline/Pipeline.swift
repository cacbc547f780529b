import APNs
import EventLoop
import JSON
import Kafka
import PushCore
import Redis
import Telemetry

/// The path of every record within one shard: read, looked up, decided, sent, settled.
///
/// Loop-bound: all of it runs on the shard's thread, in batches of what is ready, without locks and without suspension.
/// Kafka, Redis and APNs answer through delegates with the tag they were given; a late answer finds no slot and is
/// ignored. Each `Pipeline+…` file holds one stretch of the path: `Intake`, `Recipients`, `Decision`, `Claims`,
/// `Sending`, `Outcomes`, `Waiting`, `UserState`.
final class Pipeline {
    let loop: Loop
    let limits: PipelineLimits
    let consumer: KafkaConsumer
    let topics: OutTopics
    let store: StateStore
    let reader: EventReader
    let zones = SystemZones()
    let log: Log
    let metrics: PipelineMetrics
    let results: Configuration.Results
    let traces: TracePlan
    /// What each of the consumer's topics carries.
    let inputs: [RecordClass]
    private(set) var apps: [String: AppContext] = [:]
    /// Of the last event.
    var lastApp: AppContext?
    private(set) var outbox: Outbox?

    var ledger: OffsetLedger
    var events: SlotTable<EventJob>
    var recipients: SlotTable<RecipientJob>
    var changes: SlotTable<ChangeJob>
    /// Lowered badges that are being told, and of each user the one that more reads may join.
    var clears: SlotTable<ClearJob>
    var clearOf: [ClearJob.Owner: ClearJob] = [:]
    /// Claims that go together: the batch that is being gathered, and those that Redis has.
    var openClaims: ClaimBatch?
    /// Recipients of whom all is read: decided about once Redis' replies of this moment are told.
    let known = TurnBatch<RecipientJob>()
    /// Members who get nothing: recorded once all of this moment are decided about.
    let denied = TurnBatch<RecipientJob>()
    /// What APNs said in this turn.
    let finished = TurnBatch<FinishedPush>()
    /// Recipients with a new record, whose mark may be put together.
    let recorded = TurnBatch<RecipientJob>()
    /// Recipients who are claimed alone once Redis' replies of this moment are told.
    let loneClaims = TurnBatch<RecipientJob>()
    var claimBatches: SlotTable<ClaimBatch>
    /// False once the server refused to take several recipients' keys in one call.
    var claimsTogether = true
    var leases = LeaseCache()
    var leaseQueries: SlotTable<LeaseQuery>
    /// The open query of each gateway.
    var leaseQueryOf: [String: LeaseQuery] = [:]
    /// Events whose audience waits for room, in order of arrival.
    var expanding: [EventJob] = []
    /// They are looked at once more at the end of this turn.
    var isExpansionDue = false
    /// Events of the present poll, in its order.
    let fresh = TurnBatch<FreshEvent>()
    var lanes = DeviceLanes<DeviceRef>()
    /// Devices whose push is to be made at the end of this turn.
    let ready = TurnBatch<DeviceRef>()
    /// Pushes that were made in this turn and are not with the APNs client yet.
    let made = TurnBatch<MadePush>()
    /// What is in work here, and who waits for its end: repeats of it that came meanwhile.
    var pairs: [PushIdentity: [JobRef]] = [:]
    var bursts: BurstTable<JobRef>
    var digests: SlotTable<DigestJob>
    /// Some app sends digests.
    let sendsDigests: Bool
    var nextDueBucket = 0
    /// The ends of the leases that were asked for last, by the number of their round.
    var dueLeases: [(round: UInt32, leaseMs: Int64)] = []
    var nextDueRound: UInt32 = 0
    var due = DueQueue<DueItem>()
    /// Since when, and how, Redis takes no writes; nil: it does.
    var refusal: WriteRefusal?
    /// Topics paused because what they carry waits for Redis to take writes.
    var heldTopics: Set<Int> = []
    /// Recipients who are done but for a claim that Redis refused.
    var owing = 0
    var unclaimedEnds = UnclaimedEnds<PushIdentity>()
    /// When a refused key was last told of in the log.
    var toldNanos: UInt64 = 0
    var intake = Intake()
    /// Partitions whose window is full.
    var fullPartitions: Set<TopicPartition> = []
    var revoking: Revocation?
    var dueTimer: LoopTimer?
    var tickTimer: LoopTimer?
    /// One storage for the records of `push.results`, which go out one by one.
    var recordWriter = JSONWriter(reservingCapacity: 1024)
    private(set) var consumerWatcher: FDWatcher?
    weak var owner: (any PipelineOwner)?

    init(_ parts: PipelineParts) {
        loop = parts.loop
        limits = parts.limits
        consumer = parts.consumer
        topics = parts.topics
        store = parts.store
        log = parts.log
        metrics = parts.metrics
        results = parts.results
        traces = parts.traces
        inputs = parts.inputs
        reader = EventReader(apps: parts.apps.map(\.policy.id))
        ledger = OffsetLedger(limits: parts.limits.window)
        events = SlotTable(capacity: parts.limits.recipientsMax)
        recipients = SlotTable(capacity: parts.limits.recipientsMax)
        changes = SlotTable(capacity: parts.limits.changesMax)
        bursts = BurstTable(waitingMax: parts.limits.recipientsMax / 2)
        clears = SlotTable(capacity: parts.limits.changesMax)
        digests = SlotTable(capacity: parts.limits.recipientsMax)
        claimBatches = SlotTable(capacity: parts.limits.recipientsMax)
        sendsDigests = parts.apps.contains(where: \.sendsDigest)
        leaseQueries = SlotTable(capacity: parts.limits.recipientsMax)
        for app in parts.apps { apps[app.policy.id] = app }
        outbox = Outbox(
            producers: parts.producers, loop: loop, log: log, metrics: metrics.outbox,
            didSettle: { [unowned self] tag in recordSettled(tag) },
            didTakeReports: { [unowned self] in pollKafkaIfReady() },
            didFail: { [unowned self] in owner?.pipelineDidMeetFatalError() })
    }

    /// Begins to read; everything after this comes by delegate calls on the loop.
    func start() throws(LoopFault) {
        loop.assertOnLoop()
        for app in apps.values { app.connect(delegate: self) }
        store.client.delegate = self
        store.client.start()
        consumer.delegate = self
        dueTimer = LoopTimer(loop: loop) { [unowned self] in runDue() }
        tickTimer = LoopTimer(loop: loop) { [unowned self] in tick() }
        tickTimer?.arm(afterNanos: Intake.tickNanos)
        consumerWatcher = try FDWatcher(loop: loop, fd: consumer.wakeFD) { [unowned self] in pollKafka() }
        try outbox?.start()
        pollKafka()
    }

    /// Reads no more; work in hand goes on.
    func stopIntake() {
        intake.isClosing = true
        endAllBursts()
        consumer.pause(consumer.assignment)
        consumerWatcher?.resume()
    }

    /// Leaves the group with what is settled by now; `pipelineDidClose` tells when it is done.
    func close() {
        if consumer.isClosed { return }
        consumer.beginClose()
        consumerWatcher?.resume()
    }

    /// Lets go of Redis and APNs; no outcome comes any more.
    func shut() {
        consumerWatcher?.cancel()
        outbox?.cancel()
        dueTimer?.cancel()
        tickTimer?.cancel()
        store.client.delegate = nil
        store.client.close()
        for app in apps.values {
            for client in app.clients {
                client.apns.delegate = nil
                client.apns.close()
            }
        }
    }

    /// Work in hand: records read whose offsets are not settled.
    var pendingCount: Int { events.count + changes.count + clears.count }

    func job(_ ref: JobRef) -> RecipientJob? { recipients.find(slot: ref.slot, generation: ref.generation) }
    func event(_ ref: JobRef) -> EventJob? { events.find(slot: ref.slot, generation: ref.generation) }
    func change(_ ref: JobRef) -> ChangeJob? { changes.find(slot: ref.slot, generation: ref.generation) }

    // MARK: - Settling

    /// One reason less to keep the record; without any, its offset may be committed.
    func release(_ event: EventJob) {
        event.holds -= 1
        guard event.holds == 0 else { return }
        events.remove(slot: event.slot)
        if let origin = event.origin { settle(origin.place) }
        if let digest = event.digest { ended(digest) }
    }

    func settle(_ place: OffsetLedger.Slot) {
        let settlement = ledger.settle(place)
        // From before a revocation: its next owner settles it, and one record counts once.
        if settlement != .stale { metrics.recordsSettled.add() }
        guard case .advanced(let partition, let next) = settlement else { return }
        consumer.storeOffset(partition, next: next)
        relieve(partition)
    }
}

/// The numbers that bound a pipeline.
struct PipelineLimits {
    /// Recipients being worked on at once, per shard.
    var recipientsMax = 20_000
    /// User-state records being applied at once.
    var changesMax = 2_000
    /// Commands under way in Redis above which no records are read: some ten milliseconds of its work.
    var redisDepthMax = 512
    /// Pushes waiting for streams above which no records are read.
    var pushesAheadMax = 512
    /// Records taken from Kafka per turn of the loop.
    var pollBatch = 64
    /// Events whose audience waits for room, above which no records are read.
    var expandingMax = 64
    /// Members read per step of a group's scan.
    var memberPage = 256
    /// Claims in one call: it keeps Redis from others for as long as some reads of a large hash.
    var claimsPerCall = 32
    /// Targets in one record of `im.deliveries`.
    var deliveryTargetsMax = 500
    /// Recipients kept for a claim that Redis refused; beyond it they end without having been counted.
    var owingMax = 5_000
    /// How long partitions that another member wants may be drained.
    var revokeDrainNanos: UInt64 = 5_000_000_000
    var window = OffsetLedger.Limits()
}

/// What a pipeline is made of.
struct PipelineParts {
    var loop: Loop
    var limits: PipelineLimits
    var apps: [AppContext]
    var consumer: KafkaConsumer
    var producers: OutProducers
    var topics: OutTopics
    var store: StateStore
    var log: Log
    var metrics: PipelineMetrics
    var results: Configuration.Results
    var traces: TracePlan
    var inputs: [RecordClass]
}

/// What the shard hears of its pipeline.
protocol PipelineOwner: AnyObject {
    /// Once a second.
    func pipelineDidTick()
    /// A commit was answered, well or not.
    func pipelineDidCommit()
    /// After `close()`: the consumer has left its group.
    func pipelineDidClose()
    /// The Kafka client is dead for good.
    func pipelineDidMeetFatalError()
}

/// One device of one recipient.
struct DeviceRef {
    var job: JobRef
    var device: Int
    /// Of a `ClearJob`, not of a recipient.
    var isClear = false
}

/// A push on its way to the APNs client.
struct MadePush {
    var job: RecipientJob
    var device: Int
    var client: AppContext.Client
    var push: Push
}

/// What is looked at again when its time comes.
enum DueItem {
    /// A step that Redis could not answer.
    case retry(JobRef)
    /// An ack deadline, or a look before it.
    case acks(JobRef)
    /// The end of a hold for a desktop.
    case hold(JobRef)
    /// The end of a burst's window.
    case burst(PushIdentity, UInt32)
    /// Lowered badges have waited for one another.
    case clear(JobRef)
    /// A device's turn, or the last look in it, that Redis could not be asked about or did not answer.
    case turn(DeviceRef)
    /// The app's rate lets the next push go.
    case pace(AppContext)
    case retryMembers(JobRef)
    case retryOriginal(JobRef)
    case retryChange(JobRef)
}
