import APNs
import EventLoop
import JSON
import Kafka
import PushCore
import Redis
import Telemetry

/// The path of every record within one shard: read, fanned out, looked up, decided, claimed, sent, recorded, settled.
///
/// Each stage is a component with its own state; it puts what is ready into its trays, and `turn` carries the trays in the
/// order of the path. The pipeline itself wires the components, gives each answer to the one that asked, and knows whether
/// there is room. Loop-bound: all of it runs on the shard's thread, without locks and without suspension.
final class Pipeline {
    let shard: ShardContext
    let work: WorkTable
    let events: Intake
    let userState: Intake
    let fanOut: FanOut
    let lookup: Lookup
    let decider: Decider
    let claims: Claims
    let dispatcher: Dispatcher
    let sender: Sender
    let recorder: Recorder
    let bursts: Bursts
    let digests: Digests
    let userStates: UserStates
    let badgeUpdates: BadgeUpdates
    let newestBadges: NewestBadges
    let apps: [String: AppContext]
    /// Members who get nothing: routed once all of this turn are decided about, and their marks put together after that.
    private let denied = Tray<RecipientJob>()
    /// The app of the last record: the next one's is mostly the same.
    private var lastApp: AppContext?
    private var tickTimer: LoopTimer?
    weak var owner: (any PipelineOwner)?

