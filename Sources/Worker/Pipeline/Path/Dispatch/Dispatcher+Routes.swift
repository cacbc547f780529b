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
        let decision = taken.withoutAlerts(
            isRead: candidate.claim?.isRead ?? false, isRevoked: candidate.claim?.isRevoked ?? false)
        noteDecided(job)
        job.facts = candidate.facts
        if candidate.owesClaim {
            job.flags.formUnion(job.isCounted ? [.owesClaim, .owesCount] : .owesClaim)
        } else if isAnswered, !candidate.isUnclaimed {
            // This round's claim pays an owed claim of an earlier round.
            job.flags.subtract([.owesClaim, .owesCount])
        }
        if job.flags.contains(.countedLate) { noteLateBadges(job) }
        carryOut(
            Plan(decision, progress(of: job, candidate), allowed: addressedDevices(job, candidate)), job, candidate)
    }

    private func carryOut(_ plan: Plan, _ job: RecipientJob, _ candidate: Candidate) {
        copyAccepted(job, candidate, plan)
        for push in plan.repeated { repeatRecord(push, job, candidate) }
        if job.event.wantsSMS { job.smsTokens = candidate.recipient.tokens }
        recordWithoutDevice(job, plan)
        noteHeldBack(job, candidate, plan.decision)
        for index in plan.ended { endRoute(job, index, plan.reasonOfLostRoute) }
        for index in job.devices.indices where job.devices[index].standing == .waiting { replace(job, index) }
        beginDevices(job, candidate, plan.routes)
        record(plan.lost, of: job)
        if job.flags.contains(.owesClaim) { parkUnclaimed(job) }
        scheduleAckLook(job)
        recorder.flushDeliveries(of: job.event)
        endIfComplete(job)
    }

    private func beginDevices(_ job: RecipientJob, _ candidate: Candidate, _ routes: [Route]) {
        var turns = takeTurns(job)
        let first = job.devices.count
        for route in routes.prefix(max(0, Self.devicesMax - first)) {
            var device = DeviceWork(route: route)
            if let turn = turns.firstIndex(where: { $0.device.isSame(as: route.device) }) {
                device.queueKey = turns.remove(at: turn).key
                device.inheritsTurn = true
            }
            job.devices.append(consume device)
        }
        for turn in turns { sender.leaveQueue(turn.key) }
        job.machine.opened(devices: job.devices.count - first)
        noteDesktops(job, candidate)
        for index in first..<job.devices.count {
            begin(job, index, candidate)
            // Not pushed after all: the device is free for its next push.
            if job.devices[index].inheritsTurn { sender.leaveQueue(job.devices[index].queueKey) }
            job.devices[index].inheritsTurn = false
        }
    }

    /// For pushes with re-bound tokens: pushes behind them are newer, so their successors take their places.
    private func takeTurns(_ job: RecipientJob) -> [(device: String, key: UInt64)] {
        var turns: [(device: String, key: UInt64)] = []
        for index in job.devices.indices where job.devices[index].standing == .rebound {
            if replaceInPlace(job, index) {
                turns.append((job.devices[index].route.device, job.devices[index].queueKey))
            }
            // Its successor may wait for another window, so the next newest message carries the merged push.
            if let merged = job.devices[index].push?.merged.take() { follow(merged, .parked) }
        }
        return turns
    }

    /// A later round ends a push that waits for its turn, a delivery whose message expired, or a push with a token that moved.
    private func endRoute(_ job: RecipientJob, _ index: Int, _ reason: Reason) {
        let wasQueued = job.devices[index].standing == .queued
        end(job, index, Verdict(ofEnd: reason), reason.rawValue)
        if wasQueued { deliverCopy(job, index, accepted: false, alert: false) }
    }

    /// Everything that was done for the recipient before this round's decision.
    private func progress(of job: RecipientJob, _ candidate: Candidate) -> Progress {
        var progress = job.progress
        progress.accepted = candidate.claim?.accepted ?? []
        progress.acknowledged = (candidate.acknowledged ?? []).filter {
            job.isResumed || progress.silent.containsSame($0)
        }
        if job.isResumed, job.devices.isEmpty {
            progress.earlierTry = Progress.EarlierTry(
                addressed: candidate.claim?.addressedDevices ?? [], withoutDevice: candidate.claim?.withoutDevice)
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
            return candidate.claim?.accepted.contains { $0.pushID == id } ?? false
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
        if job.event.activity?.action == .end { noteActivity(job) }
        var record = OutcomeRecord(
            uid: job.uid, device: push.device, verdict: .accepted, reason: push.isForced || job.isForced ? .forced : .ok
        )
        record.pushID = push.pushID ?? earlierPushID(job, candidate, push.device)
        record.badge = push.badge
        job.flags.insert(.accepted)
        job.recorded.append(push.device)
        if job.flags.contains(.clearsBadge) { toldByAlert.append(ToldBadge(job, device: push.device)) }
        recorder.write(record, of: job)
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
}
