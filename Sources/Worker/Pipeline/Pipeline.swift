// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Kafka
import PushCore
import Redis
import Telemetry

/// The path of every record within one shard: read, fanned out, looked up, decided, claimed, sent, recorded, settled.
///
/// Each stage is a component with its own state. It puts ready work into its trays, and `turn` carries the trays in the
/// order of the path. The pipeline is the layer above all of them: it makes them, and has the order of a turn, of a tick and of
/// the end. Loop-bound: all of it runs on the shard's thread, without locks and without suspension.
final class Pipeline {
    let shard: ShardContext
    let work: WorkTable
    let intakes: Intakes
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
    let newestBadges: NewestBadges
    let clock: ClockGuard
    let tokenLoss: TokenLossGuard
    let fleet: FleetNotes
    let dataAge: DataAgeGuard
    let apps: AppTable
    let room: WorkRoom
    let counts: CountWriter
    let figures: PipelineFigures
    let parkedEvents: ParkedEvents
    private let ends: EventEnds
    private let stateFirst: StateFirst
    private let redisAnswers: RedisAnswers
    private let brokerAnswers: BrokerAnswers
    /// Denied members: routed after all decisions of this turn, and their marks are built after that.
    private let denied = Tray<RecipientJob>()
    private var tickTimer: LoopTimer?
    private var stateTimer: LoopTimer?
    weak var owner: (any PipelineOwner)?