    init(_ parts: PipelineParts) {
        shard = ShardContext(parts)
        work = WorkTable(capacity: parts.limits.recipientsMax, updates: parts.limits.changesMax)
        apps = Dictionary(parts.apps.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        let reader = EventReader(apps: parts.apps.map(\.id))
        events = Intake(shard, consumer: parts.events, classes: [.events], reader: reader)
        userState = Intake(shard, consumer: parts.userState, classes: [.userState, .parked], reader: reader)
        fanOut = FanOut(shard, work)
        lookup = Lookup(shard, work)
        decider = Decider(shard)
        claims = Claims(shard, work)
        sender = Sender(shard, work, apps: parts.apps, occupancy: parts.shared.occupancy)
        recorder = Recorder(shard, work, topics: parts.topics, outbox: parts.outbox, results: parts.results)
        bursts = Bursts(shard, work)
        dispatcher = Dispatcher(
            shard, work, claims: claims, sender: sender, recorder: recorder, bursts: bursts)
        digests = Digests(shard, apps: apps)
        userStates = UserStates(shard)
        badgeUpdates = BadgeUpdates(shard, work, sender: sender, recorder: recorder)
        newestBadges = NewestBadges(shard, sender: sender, bursts: bursts, updates: badgeUpdates)
        shard.runTurn = { [unowned self] in turn() }
    }

    /// Begins to read; everything after this comes by delegate calls on the loop.
    func start() throws(LoopFault) {
        shard.loop.assertOnLoop()
        sender.start()
        shard.store.client.delegate = self
        shard.store.client.start()
        try recorder.outbox.start(
            didSettle: { [unowned self] in didSettleRecord($0) },
            didTakeReports: { [unowned self] in shard.requestTurn() },
            didFail: { [unowned self] in owner?.pipelineDidMeetFatalError() })
        tickTimer = LoopTimer(loop: shard.loop) { [unowned self] in tick() }
        tickTimer?.arm(afterNanos: ReadingGate.tickNanos)
        try events.start(owner: self)
        try userState.start(owner: self)
        intakeIsReadable(userState)
        intakeIsReadable(events)
    }

    /// Reads no more, and leaves to the next owner all that is not in flight; what is goes on to its end.
    func stopIntake() {
        for intake in [events, userState] { intake.close() }
        handBack { _ in true }
    }

    /// Leaves the group with what is settled by now; `pipelineDidClose` tells when it is done.
    func close() {
        for intake in [events, userState] { intake.leaveGroup() }
    }

    /// Lets go of Redis and APNs; no outcome comes any more.
    func shut() {
        for intake in [events, userState] { intake.cancel() }
        recorder.outbox.cancel()
        shard.timers.cancel()
        tickTimer?.cancel()
        shard.store.client.delegate = nil
        shard.store.client.close()
        sender.close()
    }

    /// Work in hand: records read whose offsets are not settled, and what they wait for.
    var pendingCount: Int { work.events.count + userStates.count + work.badgeUpdates.count + newestBadges.count }

    // MARK: A turn

    /// Carries what the turn's answers have left in the trays, stage by stage along the path.
    private func turn() {
        takeRecords()
        fanOut.candidates.takeAll(begin)
        takeDue()
        dispatcher.again.takeAll(lookup.read)
        lookup.known.takeAll(decide)
        routeDenied()
        claims.sendGathered()
        claims.failed.takeAll(lookup.postpone)
        claims.claimed.takeAll(didClaim)
        takeBursts()
        takeOutcomes()
        send()
        takeSettled()
        expand()
        pollIfReady()
        sender.tellLeft()
    }

    private func takeRecords() {
        userState.received.takeAll { accept($0, userState) }
        events.received.takeAll { accept($0, events) }
        for intake in [events, userState] { intake.rejected.takeAll { reject($0, intake) } }
        digests.events.takeAll(fanOut.begin)
        expand()
    }

    private func takeDue() {
        shard.timers.due.takeAll(run)
    }

    /// A started recipient is read; a record for nobody goes straight to its claim.
    private func begin(_ job: RecipientJob) {
        if !job.uid.isEmpty { return lookup.read(job) }
        decide(job)
        shard.requestTurn()
    }

    /// All of a candidate is read: the decision, and the claim that makes it this worker's.
    private func decide(_ job: RecipientJob) {
        guard let candidate = job.candidate, !lookup.mustWait(job) else { return }
        if candidate.phase == .readingDenied { return deny(job, candidate) }
        lookup.voidPresence(of: job, candidate)
        if decider.decide(job, candidate) { claims.claim(job) } else { dispatcher.leaveUndone(job) }
    }

    /// A likely denial, which holds unless something that was read turns it.
    private func deny(_ job: RecipientJob, _ candidate: Candidate) {
        guard let denial = decider.denial(of: candidate, job.event) else { return lookup.readWhole(job) }
        if candidate.isFinished { return dispatcher.endFinished(job) }
        guard claims.takesKey(job) else { return dispatcher.waitForTwin(job) }
        candidate.facts.insert(.settingsUnread)
        candidate.decision = denial
        denied.append(job)
    }

    private func routeDenied() {
        denied.takeAll { job in
            dispatcher.route(job)
            dispatcher.recorded.append(job)
        }
        dispatcher.recorded.takeAll(recorder.sealIfEnded)
    }

    private func didClaim(_ job: RecipientJob) {
        switch dispatcher.didClaim(job) {
        case .passed: lookup.passed(job)
        case .readAgain: lookup.readAgain(job)
        }
    }

    private func takeBursts() {
        bursts.dropped.takeAll(dispatcher.drop)
        bursts.merged.takeAll(dispatcher.merge)
    }

    private func takeOutcomes() {
        sender.outcomes.takeAll { push in
            if push.tag.stage == .updatePush { badgeUpdates.didFinish(push) } else { dispatcher.didFinish(push) }
        }
        dispatcher.recorded.takeAll(recorder.sealIfEnded)
        for tray in [dispatcher.acceptedBadges, badgeUpdates.accepted] { tray.takeAll(newestBadges.look) }
    }

    /// Pushes of devices whose turn has come: made, then handed to the APNs clients together.
    private func send() {
        sender.updateChecks.takeAll { badgeUpdates.check($0.device, ticket: $0.ticket) }
        sender.ready.takeAll { device in
            if device.isBadgeUpdate { badgeUpdates.check(device) } else { sender.make(device) }
        }
        sender.sendMade()
        sender.unsent.takeAll(dispatcher.didNotSend)
    }

    private func takeSettled() {
        recorder.acknowledged.takeAll { dispatcher.conclude($0.ref) }
        recorder.marked.takeAll(dispatcher.didMark)
        dispatcher.ended.takeAll(end)
        work.completed.takeAll(complete)
        userStates.lowered.takeAll(badgeUpdates.begin)
        for tray in [userStates.done, badgeUpdates.done] { tray.takeAll { $0.intake.settle($0.place) } }
    }

    /// The recipient has ended: its place is free for another.
    private func end(_ job: RecipientJob) {
        if job.flags.contains(.owesClaim) { claims.rememberUnmarked(job) }
        for twin in claims.releaseKey(job) { dispatcher.twinEnded(twin) }
        lookup.passed(job)
        bursts.leave(job)
        job.leaveContent()
        work.remove(job)
    }

    private func complete(_ event: EventJob) {
        if let origin = event.origin, !event.isHandedBack { events.settle(origin.place) }
        if let digest = event.digest, !event.isHandedBack { digests.end(digest) }
        events.completeRevocationIfOver()
    }

    // MARK: Records

    private func accept(_ record: ReceivedRecord, _ intake: Intake) {
        let origin = record.origin
        guard case .event(let event, let raw) = record.content else {
            if case .owed(let owed) = record.content { userStates.pay(owed, intake, origin.place) }
            return
        }
        guard let app = app(event.app) else { return intake.settle(origin.place) }
        switch event.body {
        case .userState(let state): userStates.apply(state, of: event, app: app, intake, origin.place)
        case .message(let message):
            fanOut.begin(EventJob(message, of: event, app: app, raw: raw, origin: origin))
        case .liveActivity(let activity):
            fanOut.begin(EventJob(activity, of: event, app: app, raw: raw, origin: origin))
        }
    }

    /// The app of that id; the last one is compared first, which is cheaper than a hash.
    private func app(_ id: String) -> AppContext? {
        if let lastApp, lastApp.id == id { return lastApp }
        lastApp = apps[id]
        return lastApp
    }

    /// Bad records go to the dead-letter topic with reason and place; the next record goes on (contract section 0).
    private func reject(_ record: RejectedRecord, _ intake: Intake) {
        shard.metrics.deadLetter(record.why.rule)
        shard.log.warning(
            "a record went to the dead-letter topic",
            [
                "topic": .string(record.topic), "partition": .int(Int(record.origin.partition.partition)),
                "offset": .int(Int(record.offset)), "rule": .string(record.why.rule.rawValue),
            ])
        recorder.writeDeadLetter(record, tag: userStates.begin(rejected: record.origin.place, intake))
    }

    // MARK: Room

    /// Room for more events: slots for recipients, few audiences waiting for them, and a Redis and an APNs that keep up.
    ///
    /// What would only wait here is better left in Kafka: it costs memory and falls out of the processor's caches.
    var hasRoom: Bool {
        hasSlots && shard.store.client.pipelineDepth < shard.limits.redisDepthMax
            && sender.pushesAhead < shard.limits.pushesAheadMax
    }

    var hasSlots: Bool {
        let limits = shard.limits
        return work.recipients.count < limits.recipientsMax - limits.pollBatch
            && fanOut.openCount < limits.expandingMax && work.events.count < limits.recipientsMax - limits.pollBatch
    }

    /// User state waits for Redis alone: pushes that pile up do not hold it back.
    private var hasRoomForState: Bool {
        userStates.hasRoom && shard.store.client.pipelineDepth < shard.limits.redisDepthMax
    }

    private func hasRoom(_ intake: Intake) -> Bool { intake === events ? hasRoom : hasRoomForState }

    /// Starts recipients as far as there is room: slots, and a Redis that keeps up. Below the depth at which reading from
    /// Kafka rests, so that records go on between a giant group's members.
    private func expand() {
        if fanOut.openCount == 0 { return }
        let limits = shard.limits
        let depth = limits.redisDepthMax * 3 / 4 - shard.store.client.pipelineDepth
        let slots = limits.recipientsMax - work.recipients.count
        fanOut.start(
            FanOut.Room(
                isAPNsFree: sender.pushesAhead < limits.pushesAheadMax,
                recipients: min(slots, (max(0, depth) + 2) / 3)))
        fanOut.candidates.takeAll(begin)
        fanOut.finished.takeAll { event in
            recorder.flushDeliveries(of: event)
            event.dropContentIfUnused()
            work.release(event)
        }
    }

    private func pollIfReady() {
        for intake in [userState, events] where intake.isHeld { intake.pollIfReady(hasRoom: hasRoom(intake)) }
    }

    // MARK: Hand-back

    /// Gives up all that is not in flight of these events; their offsets stay where they are.
    private func handBack(_ isGoing: (EventJob) -> Bool) {
        fanOut.handBack(isGoing)
        for device in sender.withdraw({ work.recipient($0).map { isGoing($0.event) } ?? false }) {
            dispatcher.withdrew(device)
        }
        work.recipients.forEach { job in
            if isGoing(job.event) { dispatcher.handBack(job) }
        }
        work.events.forEach { event in
            if isGoing(event) { recorder.flushDeliveries(of: event, evenIfUndecided: true) }
        }
        shard.requestTurn()
    }

    // MARK: Time

    private func tick() {
        for intake in [events, userState] { intake.tick(hasRoom: hasRoom(intake)) }
        events.noteShare()
        // Live devices do not wait until APNs has room for the rest of a giant group.
        fanOut.forEachOpen { recorder.flushDeliveries(of: $0, evenIfUndecided: true) }
        expand()
        dispatcher.releaseBrakes(of: apps.values)
        if hasRoom, !events.isClosing { digests.poll() }
        holdStateIfRefused()
        sample()
        owner?.pipelineDidTick()
        tickTimer?.arm(afterNanos: ReadingGate.tickNanos)
        shard.requestTurn()
    }

    /// Changes must wait for Redis to take writes; once many wait, their topic is read no further.
    private func holdStateIfRefused() {
        if work.recipients.count == 0, userStates.count == 0 { shard.writes.forgetIfOld(nowNanos: shard.nowNanos) }
        let isMuch = userStates.count >= shard.limits.changesMax / 2
        if shard.writes.refusal == nil {
            userState.block(.redisRefusesWrites, false)
        } else if isMuch {
            userState.block(.redisRefusesWrites, true)
        }
    }

    private func run(_ item: DueItem) {
        switch item {
        case .postponedCandidates: lookup.readPostponed()
        case .retryStep(let ref): dispatcher.retryStep(ref)
        case .acks(let ref): dispatcher.lookForAcks(ref)
        case .hold(let ref): dispatcher.endHold(ref)
        case .pace(let app): sender.goOn(app)
        case .burst(let key, let window): bursts.end(key, window: window)
        case .badgeUpdate(let ref): badgeUpdates.start(ref)
        case .retryCheck(let device):
            if device.isBadgeUpdate { badgeUpdates.check(device) } else { sender.retryCheck(device) }
        case .retryMembers(let ref): fanOut.retryMembers(ref)
        case .retryOriginal(let ref): fanOut.retryOriginal(ref)
        case .retryChange(let ref): userStates.retry(ref)
        }
    }
}

extension Pipeline: IntakeOwner {
    func intakeIsReadable(_ intake: Intake) { intake.poll(hasRoom: hasRoom(intake)) }

