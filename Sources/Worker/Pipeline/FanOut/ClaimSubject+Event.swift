import PushCore

extension ClaimSubject {
    /// Duplicates of a message or revoke are told by its `msg_id`.
    convenience init(_ message: borrowing Message, sentMs: Int64, clearsOnRead: Bool, clientCounts: Bool) {
        self.init(
            kind: message.kind == .revoke ? .revoke : .message, id: message.msgID,
            conversation: message.conversation.id, sentMs: sentMs, seq: message.serverSeq,
            revoke: TestBreak.isOn(.ignoreRevoke) ? nil : message.revoke,
            expireAtMs: message.expireAtMs, clearsOnRead: clearsOnRead, clientCounts: clientCounts)
    }

    /// Those of a Live Activity by the event, since its `msg_id` is optional (contract section 2).
    convenience init(_ activity: borrowing LiveActivity, eventID: String, sentMs: Int64) {
        self.init(
            kind: .liveActivity, id: eventID, sentMs: sentMs, expireAtMs: sentMs &+ LiveActivity.lifetimeMs)
    }
}