    init(_ parts: PipelineParts) {
        shard = ShardContext(parts)
        work = WorkTable(
            capacity: parts.limits.recipientsMax, updates: parts.limits.changesMax,
            isShared: parts.limits.isShared, ofProcess: parts.shared.conversations)
        apps = AppTable(parts.apps)
        intakes = Intakes(shard, parts)
        let (events, userState, chunks) = (intakes.events, intakes.userState, intakes.chunks)
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
            shard, work, claims: claims, sender: sender, recorder: recorder, bursts: bursts, parking: parking)
        digests = Digests(shard, apps: apps.byID)
        userStates = UserStates(
            shard, results: parts.stateResults ? (outbox: parts.outbox, topic: parts.topics.stateResults) : nil)
        badgeUpdates = BadgeUpdates(shard, work, sender: sender, recorder: recorder)
        stateWatch = StateWatch(userState, parts.shared.stateProgress, shardIndex: parts.shardIndex)
        newestBadges = NewestBadges(shard, sender: sender, bursts: bursts, updates: badgeUpdates)
        clock = ClockGuard(shard, [events, userState, chunks])
        tokenLoss = TokenLossGuard(
            shard, work, lookup: lookup, [events, chunks], stopsReading: parts.stopsAtTokenLoss)
        dataAge = DataAgeGuard(
            shard, apps, fanOut: fanOut, lookup: lookup, userStates: userStates, clock: clock, tokenLoss: tokenLoss,
            [events, chunks], userState: userState, source: parts.replaySource, stopsReading: parts.stopsAtTokenLoss)
        room = WorkRoom(
            shard, work, intakes, fanOut: fanOut, sender: sender, parking: parking, userStates: userStates)
        counts = CountWriter(shard, intakes, otherGroup: dataAge.otherGroup)
        fleet = FleetNotes(shard)
        ends = EventEnds(shard, work, intakes, parking: parking, digests: digests)
        parkedEvents = ParkedEvents(
            shard, work, intakes, apps: apps, fanOut: fanOut, sender: sender, recorder: recorder, parking: parking,
            userStates: userStates, waits: dispatcher.waits, ends: ends, room: room)
        stateFirst = StateFirst(shard, intakes)
        figures = PipelineFigures(
            shard, work, intakes, apps: apps, fanOut: fanOut, lookup: lookup, claims: claims, sender: sender,
            recorder: recorder, parking: parking, userStates: userStates, badges: newestBadges, room: room)
        redisAnswers = RedisAnswers(
            shard, work, lookup: lookup, fanOut: fanOut, claims: claims, dispatcher: dispatcher, sender: sender,
            recorder: recorder, userStates: userStates, bursts: bursts, digests: digests, badgeUpdates: badgeUpdates,
            newestBadges: newestBadges,
            guards: GuardAnswers(
                tokenLoss: tokenLoss, clock: clock, dataAge: dataAge, counts: counts, fleet: fleet))
        brokerAnswers = BrokerAnswers(
            shard, work, recorder: recorder, planner: planner, badgeUpdates: badgeUpdates, parking: parking,
            userStates: userStates, recipientEnds: dispatcher.ends, eventEnds: ends)
        claims.didOwe = { [unowned userStates] in userStates.watch($0) }
        shard.runTurn = { [unowned self] in turn() }
    }

    /// Begins to read. Everything after this comes by delegate calls on the loop.
    func start() throws(LoopFault) {
        shard.loop.assertOnLoop()
        sender.start()
        shard.store.client.delegate = redisAnswers
        shard.store.client.start()
        try recorder.outbox.start(
            recorder.topics, didSettle: { [unowned brokerAnswers] in brokerAnswers.didSettleRecord($0) },
            didTakeReports: { [unowned self] in shard.requestTurn() },
            keepsWork: { [unowned brokerAnswers] in brokerAnswers.keepsWork(ofRecord: $0) },
            didFail: { [unowned self] in owner?.pipelineDidMeetFatalError(.kafka) })
        dataAge.otherGroup.didMeet = { [unowned self] _ in owner?.pipelineDidMeetFatalError(.otherGroup) }
        tickTimer = LoopTimer(loop: shard.loop) { [unowned self] in tick() }
        tickTimer?.arm(afterNanos: ReadingGate.tickNanos)
        stateTimer = LoopTimer(loop: shard.loop) { [unowned self] in watchState() }
        stateTimer?.arm(afterNanos: StateWatch.lookNanos)
        for intake in intakes.all {
            // Until Redis has said the time.
            intake.block(.clock, true)
            try intake.start(owner: self)
        }
        for intake in [intakes.userState, intakes.chunks, intakes.events] { intakeIsReadable(intake) }
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
        for intake in intakes.all { intake.close() }
        dataAge.cancel()
        for intake in intakes.all { parking.handBack(of: intake) { _ in true } }
        handBack({ _ in true }, changes: { _ in true })
        userStates.handBack()
        badgeUpdates.close()
        newestBadges.close()
    }

    /// Leaves the group with the settled offsets. `pipelineDidClose` reports the end.
    func close() {
        for intake in intakes.all { intake.leaveGroup() }
    }

    /// Closes Redis and APNs; no outcome comes any more.
    func shut() {
        dataAge.cancel()
        for intake in intakes.all { intake.cancel() }
        recorder.outbox.cancel()
        shard.timers.cancel()
        tickTimer?.cancel()
        stateTimer?.cancel()
        shard.store.client.delegate = nil
        shard.store.client.close()
        sender.close()
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
        // First: later messages of their conversations queue behind them.
        takeBursts()
        claims.claimed.takeAll(didClaim)
        shard.enter(.record)
        takeOutcomes()
        shard.enter(.render)
        send()
        shard.enter(.record)
        takeSettled()
        shard.enter(.read)
        expand()
        room.pollIfReady()
        sender.notifyVacated()
        counts.writeForRevocations()
        for intake in intakes.all { intake.endRevocation() }
        shard.enter(.lookup)
        lookup.sendGathered()
        // The rest of the turn: the APNs clients' submissions, and the links' collected output.
        shard.enter(.send)
    }

    private func takeRecords() {
        intakes.userState.received.takeAll { accept($0, intakes.userState) }
        intakes.events.received.takeAll { accept($0, intakes.events) }
        intakes.chunks.received.takeAll { accept($0, intakes.chunks) }
        for intake in intakes.all { intake.rejected.takeAll { parkedEvents.reject($0, intake) } }
        userStates.refused.takeAll { job, record in recorder.writeDeadLetter(record, tag: job.tag(.deadLetter)) }
        parkedEvents.take()
        if intakes.events.isClosing { digests.events.removeAll { _ in true } }
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
        guard let candidate = job.candidate else { return shard.noteLate() }
        if lookup.pass(job, to: .claiming) == .kept { return }
        if !job.uid.isEmpty, shard.isRedisBehind || userStates.mayHaveMissed(readNanos: job.readNanos) || isOld(job) {
            return lookup.postpone(job)
        }
        if candidate.earlierTry == .ended, !TestBreak.isOn(.noDedup) { return dispatcher.endDuplicate(job) }
        // A claim of this try would count the message by the decision of now. The owed claim has that of then.
        if claims.hasEndedUnmarked(job) { return dispatcher.endDuplicate(job) }
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

    /// Whether another worker may have ended the message since its facts were read, as after a pause of this process.
    ///
    /// A plain claim by such facts counts a message that the user has read. Its script would take the entry back, but is not
    /// sent once the record belongs to the other worker. Redis answers within two seconds, and a session of Kafka lasts longer
    /// than five.
    private func isOld(_ job: RecipientJob) -> Bool { shard.nowNanos &- job.readNanos > 5_000_000_000 }

    /// A likely denial, which holds unless a read changes it, or an earlier try did not deny and may have pushed.
    private func deny(_ job: RecipientJob, _ candidate: Candidate) {
        guard candidate.earlierTry != .resume, let denial = decider.denial(of: job, candidate) else {
            return lookup.readAgain(job)
        }
        if !shard.unstoredChanges.isEmpty, waitForChanges(job, candidate) == .kept { return }
        guard claims.takeKey(job) == .goesOn else {
            dispatcher.waitForTwin(job)
            return lookup.passed(job)
        }
        job.openMark = .none
        job.facts.insert(.settingsUnread)
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
        if !claims.isClaiming(job.ref) { return shard.noteLate() }
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
            if let update = work.badgeUpdate(push.tag.ref) { return badgeUpdates.didEnd(update, push) }
            dispatcher.didEnd(push)
        }
        dispatcher.recorded.takeAll(recorder.sealIfEnded)
        for tray in [dispatcher.badges.accepted, badgeUpdates.accepted] { tray.takeAll(newestBadges.look) }
    }

    /// Makes the pushes of free devices, then gives them to the APNs clients together.
    private func send() {
        sender.ready.takeAll(sender.make)
        sender.updateChecks.takeAll { badgeUpdates.check($0.device, ticket: $0.ticket) }
        sender.sendMade()
        sender.unsent.takeAll { unsent in
            if let update = work.badgeUpdate(unsent.device.work) { return badgeUpdates.didNotSend(update, unsent) }
            dispatcher.didNotSend(unsent)
        }
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
        badgeUpdates.endedEvents.takeAll(ends.release)
    }

    /// The recipient has ended: its place is free for another.
    private func end(_ job: RecipientJob) {
        // Work left to the partition's next owner may come back here.
        if job.owesClaim, job.machine.isMarked { claims.rememberUnmarked(job) }
        ends.recipientEnded(of: job.event)
        for twin in claims.releaseKey(job) { dispatcher.ends.twinEnded(twin) }
        lookup.passed(job)
        bursts.leave(job)
        job.leaveContent()
        work.remove(job)
        ends.release(job.event)
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
            if parkedEvents.parkUntilItsTime(record, event, raw) == .kept { return }
            if parkedEvents.parkOverShare(record, event, raw, app) == .kept { return }
            if TestBreak.isOn(.commitEarly) { intake.settle(origin.place) }
            parkedEvents.beginEvent(event, raw, of: app, origin)
        }
    }

    // MARK: Chunks

    private func beginChunk(_ chunk: ChunkRecord, _ event: Event, _ origin: EventJob.Origin) {
        guard let app = apps[event.app], case .message(let message) = event.body else {
            return intakes.chunks.settle(origin.place)
        }
        var origin = origin
        origin.source = chunk.source
        fanOut.begin(EventJob(message, of: event, app: app, raw: chunk.raw, origin: origin, chunk: chunk))
    }

    private func takeRefusedChunks() {
        planner.refused.takeAll { event, members in
            event.plan?.unackedCount -= 1
            if !event.staysUnsettled { fanOut.start(members, of: event) }
            ends.release(event)
        }
    }

    // MARK: Room

    /// Starts recipients as far as there is room: slots, and Redis keeps up.
    private func expand() {
        if fanOut.hasOpen {
            fanOut.start(room.forRecipients)
            shard.enter(.lookup)
            fanOut.candidates.takeAll(readRecipient)
            shard.enter(.read)
        }
        // Events that were handed back are there too, with nothing open.
        fanOut.fullyStarted.takeAll { event in
            recorder.flushDeliveries(of: event)
            event.dropContentIfUnused()
            ends.release(event)
        }
    }

    /// Redis has not stored some changes of the user or of its tokens that a worker has read. So the candidate does not have the present state.
    private func waitForChanges(_ job: RecipientJob, _ candidate: Candidate) -> Passage {
        let isWaiting = shard.unstoredChanges.contains(
            app: job.event.app.id, uid: job.uid, candidate.recipient.tokens)
        guard isWaiting, candidate.decision?.waitsForChanges ?? true else { return .goesOn }
        if dispatcher.waits.parkForChanges(job, candidate) == .kept { lookup.passed(job) } else { lookup.postpone(job) }
        return .kept
    }

    // MARK: Time

    private func run(_ item: DueItem) {
        switch item {
        case .postponedCandidates: lookup.readPostponed(evenIfEarly: false)
        case .retryStep(let ref): dispatcher.waits.retryStep(ref)
        case .memberMarks: recorder.sendGathered()
        case .acks(let ref): dispatcher.waits.lookForAcks(ref)
        case .hold(let ref): dispatcher.waits.endHold(ref)
        case .pace(let app): sender.goOn(app)
        case .burst(let key, let window): bursts.end(key, window: window)
        case .badgeUpdate(let ref): badgeUpdates.start(ref)
        case .retryCheck(let device): sender.retryCheck(device)
        case .retryRead(let ref): fanOut.retryRead(ref)
        case .retryChange(let ref): userStates.retry(ref)
        }
    }

    private func tick() {
        clock.compareWhenDue()
        for intake in intakes.all {
            intake.tick(hasRoom: room.isThere(for: intake), commits: intake !== intakes.userState)
            intakes.noteShare(of: intake)
            intake.block(.denied, recorder.outbox.denial != nil)
        }
        intakes.events.watchShares(of: intakes.all.flatMap(\.consumer.topics))
        // Live devices do not wait until APNs has room for the rest of a giant group, or Redis for some of its members.
        work.events.forEach { recorder.flushDeliveries(of: $0, evenIfUndecided: true) }
        work.events.forEach { if parking.mustLeave($0) { ends.takeParting(of: $0) } }
        expand()
        parkedEvents.parkWhatWaits()
        parking.tick()
        dispatcher.releaseBrakes(of: apps.values)
        if room.isThere, !intakes.events.isClosing, !clock.isStopped { digests.poll() }
        room.holdStateIfRefused()
        shard.unstoredCounts.sweep(isWhole: shard.share.isWhole, nowNanos: shard.nowNanos)
        newestBadges.lookAgain()
        badgeUpdates.leaveUnsent()
        counts.writeOrAsk()
        dataAge.beatAndCommit()
        tokenLoss.ask()
        figures.sample()
        owner?.pipelineDidTick()
        tickTimer?.arm(afterNanos: ReadingGate.tickNanos)
        shard.requestTurn()
    }

    private func watchState() {
        if dataAge.hasComparedEnds() { stateWatch.noteProgress(nowNanos: shard.nowNanos) }
        stateFirst.endWhenApplied()
        parking.lookAgain()
        let isStopped = tokenLoss.isStopped || clock.isStopped || shard.isRedisBehind
        parkedEvents.beginDue(mayBegin: !stateFirst.isWaiting && !isStopped)
        for twin in claims.takeFreed() { dispatcher.ends.twinEnded(twin) }
        sender.parkOverdue()
        if shard.writes.refusesSome(nowNanos: shard.nowNanos) { settleUnclaimed() }
        stateTimer?.arm(afterNanos: StateWatch.lookNanos)
    }

    /// While Redis takes no writes, only committed offsets keep a crash from repeating pushes.
    private func settleUnclaimed() {
        sender.parkUnclaimed()
        dispatcher.waits.parkAllUnclaimed()
        for intake in intakes.all { intake.consumer.commitChanges() }
    }

    // MARK: Hand-back

    /// Hands back everything of these events that is not in flight; their offsets remain.
    private func handBack(_ isGoing: (EventJob) -> Bool, changes isGoingChange: (ChangeJob) -> Bool) {
        work.events.forEach { if isGoing($0) { $0.parked?.partitionGoes = true } }
        fanOut.handBack(isGoing)
        for device in sender.withdraw({ work.recipient($0).map { isGoing($0.event) } ?? false }) {
            dispatcher.withdrew(device)
        }
        work.recipients.forEach { job in
            if isGoing(job.event) { dispatcher.handBack(job) }
        }
        badgeUpdates.handBack(isGoing, changes: isGoingChange)
        work.events.forEach { event in
            if isGoing(event) { recorder.flushDeliveries(of: event, evenIfUndecided: true) }
        }
        shard.requestTurn()
    }
}

