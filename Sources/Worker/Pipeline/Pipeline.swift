// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Kafka
import PushCore
import Redis
import Telemetry

/// The path of every record within one shard: read, fanned out, looked up, decided, claimed, sent, recorded, settled.
///
/// Each stage is a component with its own state. It puts ready work into its trays, and `turn` carries the trays in the
/// order of the path. The pipeline wires the components, routes each answer to the component that asked, and checks
/// capacity. Loop-bound: all of it runs on the shard's thread, without locks and without suspension.
final class Pipeline {
    let shard: ShardContext
    let work: WorkTable
    let events: Intake
    let userState: Intake
    /// For large groups. A separate consumer, so that waiting members hold back no other events.
    let chunks: Intake
    let planner: Planner
    let fanOut: FanOut
    let lookup: Lookup
    let decider: Decider
    let claims: Claims
    let dispatcher: Dispatcher
    let sender: Sender
    let recorder: Recorder
    let bursts: Bursts
    let digests: Digests
    let parking: Parking
    let userStates: UserStates
    let badgeUpdates: BadgeUpdates
    let stateWatch: StateWatch
    /// Events wait for the user state present at the assignment: since this time (monotonic); nil if they do not.
    var stateFirstNanos: UInt64?
    let newestBadges: NewestBadges
    let clock: ClockGuard
    let tokenLoss: TokenLossGuard
    let dataAge: DataAgeGuard
    let apps: AppTable
    /// Denied members: routed after all decisions of this turn, and their marks are built after that.
    private let denied = Tray<RecipientJob>()
    /// As of the last second.
    var waiting = WaitingPushes()
    var tickTimer: LoopTimer?
    var stateTimer: LoopTimer?
    weak var owner: (any PipelineOwner)?

    init(_ parts: PipelineParts) {
        shard = ShardContext(parts)
        work = WorkTable(
            capacity: parts.limits.recipientsMax, updates: parts.limits.changesMax,
            isShared: parts.limits.isShared, ofProcess: parts.shared.conversations)
        apps = AppTable(parts.apps)
        events = Intake(shard, consumer: parts.events, classes: [.events], batch: parts.limits.pollBatch)
        userState = Intake(
            shard, consumer: parts.userState, classes: [.userState, .parked], batch: parts.limits.pollBatch)
        chunks = Intake(shard, consumer: parts.chunks, classes: [.chunks], batch: parts.limits.chunkBatch)
        planner = Planner(shard, outbox: parts.outbox, topic: parts.topics.chunks)
        fanOut = FanOut(shard, work, planner: planner)
        lookup = Lookup(shard, work)
        decider = Decider(shard)
        claims = Claims(shard, work)
        parking = Parking(
            shard, outbox: parts.outbox, topic: parts.topics.parked, intake: userState,
            onTheWay: parts.shared.parkedOnTheWay)
        sender = Sender(
            shard, work, apps: parts.apps, occupancy: parts.shared.occupancy, index: parts.shardIndex,
            parked: parking.devices)
        recorder = Recorder(shard, work, topics: parts.topics, outbox: parts.outbox, results: parts.results)
        bursts = Bursts(shard, work)
        dispatcher = Dispatcher(
            shard, work, claims: claims, sender: sender, recorder: recorder, bursts: bursts,
            parking: parking)
        digests = Digests(shard, apps: apps.byID)
        userStates = UserStates(
            shard, results: parts.stateResults ? (outbox: parts.outbox, topic: parts.topics.stateResults) : nil)
        badgeUpdates = BadgeUpdates(shard, work, sender: sender, recorder: recorder)
        stateWatch = StateWatch(userState, parts.shared.stateProgress, shardIndex: parts.shardIndex)
        newestBadges = NewestBadges(shard, sender: sender, bursts: bursts, updates: badgeUpdates)
        clock = ClockGuard(shard, [events, userState, chunks])
        tokenLoss = TokenLossGuard(
            shard, work, lookup: lookup, clock: clock, [events, chunks], stopsReading: parts.stopsAtTokenLoss)
        dataAge = DataAgeGuard(
            shard, apps, lookup: lookup, userStates: userStates, clock: clock, tokenLoss: tokenLoss, [events, chunks],
            userState: userState, source: parts.replaySource, stopsReading: parts.stopsAtTokenLoss)
        claims.didOwe = { [unowned userStates] in userStates.watch($0) }
        shard.runTurn = { [unowned self] in turn() }
    }

