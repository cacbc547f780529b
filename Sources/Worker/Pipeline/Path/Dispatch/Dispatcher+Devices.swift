// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore

/// The way of one device: a push, a delivery, a hold, or nothing.
extension Dispatcher {
    func begin(_ job: RecipientJob, _ index: Int, _ candidate: Candidate) {
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
    func copyAccepted(_ job: RecipientJob, _ candidate: Candidate, _ plan: Plan) {
        guard job.isResumed, job.devices.isEmpty, !plan.repeated.isEmpty, let message = job.event.message else {
            return
        }
        let strategy = message.read { $0.push.strategy } ?? job.event.app.policy.strategy
        for route in plan.decision.routes {
            guard let push = plan.repeated.first(where: { $0.device.isSame(as: route.device) }),
                let presence = route.way.copyOfEarlierPush(strategy),
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
