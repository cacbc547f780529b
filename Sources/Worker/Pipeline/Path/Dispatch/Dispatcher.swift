// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import EventLoop
import Payload
import PushCore
import Redis
import Telemetry

/// A claimed recipient: the route of each device in each round, APNs' answers, and the hand-back to another owner.
final class Dispatcher {
    /// Recipients with a new record. Their marks may be built after all of this stage have theirs.
    let recorded = Tray<RecipientJob>()
    /// Recipients of a revoke that lowered a badge; their devices must get the number.
    let lowered = Tray<RecipientJob>()
    /// Devices that got the lowered number with the revoke's alert.
    let toldByAlert = Tray<ToldBadge>()
    let devices: DeviceEnds
    let ends: RecipientEnds
    let waits: RecipientWaits
    /// Accepted numbers of devices that other workers may push too.
    let badges: ShownBadges
    private let shard: ShardContext
    private let work: WorkTable
    private let claims: Claims
    private let sender: Sender
    private let recorder: Recorder
    private let bursts: Bursts
    private let parking: Parking
    private let notes: MarkNotes
    private let copies: ConnectionCopies

    /// The tag has one byte for a device's index. No user has so many devices.
    static let devicesMax = 255
    static let reboundRoundsMax = 8

    init(
        _ shard: ShardContext, _ work: WorkTable, claims: Claims, sender: Sender, recorder: Recorder, bursts: Bursts,
        parking: Parking
    ) {
        self.shard = shard
        self.work = work
        self.claims = claims
        self.sender = sender
        self.recorder = recorder
        self.bursts = bursts
        self.parking = parking
        notes = MarkNotes(shard: shard)
        copies = ConnectionCopies(shard: shard, recorder: recorder)
        badges = ShownBadges(shard)
        devices = DeviceEnds(shard, work, sender: sender, recorder: recorder, parking: parking)
        ends = RecipientEnds(
            shard, work, devices: devices, claims: claims, recorder: recorder, parking: parking, notes: notes)
        waits = RecipientWaits(
            shard, work, devices: devices, ends: ends, recorder: recorder, parking: parking)
    }