    /// Begins to read. Everything after this comes by delegate calls on the loop.
    func start() throws(LoopFault) {
        shard.loop.assertOnLoop()
        sender.start()
        shard.store.client.delegate = self
        shard.store.client.start()
        try recorder.outbox.start(
            recorder.topics, didSettle: { [unowned self] in didSettleRecord($0) },
            didTakeReports: { [unowned self] in shard.requestTurn() },
            keepsWork: { [unowned self] in keepsWork(ofRecord: $0) },
            didFail: { [unowned self] in owner?.pipelineDidMeetFatalError(.kafka) })
        dataAge.otherGroup.didMeet = { [unowned self] _ in owner?.pipelineDidMeetFatalError(.otherGroup) }
        tickTimer = LoopTimer(loop: shard.loop) { [unowned self] in tick() }
        tickTimer?.arm(afterNanos: ReadingGate.tickNanos)
        stateTimer = LoopTimer(loop: shard.loop) { [unowned self] in watchState() }
        stateTimer?.arm(afterNanos: StateWatch.lookNanos)
        for intake in intakes {
            // Until Redis has said the time.
            intake.block(.clock, true)
            try intake.start(owner: self)
        }
        for intake in [userState, chunks, events] { intakeIsReadable(intake) }
    }

    /// Adds an app, from the next record on.
    func add(_ app: AppContext) {
        apps.add(app)
        shard.add(app: app.id, isShared: apps.values.count > 1)
        if shard.limits.isShared { work.share() }
        digests.add(app)
        sender.add(app)
    }

    /// Stops reading, and hands back everything that is not in flight. Pushes in flight continue to their end.
    func stopIntake() {
        for intake in intakes { intake.close() }
        dataAge.cancel()
        for intake in intakes { parking.handBack(of: intake) { _ in true } }
        handBack({ _ in true }, changes: { _ in true })
        userStates.handBack()
        badgeUpdates.close()
        newestBadges.close()
    }

    /// Leaves the group with the settled offsets. `pipelineDidClose` reports the end.
    func close() {
        for intake in intakes { intake.leaveGroup() }
    }

    /// Closes Redis and APNs; no outcome comes any more.
    func shut() {
        dataAge.cancel()
        for intake in intakes { intake.cancel() }
        recorder.outbox.cancel()
        shard.timers.cancel()
        tickTimer?.cancel()
        stateTimer?.cancel()
        shard.store.client.delegate = nil
        shard.store.client.close()
        sender.close()
    }

    /// Unsettled work: records read and not settled, and their dependencies.
    var pendingCount: Int {
        work.events.count + userStates.count + work.badgeUpdates.count + newestBadges.count + parking.count
    }

    // MARK: A turn

    /// Carries the results of the turn's answers stage by stage along the path.
    func turn() {
        shard.enter(.read)
        takeRefusedChunks()
        takeRecords()
        shard.enter(.lookup)
        fanOut.candidates.takeAll(readRecipient)
        takeDue()
        dispatcher.ends.again.takeAll(lookup.read)
        lookup.known.takeAll(decide)
        shard.enter(.record)
        routeDenied()
        shard.enter(.claim)
        claims.sendGathered()
        claims.unsettled.takeAll(settle)
        claims.failed.takeAll(lookup.postpone)
        claims.claimed.takeAll(didClaim)
        takeBursts()
        shard.enter(.record)
        takeOutcomes()
        shard.enter(.render)
        send()
        shard.enter(.record)
        takeSettled()
        shard.enter(.read)
        expand()
        pollIfReady()
        sender.notifyVacated()
        writeForRevocations()
        for intake in intakes { intake.endRevocation() }
        shard.enter(.lookup)
        lookup.sendGathered()
        // The rest of the turn: the APNs clients' submissions, and the links' collected output.
        shard.enter(.send)
    }

    private func takeRecords() {
        userState.received.takeAll { accept($0, userState) }
        events.received.takeAll { accept($0, events) }
        chunks.received.takeAll { accept($0, chunks) }
        for intake in intakes { intake.rejected.takeAll { reject($0, intake) } }
        userStates.refused.takeAll { job, record in recorder.writeDeadLetter(record, tag: job.tag(.deadLetter)) }
        takeParked()
        if events.isClosing { digests.events.removeAll { _ in true } }
        digests.events.takeAll(fanOut.begin)
        expand()
    }

