// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore

/// Step 11: the routes of a decided recipient, in its first round and in later ones.
extension Dispatcher {
    /// Starts each device's route. A later round leaves alone devices that ended, are in flight, or may still
    /// acknowledge.
    func route(_ job: RecipientJob) {
        guard let candidate = job.candidate, let taken = candidate.decision, job.machine.decided() else {
            return shard.late()
        }
        if job.parking != nil { recorder.countReturned(job) }
        // Fields only, here and below: a copy of the claim counts five references.
        let isAnswered = candidate.claim?.state != nil
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
            job.devices.append(consume device)
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

    /// The first round of a recipient that an earlier try began and neither finished nor parked. It may have been parked whole in
    /// between, before this decision.
    private func isFirstOfResumed(_ job: RecipientJob) -> Bool {
        job.isResumed && job.devices.isEmpty && !job.hasParkedDevices
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

    /// Devices that another try pushed to, before this one or since: their records may not have been written.
    private func recordAccepted(_ job: RecipientJob, _ candidate: Candidate) {
        let pushes = (candidate.claim?.accepted ?? []).filter { !job.hasRoute(to: $0.device) }
        if pushes.isEmpty { return }
        // The note that it was accepted may be lost as well.
        if job.event.activity?.action == .end { noteActivity(job) }
        // If the recipient is parked in this round, its record says that they are done.
        let parking = job.parking ?? RecipientParking()
        job.parking = parking
        for push in pushes where !parking.done.containsSame(push.device) {
            var record = OutcomeRecord(
                uid: job.uid, device: push.device, verdict: .accepted,
                reason: push.isForced || job.isForced ? .forced : .ok)
            record.pushID = push.pushID ?? earlierPushID(job, candidate, push.device)
            record.badge = push.badge
            job.flags.insert(.accepted)
            parking.done.append(push.device)
            if job.flags.contains(.clearsBadge) { toldByAlert.append(ToldBadge(job, device: push.device)) }
            recorder.write(record, of: job)
        }
    }

    /// Push id of an earlier attempt that a worker of an earlier version noted; nil if the token was re-bound since.
    func earlierPushID(_ job: RecipientJob, _ candidate: Candidate, _ device: String) -> PushID? {
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
}
