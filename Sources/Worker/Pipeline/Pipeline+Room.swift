// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import Kafka
import Redis
import Telemetry

/// Whether there is room for more work, and the checks on a timer.
extension Pipeline {
    /// Room for more events: slots for recipients, few audiences waiting for them, and Redis and APNs keep up.
    ///
    /// Work that would only wait is better left in Kafka: it costs memory and leaves the processor's caches.
    var hasRoom: Bool {
        hasSlots && parking.hasRoom && !isRedisFull && sender.pushesAhead < shard.limits.pushesAheadMax
    }

    /// Without the commands of large groups' members, which hold nobody back: they start after all others.
    private var isRedisFull: Bool {
        let depth = shard.store.client.pipelineDepth
        let most = shard.limits.redisDepthMax
        return depth >= most && depth - PipelineLimits.commandsPerStep * fanOut.undecidedOfChunks >= most
    }

    var hasSlots: Bool {
        let limits = shard.limits
        return work.recipients.count < limits.recipientsMax - limits.pollBatch
            && fanOut.hasRoom && work.events.count < limits.recipientsMax - limits.pollBatch
    }

    /// User state waits only for Redis: waiting pushes do not hold it back.
    var hasRoomForState: Bool {
        userStates.hasRoom && shard.store.client.pipelineDepth < shard.limits.redisDepthMax
    }

    /// Large groups leave half of every bound to other events, which are read at the same time.
    var hasRoomForChunks: Bool {
        let limits = shard.limits
        return hasRoom && fanOut.hasRoomForChunks && work.recipients.count < limits.recipientsMax / 2
            && sender.pushesAhead < limits.pushesAheadMax / 2
            && shard.store.client.pipelineDepth < limits.redisDepthMax / 2
    }

    func hasRoom(_ intake: Intake) -> Bool {
        if intake === userState { return hasRoomForState }
        return intake === events ? hasRoom : hasRoomForChunks
    }

    /// Starts recipients as far as there is room: slots, and Redis keeps up.
    func expand() {
        if fanOut.hasOpen { startRecipients() }
        // Events that were handed back are there too, with nothing open.
        fanOut.fullyStarted.takeAll { event in
            recorder.flushDeliveries(of: event)
            event.dropContentIfUnused()
            release(event)
        }
    }

    private func startRecipients() {
        let limits = shard.limits
        let depth = limits.redisDepthOfStarts - shard.store.client.pipelineDepth
        let slots = limits.recipientsMax - work.recipients.count
        let perStep = PipelineLimits.commandsPerStep
        fanOut.start(
            FanOut.Room(
                isAPNsFree: sender.pushesAhead < limits.pushesAheadMax / 2,
                recipients: min(slots, (max(0, depth) + perStep - 1) / perStep),
                ofChunks: max(0, min(limits.recipientsMax / 2 - work.recipients.count, fanOut.bulkRoom))))
        shard.enter(.lookup)
        fanOut.candidates.takeAll(readRecipient)
        shard.enter(.read)
    }

    func pollIfReady() {
        for intake in intakes where intake.isHeld { intake.pollIfReady(hasRoom: hasRoom(intake)) }
    }

    // MARK: Time

    func run(_ item: DueItem) {
        switch item {
        case .postponedCandidates: lookup.readPostponed(evenIfEarly: false)
        case .retryStep(let ref): dispatcher.waits.retryStep(ref)
        case .memberMarks: recorder.sendGathered()
        case .acks(let ref): dispatcher.waits.lookForAcks(ref)
        case .hold(let ref): dispatcher.waits.endHold(ref)
        case .pace(let app): sender.goOn(app)
        case .burst(let key, let window): bursts.end(key, window: window)
        case .badgeUpdate(let ref): badgeUpdates.start(ref)
        case .retryCheck(.recipient(let device)): sender.retryCheck(device)
        case .retryCheck(.badgeUpdate(let device)): badgeUpdates.check(device)
        case .retryRead(let ref): fanOut.retryRead(ref)
        case .retryChange(let ref): userStates.retry(ref)
        }
    }

    func tick() {
        clock.look()
        for intake in intakes {
            intake.tick(hasRoom: hasRoom(intake), commits: intake !== userState)
            noteShare(of: intake)
            intake.block(.denied, recorder.outbox.denial != nil)
        }
        events.watchShares(of: intakes.flatMap(\.consumer.topics))
        // Live devices do not wait until APNs has room for the rest of a giant group, or Redis for some of its members.
        work.events.forEach { recorder.flushDeliveries(of: $0, evenIfUndecided: true) }
        work.events.forEach { if parking.mustLeave($0) { takeParting(of: $0) } }
        expand()
        parkWhatWaits()
        parking.tick()
        dispatcher.releaseBrakes(of: apps.values)
        if hasRoom, !events.isClosing, !clock.isStopped { digests.poll() }
        holdStateIfRefused()
        shard.unstoredCounts.sweep(isWhole: shard.share.isWhole, nowNanos: shard.nowNanos)
        newestBadges.lookAgain()
        badgeUpdates.leaveUnsent()
        lookAtStatistics()
        dataAge.beatAndCommit()
        tokenLoss.ask()
        sample()
        owner?.pipelineDidTick()
        tickTimer?.arm(afterNanos: ReadingGate.tickNanos)
        shard.requestTurn()
    }

    func watchState() {
        if dataAge.hasComparedEnds() { stateWatch.look(nowNanos: shard.nowNanos) }
        if let since = stateFirstNanos {
            let isOver = shard.nowNanos &- since >= shard.limits.stateFirstNanos
            if isOver || shard.stateProgress.appliedNanos > since {
                stateFirstNanos = nil
                for intake in [events, chunks] { intake.block(.stateFirst, false) }
            }
        }
        parking.lookAgain()
        lookAtParked()
        for twin in claims.takeFreed() { dispatcher.ends.twinEnded(twin) }
        sender.parkOverdue()
        if shard.writes.refusesSome(nowNanos: shard.nowNanos) { settleUnclaimed() }
        stateTimer?.arm(afterNanos: StateWatch.lookNanos)
    }

    /// While Redis takes no writes, only committed offsets keep a crash from repeating pushes.
    private func settleUnclaimed() {
        sender.parkUnclaimed()
        dispatcher.waits.parkAllUnclaimed()
        for intake in intakes { intake.consumer.commitChanges() }
    }

    /// Changes must wait for Redis to accept writes; once many wait, their topic is paused.
    func holdStateIfRefused() {
        if work.recipients.count == 0, userStates.count == 0 { shard.writes.forgetIfOld(nowNanos: shard.nowNanos) }
        let isMuch = userStates.count >= shard.limits.changesMax / 2
        if shard.writes.refusal == nil {
            userState.block(.redisRefusesWrites, false)
        } else if isMuch {
            userState.block(.redisRefusesWrites, true)
        }
    }
}