    func intake(_ intake: Intake, handBack partitions: Set<TopicPartition>, isLost: Bool) {
        if intake === events { handBack { $0.isOf(partitions) } }
    }

    func intake(_ intake: Intake, hasWorkOf partitions: Set<TopicPartition>) -> Bool {
        guard intake === events else { return userStates.count + badgeUpdates.holdingCount > 0 }
        var hasWork = false
        work.events.forEach { if $0.isOf(partitions) { hasWork = true } }
        return hasWork
    }

    func intakeDidAssign(_ intake: Intake) {
        shard.metrics.assignedPartitions.set(assignedCount)
        if intake === events { intake.noteShare() }
    }

    func intakeDidCommit(_ intake: Intake) { owner?.pipelineDidCommit() }

    func intakeDidClose(_ intake: Intake) {
        if events.consumer.isClosed, userState.consumer.isClosed { owner?.pipelineDidClose() }
    }

    func intakeDidMeetFatalError(_ intake: Intake) { owner?.pipelineDidMeetFatalError() }
}

/// What a pipeline is made of.
struct PipelineParts {
    var loop: Loop
    var limits: PipelineLimits
    var apps: [AppContext]
    /// Consumers of one group: of the events topic, and of the user-state topic.
    var events: KafkaConsumer
    var userState: KafkaConsumer
    var outbox: Outbox
    var topics: OutTopics
    var store: StateStore
    var log: Log
    var metrics: PipelineMetrics
    var results: Configuration.Results
    var traces: TracePlan
    /// What the shards of the process share.
    var shared: ProcessShared
}

/// What the shard hears of its pipeline.
protocol PipelineOwner: AnyObject {
    /// Once a second.
    func pipelineDidTick()
    /// A commit was answered, well or not.
    func pipelineDidCommit()
    /// After `close()`: both consumers have left their group.
    func pipelineDidClose()
    /// A Kafka client is dead for good.
    func pipelineDidMeetFatalError()
}