    private func takeDue() {
        shard.timers.due.takeAll(run)
    }

    /// Reads a started recipient. A record without a user goes straight to its claim.
    func readRecipient(_ job: RecipientJob) {
        if !job.uid.isEmpty { return lookup.read(job) }
        decide(job)
        shard.requestTurn()
    }

    /// All of a candidate is read: the decision, and the claim that makes it this worker's.
    private func decide(_ job: RecipientJob) {
        shard.enter(.decide)
        guard let candidate = job.candidate else { return shard.late() }
        if lookup.pass(job, to: .claiming) == .kept { return }
        if !job.uid.isEmpty, shard.isRedisBehind || userStates.mayHaveMissed(readNanos: job.readNanos) {
            return lookup.postpone(job)
        }
        if candidate.earlierTry == .ended, !TestBreak.isOn(.noDedup) { return dispatcher.endDuplicate(job) }
        if dispatcher.waits.parkBehindEarlier(job, candidate) == .kept { return lookup.passed(job) }
        if candidate.phase == .readingDenied { return deny(job, candidate) }
        lookup.voidPresence(of: job, candidate)
        guard decider.decide(job, candidate) else { return dispatcher.ends.endUnrecorded(job) }
        if !shard.unstoredChanges.isEmpty, waitForChanges(job, candidate) == .kept { return }
        if tokenLoss.admit(job, candidate) == .kept { return }
        // Before the claim is sent: its answer and that of a token's owner come from two nodes of a cluster, and a twin
        // that ends between them would be visible in neither.
        guard claims.takeKey(job) == .goesOn else {
            dispatcher.waitForTwin(job)
            return lookup.passed(job)
        }
        shard.enter(.claim)
        claims.claim(job)
        // On a cluster other nodes have the owners of the user's tokens.
        if candidate.asksOwners, shard.store.client.isCluster { lookup.keepPlace(job, at: .claiming) }
    }

    /// A likely denial, which holds unless a read changes it, or an earlier try did not deny and may have pushed.
    private func deny(_ job: RecipientJob, _ candidate: Candidate) {
        guard candidate.earlierTry != .resume, let denial = decider.denial(of: candidate, job.event) else {
            return lookup.readAgain(job)
        }
        if !shard.unstoredChanges.isEmpty, waitForChanges(job, candidate) == .kept { return }
        guard claims.takeKey(job) == .goesOn else {
            dispatcher.waitForTwin(job)
            return lookup.passed(job)
        }
        job.openMark = .none
        candidate.facts.insert(.settingsUnread)
        candidate.decision = denial
        denied.append(job)
    }

    private func routeDenied() {
        denied.takeAll { job in
            dispatcher.route(job)
            dispatcher.recorded.append(job)
            lookup.passed(job)
        }
        dispatcher.recorded.takeAll(recorder.sealIfEnded)
    }

    /// The script settles a claim that plain commands could not: its answer comes after those to later claims.
    private func settle(_ job: RecipientJob) {
        if !claims.isClaiming(job.ref) { return shard.late() }
        lookup.keepPlace(job, at: .claiming)
        claims.settle(job)
    }

    private func didClaim(_ job: RecipientJob) {
        switch dispatcher.didClaim(job, pass: { lookup.pass($0, to: .passing) }) {
        case .waits: return
        case .readsAcks: lookup.keepPlace(job, at: .claiming)
        case .passed: lookup.passed(job)
        case .readAgain: lookup.readAgain(job)
        }
    }

    private func takeBursts() {
        bursts.dropped.takeAll(dispatcher.drop)
        bursts.merged.takeAll(dispatcher.devices.merge)
    }

    private func takeOutcomes() {
        sender.outcomes.takeAll { push in
            if push.tag.question == .updatePush { badgeUpdates.didEnd(push) } else { dispatcher.didEnd(push) }
        }
        dispatcher.recorded.takeAll(recorder.sealIfEnded)
        for tray in [dispatcher.badges.accepted, badgeUpdates.accepted] { tray.takeAll(newestBadges.look) }
    }