// Rebalances and the end.
extension Pipeline: IntakeOwner {
    func intakeIsReadable(_ intake: Intake) {
        shard.enter(.read)
        intake.poll(hasRoom: room.isThere(for: intake))
    }

    func intake(_ intake: Intake, handBack partitions: Set<TopicPartition>, isLost: Bool) {
        parking.handBack(of: intake, partitions.contains)
        handBack(
            { intakes.of($0) === intake && $0.isOf(partitions) }, changes: { $0.isOf(intake, partitions) })
    }

    func intake(_ intake: Intake, hasWorkOf partitions: Set<TopicPartition>) -> Bool {
        if parking.hasWork(of: partitions, intake) { return true }
        if intake === intakes.userState, userStates.count > 0 { return true }
        if badgeUpdates.hasWork(where: { $0.isOf(intake, partitions) }) { return true }
        if counts.hasUncounted(intake, partitions) { return true }
        return work.events.contains { intakes.of($0) === intake && $0.isOf(partitions) }
    }

    func intakeDidAssign(_ intake: Intake) {
        counts.writeOrAsk()
        if intake === intakes.userState { stateWatch.restart() }
        if intake !== intakes.userState, !intake.consumer.assignment.isEmpty { stateFirst.begin() }
        shard.metrics.assignedPartitions.set(intakes.assignedCount)
        intakes.noteShare(of: intake)
    }

    /// The ends that were noted belong to the earlier epoch.
    func intakeDidRestart(_ intake: Intake) {
        if intake === intakes.userState { stateWatch.restart() }
    }

    func intakeDidCommit(_ intake: Intake) { owner?.pipelineDidCommit() }

    func intakeDidLearnCommitted(_ intake: Intake) {
        if intake === intakes.userState { dataAge.compareCommitted() }
    }

    func intakeDidClose(_ intake: Intake) {
        if intakes.all.allSatisfy(\.consumer.isClosed) { owner?.pipelineDidClose() }
    }

    func intakeDidMeetFatalError(_ intake: Intake) { owner?.pipelineDidMeetFatalError(.kafka) }
}
