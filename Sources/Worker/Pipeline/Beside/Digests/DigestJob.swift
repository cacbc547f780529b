// SPDX-License-Identifier: Apache-2.0
import PushCore

/// One user's digest under a lease.
final class DigestJob {
    let app: AppContext
    let user: DueUser
    /// The end of the lease, Unix ms.
    let leaseMs: Int64
    var ref = WorkRef.none
    /// Number of unread messages in it.
    var count = 0
    /// DND is active again: due at this time, Unix ms.
    var putOffToMs: Int64?

    init(app: AppContext, user: DueUser, leaseMs: Int64) {
        self.app = app
        self.user = user
        self.leaseMs = leaseMs
    }

    /// The digest as a message without a sender: the same id for every try, so that it is claimed and pushed once.
    ///
    /// - Parameter oldestMs: `sent_ms` of the oldest message in it.
    func event(oldestMs: Int64, nowMs: Int64, expireAtMs: Int64) -> EventJob {
        let id = "digest-\(oldestMs)"
        var message = Message(
            msgID: id, expireAtMs: expireAtMs, conversation: Conversation(id: "digest", type: .system),
            from: .init(uid: ""), to: .init(uids: [user.uid]))
        message.push.badge = false
        message.push.prefix = false
        message.push.strategy = .apnsOnly
        let shared = SharedMessage(message)
        return EventJob(
            shared, of: Event(app: app.id, id: id, sentMs: nowMs, body: .message(shared)), app: app, raw: [],
            origin: nil, digest: self)
    }
}
