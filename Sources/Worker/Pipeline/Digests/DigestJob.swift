import PushCore

/// One user's digest under a lease.
final class DigestJob {
    let app: AppContext
    let user: DueUser
    /// The end of the lease, Unix ms.
    let leaseMs: Int64
    var ref = WorkRef.none
    /// Unread messages that it tells of.
    var count = 0
    /// Quiet hours hold again: it is looked at then, Unix ms.
    var putOffToMs: Int64?

    init(app: AppContext, user: DueUser, leaseMs: Int64) {
        self.app = app
        self.user = user
        self.leaseMs = leaseMs
    }

    /// A digest as a message from nobody: the same id for every try, so that it is claimed and pushed once.
    ///
    /// - Parameter oldestMs: `sent_ms` of the oldest message that it tells of.
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
