// SPDX-License-Identifier: Apache-2.0
import PushCore

/// The numbers of accepted pushes that another worker, or a later round, may make too low.
final class ShownBadges {
    let accepted = Tray<AcceptedBadge>()
    private let shard: ShardContext

    init(_ shard: ShardContext) {
        self.shard = shard
    }

    /// The device shows the number of the push. Another worker may have claimed a higher one while the push was out, or a later
    /// round of this message may have counted it.
    func didAccept(_ job: RecipientJob, _ index: Int, _ token: BoundToken) {
        if job.flags.contains(.countedLate) { return note(job, index, token, job.devices[index].push?.badge ?? 0) }
        guard let badge = job.devices[index].push?.noteShown() else {
            // The number of a message that counts is not 0.
            if job.isCounted, job.event.app.policy.clearOnRead { note(job, index, token, nil) }
            return
        }
        if !shard.share.isWhole { note(job, index, token, badge) }
    }

    /// A later round counted the message: the devices that an earlier one pushed are to show that.
    func didCountLate(_ job: RecipientJob) {
        for index in job.devices.indices {
            guard let push = job.devices[index].push, push.mayShowLower, let token = push.token else { continue }
            job.devices[index].push?.mayShowLower = false
            note(job, index, token, push.badge ?? 0)
        }
    }

    /// - Parameter badge: nil: it was withheld.
    private func note(_ job: RecipientJob, _ index: Int, _ token: BoundToken, _ badge: Int64?) {
        let app = job.event.app
        if !job.event.showsBadge || token.record.type != .alert || app.policy.badge != .server { return }
        let burst =
            app.coalesceNanos == 0
            ? nil : BurstRule.key(app: app.id, uid: job.uid, conversation: job.event.conversationID)
        accepted.append(
            AcceptedBadge(
                app: app, uid: job.uid, eventID: job.event.id, token: token, badge: badge ?? 0,
                isWithheld: badge == nil, asOfMs: job.event.sentMs,
                mayHaveReport: job.devices[index].push?.mayHaveReport ?? true, burst: burst))
    }
}
