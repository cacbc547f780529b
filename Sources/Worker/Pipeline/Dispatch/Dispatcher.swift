// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import PushCore
import Redis
import Telemetry

/// A decided and claimed recipient: the progress and end of each device, later rounds, and the end of the recipient.
///
/// Recipients for another round are in `again`; ended ones in `ended`.
final class Dispatcher {
    let again = Tray<RecipientJob>()
    let ended = Tray<RecipientJob>()
    /// Recipients with a new record. Their marks may be built after all of this stage have theirs.
    let recorded = Tray<RecipientJob>()
    /// Recipients with devices that wait to be parked and are now first.
    let mayBeParked = Tray<WorkRef>()
    /// Recipients of a revoke that lowered a badge; their devices must get the number.
    let lowered = Tray<RecipientJob>()
    /// Devices that got the lowered number with the revoke's alert.
    let toldByAlert = Tray<ToldBadge>()
    /// Accepted numbers of devices that other workers may push too.
    let acceptedBadges = Tray<AcceptedBadge>()
    let shard: ShardContext
    let work: WorkTable
    let claims: Claims
    let sender: Sender
    let recorder: Recorder
    let bursts: Bursts
    let parking: Parking

    /// The tag has one byte for a device's index. No user has so many devices.
    private static let devicesMax = 255
    static let reboundRoundsMax = 8

    init(
        _ shard: ShardContext, _ work: WorkTable, claims: Claims, sender: Sender, recorder: Recorder, bursts: Bursts,
        parking: Parking
    ) {
        self.parking = parking
        self.shard = shard
        self.work = work
        self.claims = claims
        self.sender = sender
        self.recorder = recorder
        self.bursts = bursts
    }

