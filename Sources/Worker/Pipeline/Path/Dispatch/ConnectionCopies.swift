// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore

/// Strategy 4: a live device gets the message by its connection too, after the outcome of its push.
struct ConnectionCopies {
    let shard: ShardContext
    let recorder: Recorder

    /// Strategy 4 without a push: the live device still gets the message, unless it expired.
    func deliver(_ job: RecipientJob, _ index: Int, insteadOfPush reason: Reason) {
        deliver(job, index, accepted: false, alert: reason.alertsByCopy)
    }

    /// Strategy 4: the live device gets a copy after the push's outcome, in time.
    ///
    /// - Parameter alert: whether the copy alerts; nil if there is no copy.
    func deliver(_ job: RecipientJob, _ index: Int, accepted: Bool, alert: Bool?) {
        guard let alert = job.devices[index].copyAlert(alert), job.event.expiresAtMs > shard.nowMs,
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
    func repeatCopies(of job: RecipientJob, _ candidate: Candidate, _ plan: Plan) {
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
                    pushed: true, pushID: push.pushID ?? job.earlierPushID(of: target.device, candidate)),
                gateway: target.gateway, of: job)
        }
    }
}