    // MARK: Answers

    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        guard tag.question == .acks else { return }
        let devices = StateStore.devices(reply)
        if let job = readingOwnAcks(tag.ref) {
            didReadOwnAcks(job, devices)
        } else {
            waits.didReadAcks(tag.ref, devices)
        }
    }

    func didFail(_ tag: Tag, _ fault: RedisFault, isAbsent: Bool) {
        guard tag.question == .acks else { return waits.didFailNote(tag.ref, fault) }
        guard let job = readingOwnAcks(tag.ref) else { return waits.didFailAcks(tag.ref, isAbsent: isAbsent) }
        if isAbsent { didReadOwnAcks(job, []) } else { ends.again.append(job) }
        shard.requestTurn()
    }

    /// The recipient of the answer, if its present round reads the acks for an earlier try's deliveries.
    private func readingOwnAcks(_ ref: WorkRef) -> RecipientJob? {
        guard let job = work.recipient(ref), job.candidate?.phase == .readingAcks else { return nil }
        return job
    }

    private func didReadOwnAcks(_ job: RecipientJob, _ acknowledged: [String]) {
        job.candidate?.acknowledged = acknowledged
        route(job)
    }

    // MARK: After the claim

    /// The result of the claim: finished before, another read, a wait for a twin or for acks, or the routes.
    ///
    /// - Parameter pass: keeps it behind an earlier recipient of its user and conversation that has not passed.
    func didClaim(_ job: RecipientJob, pass: (RecipientJob) -> Passage) -> AfterClaim {
        guard let candidate = job.candidate else { return .passed }
        claims.applyRemembered(job, candidate)
        guard let claim = candidate.claim else { return .passed }
        if claim.state == .ended {
            endDuplicate(job)
            return .passed
        }
        job.note(claim, isFirst: job.firstClaim == .none)
        if candidate.refusal != nil, job.isCounted { job.flags.insert(.addsToBadge) }
        if job.firstClaim == .none { job.firstClaim = claim.state == .resume ? .resumed : .fresh }
        if pass(job) == .kept { return .waits }
        if claim.tokenVersion != candidate.tokenVersion, !candidate.isReread {
            // A token was bound or unbound a moment ago: the routes may be wrong. A repeated claim counts nothing.
            candidate.isReread = true
            return .readAgain
        }
        if candidate.hasReboundToken, job.reboundRounds < Self.reboundRoundsMax {
            job.reboundRounds += 1
            return .readAgain
        }
        // While the claim was on its way, an earlier event of the user may have been parked whole.
        if waits.parkBehindEarlier(job, candidate) == .kept { return .passed }
        if waits.parkBesideEarlierTry(job, candidate) == .kept { return .passed }
        guard claims.takeKey(job) == .goesOn else {
            waitForTwin(job)
            return .passed
        }
        noteLowered(job, claim)
        // A delivery of an earlier try may have been acknowledged: a second delivery would alert twice.
        if claim.state == .resume, job.isResumed, job.devices.isEmpty, candidate.acknowledged == nil,
            job.event.message != nil, !job.uid.isEmpty
        {
            askAcks(job, candidate)
            return .readsAcks
        }
        route(job)
        return .passed
    }

    enum AfterClaim {
        /// Later recipients of its conversation may continue.
        case passed
        /// It is read again once an earlier one has passed. A repeated claim counts nothing.
        case waits
        /// The acks are read. Later recipients of its conversation wait for the answer.
        case readsAcks
        /// A token changed: everything is read again.
        case readAgain
    }
    /// With `clear_on_read` the devices get the number that a revoke lowered.
    private func noteLowered(_ job: RecipientJob, _ claim: ClaimReply) {
        if !claim.owesClear || job.flags.contains(.clearsBadge) { return }
        job.flags.insert(.clearsBadge)
        lowered.append(job)
    }

    /// The same key is in progress here for an earlier delivery of the event: it is read again after the end of that
    /// one.
    func waitForTwin(_ job: RecipientJob) {
        guard let candidate = job.candidate else {
            return shard.mistake("a recipient waits for its twin after its decision")
        }
        candidate.phase = .waitingForTwin
        // The deliveries of the event's other recipients do not wait for this one.
        ends.noteDecided(job)
        recorder.flushDeliveries(of: job.event)
    }

    private func askAcks(_ job: RecipientJob, _ candidate: Candidate) {
        candidate.phase = .readingAcks
        do throws(RedisFault) {
            try shard.store.acks(app: job.event.app.id, uid: job.uid, msgID: job.event.msgID, tag: job.tag(.acks))
        } catch {
            ends.again.append(job)
        }
    }

    /// Everything was done before.
    func endDuplicate(_ job: RecipientJob) {
        let mark = job.candidate?.endedBy
        guard job.machine.decided() else { return shard.mistake("a recipient ends that is not being decided") }
        ends.noteDecided(job)
        shard.metrics.duplicates.add()
        recorder.flushDeliveries(of: job.event)
        // In a later round another worker may have finished it. Pushes in flight still return to their devices.
        devices.replaceWaiting(job)
        recorder.takeEnds(of: mark, into: job)
        job.machine.leaveUnmarked()
        ends.endIfComplete(job)
    }

    // MARK: Step 11
    // The routes of a decided recipient, in its first round and in later ones.

    /// Starts each device's route. A later round leaves alone devices that ended, are in flight, or may still
    /// acknowledge.
    func route(_ job: RecipientJob) {
        guard let candidate = job.candidate, let taken = candidate.decision, job.machine.decided() else {
            return shard.noteLate()
        }
        // Fields only, here and below: a copy of the claim counts five references.
        let isAnswered = candidate.claim?.state != nil
        if isAnswered { shard.waits?.took(.claim, job.event.lane, nanos: shard.nowNanos &- candidate.askedNanos) }
        // A read or revoke that the claim found suppresses alerts, by the long connection too (contract section 5, step
        // 15).
        let decision = taken.withoutAlerts(
            isRead: candidate.claim?.isRead ?? false, isRevoked: candidate.claim?.isRevoked ?? false)
        ends.noteDecided(job)
        if candidate.refusal == .forNow {
            job.oweMark(counts: job.isCounted)
        } else if isAnswered, job.owesClaim {
            // This round's claim pays that of an earlier round. A permanent fault of the key leaves only the mark.
            job.openMark = .mayExist
        }
        if job.flags.contains(.countedLate) { badges.didCountLate(job) }
        if let ends = candidate.claim?.notes?.ends, !ends.isEmpty { recorder.takeEnds(ends, into: job) }
        let isNew = job.isUntouched && candidate.claim?.notes == nil
        let plan =
            isNew
            ? Plan(first: decision)
            : Plan(decision, progress(of: job, candidate), allowed: addressedDevices(job, candidate))
        carryOut(plan, job, candidate)
    }

    private func carryOut(_ plan: Plan, _ job: RecipientJob, _ candidate: Candidate) {
        copies.repeatCopies(of: job, candidate, plan)
        for push in plan.repeated { repeatRecord(push, job, candidate) }
        if job.event.wantsSMS { job.smsText = smsText(job, candidate) }
        recordWithoutDevice(job, plan)
        noteHeldBack(job, candidate, plan.decision)
        for index in plan.ended { endRoute(job, index, plan.reasonOfLostRoute) }
        for index in job.devices.indices where job.devices[index].standing == .waiting { devices.replace(job, index) }
        beginDevices(job, candidate, plan.routes)
        devices.record(plan.lost, of: job)
        if job.owesClaim { waits.parkUnclaimed(job) }
        waits.scheduleAckLook(job)
        recorder.flushDeliveries(of: job.event)
        ends.endIfComplete(job)
    }

    private func beginDevices(_ job: RecipientJob, _ candidate: Candidate, _ routes: [Route]) {
        var turns = takeTurns(job)
        let first = job.devices.count
        for route in routes.prefix(max(0, Self.devicesMax - first)) { job.devices.append(DeviceWork(route: route)) }
        job.machine.opened(devices: job.devices.count - first)
        noteDesktops(job, candidate)
        for index in first..<job.devices.count {
            let place = turns.firstIndex { $0.device.isSame(as: job.devices[index].route.device) }
            let turn = place.map { turns.remove(at: $0) }
            if let turn {
                job.devices[index].queueKey = turn.key
                job.devices[index].inheritsTurn = true
            }
            begin(job, index, candidate)
            guard let turn else { continue }
            // Still true if it is not pushed after all.
            if job.devices[index].inheritsTurn { leave(turn) } else { job.devices[index].push?.merged = turn.merged }
            job.devices[index].inheritsTurn = false
        }
        for turn in turns { leave(turn) }
    }

    /// The turn of a push that its successor takes, and the other messages of a merged one.
    private typealias Turn = (device: String, key: UInt64, merged: MergedPush?)

    /// For pushes with re-bound tokens: pushes behind them are newer, so their successors take their places.
    private func takeTurns(_ job: RecipientJob) -> [Turn] {
        var turns: [Turn] = []
        for index in job.devices.indices where job.devices[index].standing == .rebound {
            let merged = job.devices[index].push?.merged.take()
            if devices.replaceInPlace(job, index) {
                turns.append((job.devices[index].route.device, job.devices[index].queueKey, merged))
            } else if let merged {
                devices.follow(merged, .suppressed)
            }
        }
        return turns
    }

    /// The device is free for the next message of a merged push, or for its next push.
    private func leave(_ turn: Turn) {
        if !(turn.merged.map { devices.follow($0, .suppressed, turn: turn.key) } ?? false) {
            sender.leaveQueue(turn.key)
        }
    }

    /// A later round ends a push that waits for its turn, a delivery of an expired message, or a push with a token that moved.
    private func endRoute(_ job: RecipientJob, _ index: Int, _ reason: Reason) {
        let wasQueued = job.devices[index].standing == .queued
        devices.end(job, index, Verdict(ofEnd: reason), reason.rawValue)
        if wasQueued { copies.deliver(job, index, accepted: false, alert: false) }
    }

    /// Everything that was done for the recipient before this round's decision.
    private func progress(of job: RecipientJob, _ candidate: Candidate) -> Progress {
        var progress = job.progress
        let notes = candidate.claim?.notes
        progress.add(notes)
        progress.acknowledged = (candidate.acknowledged ?? []).filter {
            job.isResumed || progress.silent.containsSame($0)
        }
        if job.isResumed, job.devices.isEmpty {
            progress.earlierTry = Progress.EarlierTry(notes)
        }
        if !progress.isUntouched { progress.pushedTokens = pushedTokens(job, candidate) }
        let settings = candidate.recipient.settings
        progress.desktopHasIt =
            !settings.pushWhenDesktopOnline && settings.holdSeconds == 0
            && candidate.recipient.presence.contains {
                $0.platform.isDesktop && progress.acknowledged.containsSame($0.device)
            }
        return progress
    }

    /// The user's tokens that were pushed before, possibly when their device had another name.
    private func pushedTokens(_ job: RecipientJob, _ candidate: Candidate) -> [Int] {
        let tokens = candidate.recipient.tokens
        let prefix = job.pushIDPrefix
        return tokens.indices.filter { token in
            let id = prefix.id(tokenHex: tokens[token].record.hex)
            return candidate.claim?.notes?.accepted.contains { $0.pushID == id } ?? false
                || job.devices.contains {
                    $0.standing == .settled && $0.push?.id == id && ($0.isWithClient || $0.push?.isAccepted == true)
                }
        }
    }

    /// The devices that have a route where an alert is allowed.
    private func addressedDevices(_ job: RecipientJob, _ candidate: Candidate) -> [String] {
        let now = shard.nowMs
        if let message = job.event.message {
            return message.read {
                PushCore.addressedDevices($0, of: candidate.recipient, policy: job.event.app.policy, now: now)
            }
        }
        return job.event.content?.activity?.addressedDevices(of: candidate.recipient) ?? []
    }

    /// Another try pushed to the device, before this one or since: its record may not have been written.
    private func repeatRecord(_ push: EarlierPush, _ job: RecipientJob, _ candidate: Candidate) {
        // The note that it was accepted may be lost as well.
        if job.event.activity?.action == .end { notes.writeActivity(of: job) }
        var record = OutcomeRecord(
            uid: job.uid, device: push.device, verdict: .accepted, reason: push.isForced || job.isForced ? .forced : .ok
        )
        record.pushID = push.pushID ?? job.earlierPushID(of: push.device, candidate)
        record.badge = push.badge
        job.flags.insert(.accepted)
        if job.flags.contains(.clearsBadge) { toldByAlert.append(ToldBadge(job, device: push.device)) }
        recorder.write(record, of: job)
    }

    /// The text of an SMS is that of the user's alert.
    private func smsText(_ job: RecipientJob, _ candidate: Candidate) -> SMSText? {
        job.event.message?.read { message in
            SMSText(
                PayloadVariant(
                    message, tokens: candidate.recipient.tokens, settings: job.settings, isForced: job.isForced,
                    defaultLanguage: job.event.app.policy.defaultLanguage))
        }
    }

    private func recordWithoutDevice(_ job: RecipientJob, _ plan: Plan) {
        job.leftReason = plan.decision.finalReason ?? .noToken
        if plan.isUnreached { job.flags.insert(.failed) }
        guard let reason = plan.withoutDevice else { return }
        job.flags.insert(.recordedWithoutDevice)
        recorder.write(OutcomeRecord(uid: job.uid, verdict: Verdict(ofEnd: reason), reason: reason), of: job)
        if reason == .noToken, !job.uid.isEmpty { recorder.offerSMS(job, .noToken) }
    }

    /// Stores a message held by DND, for the digest.
    private func noteHeldBack(_ job: RecipientJob, _ candidate: Candidate, _ decision: Decision) {
        guard job.event.app.sendsDigest, job.event.digest == nil, let message = job.event.message else { return }
        let endMs = message.read {
            DigestRule.endMs(
                $0, decision, for: candidate.recipient, policy: job.event.app.policy, zones: shard.zones,
                now: shard.nowMs)
        }
        if let endMs { job.heldUntilMs = endMs }
    }

    /// Finds the live desktops among the devices, if phones may wait for them.
    private func noteDesktops(_ job: RecipientJob, _ candidate: Candidate) {
        if candidate.recipient.settings.pushWhenDesktopOnline { return }
        for index in job.devices.indices
        where candidate.recipient.hasLiveDesktop(job.devices[index].route.device, at: shard.nowMs) {
            job.devices[index].isDesktop = true
        }
    }

    // MARK: The way of one device

    private func begin(_ job: RecipientJob, _ index: Int, _ candidate: Candidate) {
        if endIfAcknowledged(job, index, candidate) { return }
        switch job.devices[index].route.way {
        case .apns(let token, let copyTo):
            if let copyTo, candidate.recipient.presence.indices.contains(copyTo.presence) {
                job.devices[index].connection = LiveConnection(candidate.recipient.presence[copyTo.presence])
            }
            startPush(job, index, candidate, token: token)
        case .connection(let presence, let alert, let ackWithinMs):
            guard candidate.recipient.presence.indices.contains(presence) else {
                return devices.end(job, index, .suppressed, Reason.noToken.rawValue)
            }
            deliver(job, index, candidate, candidate.recipient.presence[presence], alert: alert, ackWithinMs)
        case .hold(let token, let holdMs):
            if waits.hold(job, index, holdMs: holdMs) == .goesOn { startPush(job, index, candidate, token: token) }
        case .none(let reason):
            devices.end(job, index, Verdict(ofEnd: reason), reason.rawValue)
        }
    }

    /// - Returns: true if the device acknowledged an earlier delivery and needs nothing more.
    private func endIfAcknowledged(_ job: RecipientJob, _ index: Int, _ candidate: Candidate) -> Bool {
        guard let acknowledged = candidate.acknowledged, acknowledged.containsSame(job.devices[index].route.device)
        else { return false }
        devices.endAcknowledged(job, index)
        return true
    }

    /// Steps 13-16 for one device.
    private func startPush(_ job: RecipientJob, _ index: Int, _ candidate: Candidate, token: Int) {
        guard candidate.recipient.tokens.indices.contains(token) else {
            return devices.end(job, index, .suppressed, Reason.noToken.rawValue)
        }
        let bound = candidate.recipient.tokens[token]
        let facts = SendFacts(
            isRead: candidate.claim?.isRead ?? false, isRevoked: candidate.claim?.isRevoked ?? false,
            isTokenOwned: !candidate.lostTokens.contains(token))
        if let reason = facts.reason(expireAtMs: job.event.expiresAtMs, now: shard.nowMs) {
            devices.end(job, index, Verdict(ofEnd: reason), reason.rawValue)
            return copies.deliver(job, index, insteadOfPush: reason)
        }
        let dueMs = waits.parkedDueMs(job, device: bound.device, candidate)
        // A message that may not wait would pass those in the window: it ends the window, and is sent or parked with them.
        let mayWait = dueMs == nil && !job.owesClaim
        if job.event.app.coalesceNanos > 0, mayWait || bursts.isBehindNew(job),
            bursts.join(job, index, bound, endsNow: !mayWait) == .kept
        {
            job.devices[index].parksAtItsTurn = dueMs != nil
            notes.writeClaim(of: job)
            return recorder.traceWait(job, index, .burst)
        }
        if let dueMs {
            guard sender.hasPushes(job, device: bound.device) else {
                return devices.park(job, index, .behind, dueMs: dueMs)
            }
            job.devices[index].parksAtItsTurn = true
        }
        let isExact = shard.unstoredCounts.isEmpty || shard.isBadgeExact(app: job.event.app.id, uid: job.uid)
        sender.enqueue(
            job, index, to: bound, prefix: candidate.pushIDPrefix,
            badge: isExact ? job.badge(candidate.claim?.badge, isLowered: candidate.claim?.lowered ?? false) : nil,
            mayHaveReport: candidate.claim?.hasReport ?? true, claimedNanos: candidate.askedNanos)
    }

    private func deliver(
        _ job: RecipientJob, _ index: Int, _ candidate: Candidate, _ target: DevicePresence, alert: Bool,
        _ ackWithinMs: Int64?
    ) {
        job.devices[index].connection = LiveConnection(target)
        recorder.deliver(
            DeliveryTarget(
                uid: job.uid, device: target.device, connectionEpoch: target.connectionEpoch, alert: alert,
                pushed: false, ackByMs: ackWithinMs.map { shard.nowMs &+ $0 }), gateway: target.gateway, of: job)
        if let ackWithinMs {
            notes.writeAddressed(of: job, index, candidate)
            let dueNanos = shard.nowNanos &+ UInt64(max(0, ackWithinMs)) &* 1_000_000
            job.devices[index].deliver(ackDueNanos: dueNanos)
        } else {
            // A delivery without an alert needs no ack. A denied recipient has its record already.
            devices.end(
                job, index, .online, Reason.ok.rawValue,
                isRecorded: !job.flags.contains(.recordedWithoutDevice))
        }
    }

    // MARK: Step 17
    // APNs' answer, and its consequences for the token, the user and the operator.

    func didEnd(_ push: EndedPush) {
        let index = Int(push.tag.index)
        guard let job = work.recipient(push.tag.ref), job.isPushing(index),
            let ended = job.devices[index].pushParts()
        else { return shard.noteLate() }
        let bound = ended.token
        if case .deferred(_, _, let retryAfterMs) = push.outcome, job.mayPark {
            devices.park(job, index, .retryAfter, dueMs: shard.steadyMs &+ retryAfterMs)
            return ends.endIfComplete(job)
        }
        let latency = shard.nowNanos &- ended.startedNanos
        let ending = Ending(push.outcome, token: bound, isForced: job.isForced)
        let isAccepted = ending.verdict == .accepted
        if isAccepted {
            job.flags.insert(.accepted)
            if job.flags.contains(.clearsBadge), ended.badge != nil {
                toldByAlert.append(ToldBadge(job, device: bound.device))
            }
            noteAccepted(job, index)
            if parking.devices.hasHeld { release(job.event.app.id, job.uid, bound.device) }
            if job.isAddedByClient { sender.addedAlerts.insert(job.addedAlert(index, job.event.subject.id)) }
            shard.waits?.took(.push, job.event.lane, nanos: latency)
            shard.metrics.accepted(job.event.origin?.source.kafkaMs ?? 0, job.event.lane, nowMs: shard.nowMs)
        }
        devices.end(job, index, ending.verdict, ending.reason) { record in
            record.label = ending.label
            record.apnsID = ending.apnsID
            record.status = ending.status
            record.badge = ended.badge ?? job.event.senderBadge
            record.attempts = push.attempts
            record.credential = push.credential
        }
        if isAccepted { badges.didAccept(job, index, bound) }
        if ending.verdict == .rejected { notes.writeRejected(of: job, index) }
        if !job.event.isBroadcast,
            recorder.removeIfDead(ending, of: bound, app: job.event.app, uid: job.uid, recipient: job.ref)
        {
            job.machine.recordSent()
        }
        copies.deliver(job, index, accepted: isAccepted, alert: push.outcome.alertsByCopy)
        ends.endIfComplete(job)
        recorded.append(job)
    }

    /// APNs takes pushes of the device again: its other pushes need not wait any longer.
    private func release(_ app: String, _ uid: String, _ device: String) {
        let released = ReleasedDevice(app: app, uid: uid, device: device)
        guard parking.devices.isHeld(released.key) else { return }
        parking.release(released)
        sender.queues.release(released)
        // If this is lost, later pushes wait as long as the note says.
        try? shard.store.hastenParked(app: app, uid: uid, device: device, nowMs: shard.nowMs, tag: Tag.noteBits)
    }

    /// While other devices of the user are open, another owner takes over, or the broker accepts no records, the next
    /// try must not push this device again. A started Live Activity runs from now. Best effort: a loss with the
    /// connection costs at most one extra push.
    private func noteAccepted(_ job: RecipientJob, _ index: Int) {
        notes.writeActivity(of: job)
        job.devices[index].push?.isAccepted = true
        let isLast = job.machine.openDevices <= 1 && job.machine.isMarked && job.machine.isOpen
        job.unmarkedDevice = Int32(index)
        if !isLast || recorder.outbox.isBehind || job.flags.contains(.partitionGoes) { notes.writeAccepted(of: job) }
    }

    /// A queued push is not sent.
    func didNotSend(_ unsent: UnsentPush) {
        guard let job = work.recipient(unsent.device.work), job.isPushing(unsent.device.device) else {
            return shard.noteLate()
        }
        let index = unsent.device.device
        switch unsent.cause {
        case .check(.stop(let reason)):
            if reason == .coalesced { job.event.app.metrics.coalesced.add() }
            devices.end(job, index, Verdict(ofEnd: reason), reason.rawValue)
            copies.deliver(job, index, insteadOfPush: reason)
        case .check(.acknowledged):
            devices.endAcknowledged(job, index)
        case .check(.endedElsewhere(let earlier)):
            devices.end(job, index, .suppressed, Reason.ok.rawValue, isRecorded: false, counted: earlier)
            job.machine.leaveUnmarked()
        case .check(.decideAgain):
            return decideAgainForRebound(job, index)
        case .check(.send), .check(.askAgain): return
        case .park(let cause, let dueMs, let client): devices.park(job, index, cause, dueMs: dueMs, client: client)
        case .unfit(let fault):
            // Our own mistake, so it is logged.
            shard.log.error(
                "cannot send an invalid push", ["fault": .string(fault.text), "app": .string(job.event.app.id)])
            if case .payloadTooLarge = fault {
                devices.end(job, index, .suppressed, Reason.payloadTooLarge.rawValue)
                copies.deliver(job, index, insteadOfPush: .payloadTooLarge)
            } else {
                devices.end(job, index, .rejected, NoAnswer.unfit.rawValue)
                copies.deliver(job, index, accepted: false, alert: NoAnswer.unfit.alertsByCopy)
            }
        }
        ends.endIfComplete(job)
    }

    /// The same user re-bound the token of a waiting push.
    private func decideAgainForRebound(_ job: RecipientJob, _ index: Int) {
        guard job.reboundRounds < Self.reboundRoundsMax else {
            devices.end(job, index, .suppressed, Reason.tokenMoved.rawValue)
            return ends.endIfComplete(job)
        }
        job.reboundRounds += 1
        // The new token's push does not wait for another window.
        if case .none = job.burst { job.burst = .leads }
        job.devices[index].isRebound = true
        ends.decideAgain(job)
    }

    /// A message that was checked at the window's end and is not pushed.
    func drop(_ dropped: Bursts.Dropped) {
        guard let job = work.recipient(dropped.recipient) else { return shard.noteLate() }
        if dropped.reason == nil { job.machine.leaveUnmarked() }
        for index in job.devices.indices where job.devices[index].isMerging {
            devices.end(
                job, index, Verdict(ofEnd: dropped.reason ?? .ok), (dropped.reason ?? .ok).rawValue,
                isRecorded: dropped.reason != nil)
        }
        ends.endIfComplete(job)
    }

    /// Once a second: removals that may continue.
    func releaseBrakes(of apps: some Sequence<AppContext>) {
        let nowMs = Int64(shard.nowNanos / 1_000_000)
        for app in apps {
            for cause in app.brake.release(nowMs: nowMs) {
                app.metrics.brake(cause.label, isEngaged: false)
                shard.log.warning(
                    "token removal resumed", ["app": .string(app.id), "cause": .string(cause.label)])
            }
        }
    }

    // MARK: Hand-back

    /// Its partition goes to another owner. Pushes on a stream end here and are marked; everything else is left to that
    /// owner.
    func handBack(_ job: RecipientJob) {
        ends.noteDecided(job)
        var isLeft = job.machine.handBack()
        for index in job.devices.indices where job.devices[index].isOpen {
            // In the client and not withdrawn: it is on a stream.
            if job.devices[index].isWithClient { continue }
            devices.replace(job, index)
            isLeft = true
        }
        // The next owner may come before the broker's answer about its record, also for pushes now in flight.
        job.flags.insert(.partitionGoes)
        if job.machine.isOpen { notes.writeAccepted(of: job) }
        if isLeft {
            job.machine.leaveUnmarked()
            job.event.staysUnsettled = true
        }
        ends.endIfComplete(job)
    }

    /// The APNs client returned a push without a stream.
    func withdrew(_ device: DeviceRef) {
        guard let job = work.recipient(device.work), job.isPushing(device.device) else { return shard.noteLate() }
        job.machine.leaveUnmarked()
        job.event.staysUnsettled = true
        devices.replace(job, device.device)
    }
}