    // MARK: Answers

    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        if tag.stage == .acks { didReadAcks(tag.ref, StateStore.devices(reply)) }
    }

    func didFail(_ tag: Tag, _ fault: RedisFault) {
        if tag.stage == .acks { didFailAcks(tag.ref, fault) } else { didFailNote(tag.ref, fault) }
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
        if candidate.isUnclaimed, job.isCounted { job.flags.insert(.addsToBadge) }
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
        if parkBesideEarlierTry(job, candidate) == .kept { return .passed }
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

    /// With `clear_on_read` the devices get the number that a revoke lowered.
    private func noteLowered(_ job: RecipientJob, _ claim: ClaimReply) {
        if !claim.owesClear || job.flags.contains(.clearsBadge) { return }
        job.flags.insert(.clearsBadge)
        lowered.append(job)
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

    /// The same key is in progress here for an earlier delivery of the event: it is read again after the end of that
    /// one.
    func waitForTwin(_ job: RecipientJob) {
        guard job.machine.waitForTwin() else {
            return shard.mistake("a recipient waits for its twin after its decision")
        }
        // The deliveries of the event's other recipients do not wait for this one.
        noteDecided(job)
        recorder.flushDeliveries(of: job.event)
    }

    /// The twin has ended.
    func twinEnded(_ ref: WorkRef) {
        guard let job = work.recipient(ref), job.machine.phase == .waitingForTwin else { return shard.late() }
        decideAgain(job)
    }

    private func askAcks(_ job: RecipientJob, _ candidate: Candidate) {
        candidate.phase = .readingAcks
        do throws(RedisFault) {
            try shard.store.acks(app: job.event.app.id, uid: job.uid, msgID: job.event.msgID, tag: job.tag(.acks))
        } catch {
            again.append(job)
        }
    }

    /// Everything was done before.
    func endDuplicate(_ job: RecipientJob) {
        guard job.machine.decided() else { return shard.mistake("a recipient ends that is not being decided") }
        noteDecided(job)
        shard.metrics.duplicates.add()
        recorder.countEarlier(of: job)
        recorder.flushDeliveries(of: job.event)
        // In a later round another worker may have finished it. Pushes in flight still return to their devices.
        replaceWaiting(job)
        job.candidate = nil
        job.machine.leaveUnmarked()
        endIfComplete(job)
    }

    /// Nothing to do and nothing to record.
    func endUnrecorded(_ job: RecipientJob) {
        guard job.machine.decided() else { return shard.mistake("a recipient ends that is not being decided") }
        noteDecided(job)
        job.candidate = nil
        job.machine.leaveUnmarked()
        endIfComplete(job)
    }

    /// The first decision of a recipient brings the event's deliveries closer.
    func noteDecided(_ job: RecipientJob) {
        if job.isDecided { return }
        job.endWaiting()
        job.firstDecision = .made
        job.event.undecided -= 1
    }

    // MARK: Routes (step 11)

    /// Starts each device's route. A later round leaves alone devices that ended, are in flight, or may still
    /// acknowledge.
    func route(_ job: RecipientJob) {
        guard let candidate = job.candidate, let taken = candidate.decision, job.machine.decided() else {
            return shard.late()
        }
        if job.parking != nil { recorder.countReturned(job) }
        // Fields only, here and below: a copy of the claim counts five references.
        let isAnswered = candidate.claim != nil
        if isAnswered { shard.waits?.took(.claim, job.event.lane, nanos: shard.nowNanos &- candidate.askedNanos) }
        // A read or revoke that the claim found suppresses alerts, by the long connection too (contract section 5, step
        // 15).
        let stale = taken.withoutAlerts(
            isRead: candidate.claim?.isRead ?? false, isRevoked: candidate.claim?.isRevoked ?? false
        ).repeating(isFirstOfResumed(job) ? candidate.claim?.withoutDevice : nil)
        noteDecided(job)
        job.facts = candidate.facts
        if candidate.owesClaim {
            job.flags.formUnion(job.isCounted ? [.owesClaim, .owesCount] : .owesClaim)
        } else if isAnswered, !candidate.isUnclaimed {
            // This round's claim pays an owed claim of an earlier round.
            job.flags.subtract([.owesClaim, .owesCount])
        }
        if job.flags.contains(.countedLate) { noteLateBadges(job) }
        let earlier = earlierDevices(job, candidate)
        var decision = stale.including(earlier, allowed: addressedDevices(job, candidate))
        if !earlier.acknowledged.isEmpty {
            decision.keepPhonesWaiting(job, candidate, acknowledged: earlier.acknowledged)
        }
        if decision.alert == .deny(.expired) { return expire(job, candidate, decision, earlier) }
        for index in job.devices.indices where job.devices[index].isHeld || job.devices[index].isParked {
            replace(job, index)
        }
        copyAccepted(job, candidate, decision)
        recordAccepted(job, candidate)
        keepWordsForSMS(job, candidate)
        recordWithoutDevice(job, decision, earlier)
        noteHeldBack(job, candidate, decision)
        if case .deny(let reason) = decision.alert { endQueued(job, reason) }
        beginDevices(job, candidate, decision)
        endRebound(job, decision)
        if job.parking != nil { endReturnedWithoutRoute(job, decision) }
        job.candidate = nil
        if job.flags.contains(.owesClaim) { parkUnclaimed(job) }
        scheduleAckLook(job)
        recorder.flushDeliveries(of: job.event)
        endIfComplete(job)
    }

    private func beginDevices(_ job: RecipientJob, _ candidate: Candidate, _ decision: Decision) {
        let first = addDevices(job, candidate, decision)
        noteDesktops(job, candidate)
        for index in first..<job.devices.count {
            begin(job, index, candidate)
            // Not pushed after all: the device is free for its next push.
            if job.devices[index].inheritsTurn { sender.leaveQueue(job.devices[index].queueKey) }
            job.devices[index].inheritsTurn = false
        }
    }

    /// - Returns: the index of the first new device.
    private func addDevices(_ job: RecipientJob, _ candidate: Candidate, _ decision: Decision) -> Int {
        var turns = takeTurns(job, decision)
        let first = job.devices.count
        let earlier = candidate.claim?.accepted ?? []
        for route in decision.routes where job.devices.count < Self.devicesMax && !job.hasRoute(to: route.device) {
            if earlier.containsSame(route.device) { continue }
            if let parking = job.parking, parking.done.containsSame(route.device) { continue }
            if first > 0 || !earlier.isEmpty, wasPushed(route, job, candidate, earlier) { continue }
            var device = DeviceWork(route: route)
            if let turn = turns.firstIndex(where: { $0.device.isSame(as: route.device) }) {
                device.queueKey = turns.remove(at: turn).key
                device.inheritsTurn = true
            }
            job.devices.append(device)
        }
        for turn in turns { sender.leaveQueue(turn.key) }
        job.machine.opened(devices: job.devices.count - first)
        return first
    }

    /// For pushes with re-bound tokens: pushes behind them are newer, so their successors take their places.
    private func takeTurns(_ job: RecipientJob, _ decision: Decision) -> [(device: String, key: UInt64)] {
        var turns: [(device: String, key: UInt64)] = []
        for index in job.rebound {
            let device = job.devices[index].route.device
            guard decision.routes.contains(where: { $0.device.isSame(as: device) }) else { continue }
            if replaceInPlace(job, index) { turns.append((device, job.devices[index].queueKey)) }
            // Its successor may wait for another window, so the next newest message carries the merged push.
            if let merged = job.devices[index].push?.merged.take() { follow(merged, .parked) }
        }
        return turns
    }

    /// A rebound token without a new route: a deny ends it, or it moved.
    private func endRebound(_ job: RecipientJob, _ decision: Decision) {
        if job.rebound.isEmpty { return }
        let reason = decision.reasonOfLostRoute
        for index in job.rebound where job.devices[index].isOpen {
            end(job, index, .suppressed, reason.rawValue)
        }
        job.rebound = []
    }

    /// A deny between two rounds ends the pushes that wait for their turn at the device.
    private func endQueued(_ job: RecipientJob, _ reason: Reason) {
        for index in job.devices.indices where job.devices[index].isQueued && !job.rebound.contains(index) {
            end(job, index, .suppressed, reason.rawValue)
            deliverCopy(job, index, accepted: false, alert: false)
        }
    }

    /// Pushes that APNs accepted in an earlier try, before a crash.
    private func pushedBefore(_ job: RecipientJob, _ candidate: Candidate) -> [EarlierPush] {
        job.isResumed ? candidate.claim?.accepted ?? [] : []
    }

    /// The first round of a recipient that an earlier try began and neither finished nor parked. It may have been parked whole in
    /// between, before this decision.
    private func isFirstOfResumed(_ job: RecipientJob) -> Bool {
        guard job.isResumed, job.devices.isEmpty else { return false }
        return job.parking.map { $0.returned.isEmpty && $0.done.isEmpty } ?? true
    }

    /// The results of an earlier try or round for the devices of the recipient.
    private func earlierDevices(_ job: RecipientJob, _ candidate: Candidate) -> EarlierDevices {
        var earlier = EarlierDevices()
        let isResumed = job.isResumed
        guard isResumed || !job.silentConnections.isEmpty else { return earlier }
        let done = job.parking?.done ?? []
        let accepted = candidate.claim?.accepted ?? []
        for device in candidate.acknowledged ?? [] where !done.containsSame(device) && !accepted.containsSame(device) {
            let wasDelivered = isResumed || job.silentConnections.contains { $0.device.isSame(as: device) }
            if wasDelivered, !job.hasRoute(to: device) { earlier.acknowledged.append(device) }
        }
        guard isResumed, job.devices.isEmpty else { return earlier }
        earlier.accepted = accepted
        earlier.addressed = (candidate.claim?.addressedDevices ?? []).filter { !done.containsSame($0) }
        earlier.mayHaveRecords = isFirstOfResumed(job) && candidate.claim?.withoutDevice == nil
        return earlier
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

    /// Its records may not have been written.
    private func recordAccepted(_ job: RecipientJob, _ candidate: Candidate) {
        if !job.devices.isEmpty { return }
        // The note that it was accepted may be lost as well.
        if job.event.activity?.action == .end, !pushedBefore(job, candidate).isEmpty { noteActivity(job) }
        for push in pushedBefore(job, candidate) where !(job.parking?.done.containsSame(push.device) ?? false) {
            var record = OutcomeRecord(
                uid: job.uid, device: push.device, verdict: .accepted,
                reason: push.isForced || job.isForced ? .forced : .ok)
            record.pushID = push.pushID ?? earlierPushID(job, candidate, push.device)
            record.badge = push.badge
            job.flags.insert(.accepted)
            job.parking?.done.append(push.device)
            if job.flags.contains(.clearsBadge) { toldByAlert.append(ToldBadge(job, device: push.device)) }
            recorder.write(record, of: job)
        }
    }

    /// Push id of an earlier attempt that a worker of an earlier version noted; nil if the token was re-bound since.
    private func earlierPushID(_ job: RecipientJob, _ candidate: Candidate, _ device: String) -> PushID? {
        let tokens = candidate.recipient.tokens
        let type = job.event.message?.read { $0.tokenType } ?? .alert
        let index = tokens.indices.last { index in
            guard tokens[index].device.isSame(as: device) else { return false }
            return job.event.content?.activity?.mayUse(index, of: tokens) ?? (tokens[index].record.type == type)
        }
        guard let index, tokens[index].record.boundMs <= job.event.origin?.source.kafkaMs ?? .max else { return nil }
        return job.pushIDPrefix.id(tokenHex: tokens[index].record.hex)
    }

    /// In a later round each device that still waited expires, and each that an earlier round or try left; else the user does, once.
    private func expire(
        _ job: RecipientJob, _ candidate: Candidate, _ decision: Decision, _ earlier: EarlierDevices
    ) {
        recorder.flushDeliveries(of: job.event)
        recordAccepted(job, candidate)
        recordWithoutDevice(job, decision, earlier)
        beginDevices(job, candidate, decision)
        if job.parking != nil { endReturnedWithoutRoute(job, decision) }
        job.candidate = nil
        recordLeftBehind(job, .expired, .expired)
        for index in job.devices.indices where job.devices[index].isWaiting || job.rebound.contains(index) {
            end(job, index, .expired, Reason.expired.rawValue)
        }
        job.rebound = []
        recorded.append(job)
        endIfComplete(job)
    }

    /// A deny of steps 2-9, or `no_token`: one record for the recipient, once, unless devices have records of their own.
    private func recordWithoutDevice(_ job: RecipientJob, _ decision: Decision, _ earlier: EarlierDevices) {
        job.leftReason = decision.finalReason ?? .noToken
        guard let final = decision.finalReason, !job.flags.contains(.recordedWithoutDevice) else { return }
        let areNamed = earlier.mayHaveRecords && !decision.routes.isEmpty
        let haveVerdicts = earlier.haveVerdicts || areNamed || job.hasDeviceVerdicts(final)
        guard let reason = decision.reasonWithoutDevice(hasDeviceVerdicts: haveVerdicts) else {
            // An SMS follows where no device was reached in the end.
            if final == .noToken { job.flags.insert(.failed) }
            return
        }
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

    /// The text of an SMS depends on the tokens' fields, which go with the candidate.
    private func keepWordsForSMS(_ job: RecipientJob, _ candidate: Candidate) {
        if job.event.wantsSMS { job.smsTokens = candidate.recipient.tokens }
    }

    // MARK: One device

    private func begin(_ job: RecipientJob, _ index: Int, _ candidate: Candidate) {
        if endAcknowledged(job, index, candidate) { return }
        switch job.devices[index].route.way {
        case .apns(let token, let copyTo):
            if let copyTo, candidate.recipient.presence.indices.contains(copyTo.presence) {
                job.devices[index].connection = LiveConnection(candidate.recipient.presence[copyTo.presence])
            }
            startPush(job, index, candidate, token: token)
        case .connection(let presence, let alert, let ackWithinMs):
            guard candidate.recipient.presence.indices.contains(presence) else {
                return end(job, index, .suppressed, Reason.noToken.rawValue)
            }
            deliver(job, index, candidate, candidate.recipient.presence[presence], alert: alert, ackWithinMs)
        case .hold(let token, let holdMs):
            hold(job, index, candidate, token: token, holdMs: holdMs)
        case .none(let reason):
            end(job, index, Verdict(ofEnd: reason), reason.rawValue)
        }
    }

    /// - Returns: true if the device acknowledged an earlier delivery and needs nothing more.
    private func endAcknowledged(_ job: RecipientJob, _ index: Int, _ candidate: Candidate) -> Bool {
        guard let acknowledged = candidate.acknowledged, acknowledged.containsSame(job.devices[index].route.device)
        else { return false }
        endAcknowledged(job, index)
        return true
    }

    /// Steps 13-16 for one device.
    func startPush(_ job: RecipientJob, _ index: Int, _ candidate: Candidate, token: Int) {
        guard candidate.recipient.tokens.indices.contains(token) else {
            return end(job, index, .suppressed, Reason.noToken.rawValue)
        }
        let bound = candidate.recipient.tokens[token]
        let facts = SendFacts(
            isRead: candidate.claim?.isRead ?? false, isRevoked: candidate.claim?.isRevoked ?? false,
            isTokenOwned: !candidate.lostTokens.contains(token))
        if let reason = facts.reason(expireAtMs: job.event.expiresAtMs, now: shard.nowMs) {
            end(job, index, Verdict(ofEnd: reason), reason.rawValue)
            return leaveToConnection(job, index, reason)
        }
        if let dueMs = parkedDueMs(job, device: bound.device, candidate) {
            guard sender.hasPushes(job, device: bound.device) else { return park(job, index, .behind, dueMs: dueMs) }
            job.devices[index].parksAtItsTurn = true
        } else if job.event.app.coalesceNanos > 0, !job.flags.contains(.owesClaim),
            bursts.join(job, index, bound) == .kept
        {
            markClaimed(job)
            return recorder.traceWait(job, index, .burst)
        }
        sender.enqueue(
            job, index, to: bound,
            badge: job.badge(candidate.claim?.badge, isLowered: candidate.claim?.lowered ?? false),
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
            noteAddressed(job, index, candidate)
            let dueNanos = shard.nowNanos &+ UInt64(max(0, ackWithinMs)) &* 1_000_000
            job.devices[index].deliver(ackDueNanos: dueNanos)
        } else {
            // A delivery without an alert needs no ack. A denied recipient has its record already.
            end(
                job, index, .online, Reason.ok.rawValue,
                isRecorded: !job.flags.contains(.recordedWithoutDevice))
        }
    }

    /// Strategy 4 without a push: the live device still gets the message, unless it expired.
    func leaveToConnection(_ job: RecipientJob, _ index: Int, _ reason: Reason) {
        deliverCopy(job, index, accepted: false, alert: reason.alertsByCopy)
    }

    /// Strategy 4: the live device gets a copy after the push's outcome, in time.
    ///
    /// - Parameter alert: whether the copy alerts; nil if there is no copy.
    func deliverCopy(_ job: RecipientJob, _ index: Int, accepted: Bool, alert: Bool?) {
        guard let alert = job.devices[index].route.way.copyAlert(alert), job.event.expiresAtMs > shard.nowMs,
            let target = job.devices[index].connection
        else { return }
        recorder.deliver(
            DeliveryTarget(
                uid: job.uid, device: target.device, connectionEpoch: target.epoch, alert: alert, pushed: accepted,
                pushID: accepted ? job.devices[index].push?.id : nil), gateway: target.gateway, of: job)
        recorder.flushDeliveries(of: job.event)
    }

    /// Strategy 4 after an earlier try that ended with a crash: the copies of its pushes may have been lost. They alert
    /// nobody, so a second one does no harm.
    private func copyAccepted(_ job: RecipientJob, _ candidate: Candidate, _ decision: Decision) {
        guard job.devices.isEmpty, let message = job.event.message else { return }
        let pushes = pushedBefore(job, candidate)
        if pushes.isEmpty { return }
        let strategy = message.read { $0.push.strategy } ?? job.event.app.policy.strategy
        for route in decision.routes {
            guard let push = pushes.first(where: { $0.device.isSame(as: route.device) }),
                let presence = route.way.copyOfEarlierPush(strategy),
                !(job.parking?.done.containsSame(route.device) ?? false),
                candidate.recipient.presence.indices.contains(presence)
            else { continue }
            let target = candidate.recipient.presence[presence]
            recorder.deliver(
                DeliveryTarget(
                    uid: job.uid, device: target.device, connectionEpoch: target.connectionEpoch, alert: false,
                    pushed: true, pushID: push.pushID ?? earlierPushID(job, candidate, target.device)),
                gateway: target.gateway, of: job)
        }
    }
}