    /// Makes the pushes of free devices, then gives them to the APNs clients together.
    private func send() {
        sender.updateChecks.takeAll { badgeUpdates.check($0.device, ticket: $0.ticket) }
        sender.ready.takeAll { target in
            switch target {
            case .recipient(let device): sender.make(device)
            case .badgeUpdate(let device): badgeUpdates.check(device)
            }
        }
        sender.sendMade()
        sender.unsent.takeAll(dispatcher.didNotSend)
    }

    private func takeSettled() {
        dispatcher.devices.mayBeComplete.takeAll(dispatcher.ends.endIfComplete)
        recorder.acknowledged.takeAll(dispatcher.ends.endIfComplete)
        recorder.marked.takeAll { if $0.machine.didMark() { end($0) } }
        dispatcher.ends.ended.takeAll(end)
        userStates.lowered.takeAll(badgeUpdates.begin)
        dispatcher.lowered.takeAll(badgeUpdates.begin)
        dispatcher.toldByAlert.takeAll(badgeUpdates.didTell)
        for tray in [userStates.done, badgeUpdates.done] {
            tray.takeAll(userStates.settle)
        }
        badgeUpdates.endedEvents.takeAll(release)
    }

    /// The recipient has ended: its place is free for another.
    private func end(_ job: RecipientJob) {
        // Work left to the partition's next owner may come back here.
        if job.flags.contains(.owesClaim), job.machine.isMarked { claims.rememberUnmarked(job) }
        if let parting = job.parking?.parting {
            job.event.parting.append(parting)
        } else if let parked = job.event.parked, parked.record.uid != nil {
            parking.recipientEnded(parked)
        }
        for twin in claims.releaseKey(job) { dispatcher.ends.twinEnded(twin) }
        lookup.passed(job)
        bursts.leave(job)
        job.leaveContent()
        work.remove(job)
        release(job.event)
    }

    /// The event has one open part less. The last one settles its offset, unless it was handed back.
    func release(_ event: EventJob) {
        if event.openParts == 1, takeParting(of: event) == .kept { return parking.wait(event) }
        if !work.release(event) { return }
        let counted = event.takeCounts()
        if let parked = event.parked {
            if event.isHandedBack {
                parking.drop(parked)
            } else {
                parked.batch.counted.add(counted)
                parking.end(parked)
            }
            return userState.mayEndRevocation()
        }
        let intake = intake(of: event)
        if let origin = event.origin, !event.isHandedBack {
            intake.settle(origin.place, counted, origin.partition.partition)
        } else if event.origin == nil, !event.isHandedBack {
            shard.statistics.settled(counted, at: .none)
        }
        if let digest = event.digest, !event.isHandedBack { digests.end(digest) }
        intake.mayEndRevocation()
    }

    var intakes: [Intake] { [events, userState, chunks] }

    /// The intake of its record.
    func intake(of event: EventJob) -> Intake {
        if event.parked != nil { return userState }
        return event.chunkPart == nil ? events : chunks
    }

    // MARK: Records

    private func accept(_ record: consuming ReceivedRecord, _ intake: Intake) {
        let origin = record.origin
        guard case .event(let event, let raw) = record.content else {
            switch record.content {
            case .owed(let owed):
                owed.forEach(claims.rememberUnmarked)
                userStates.pay(owed, app: owed.first.flatMap { apps[$0.request.app] }, intake, origin)
            case .parked(let parked):
                parked.open.forEach(claims.rememberParked)
                parking.read(parked, origin, share: parked.open.first.flatMap { apps[$0.app]?.inHand.share } ?? 1)
            case .unknown: intake.hold(origin.partition)
            case .chunk(let chunk, let event): beginChunk(chunk, event, origin)
            case .event: break
            }
            return
        }
        guard let app = apps[event.app] else { return intake.settle(origin.place) }
        switch event.body {
        case .userState(let state):
            userStates.apply(state, of: event, app: app, intake, origin, key: record.key, value: raw)
        case .message, .liveActivity:
            if parkUntilItsTime(record, event, raw) == .kept { return }
            if parkOverShare(record, event, raw, app) == .kept { return }
            if TestBreak.isOn(.commitEarly) { intake.settle(origin.place) }
            beginEvent(event, raw, of: app, origin)
        }
    }

    /// Bad records go to the dead-letter topic with reason and place, and reading continues (contract section 0).
    func reject(_ record: RejectedRecord, _ intake: Intake) {
        recorder.writeDeadLetter(record, tag: userStates.begin(rejected: record.origin, intake))
    }
}
