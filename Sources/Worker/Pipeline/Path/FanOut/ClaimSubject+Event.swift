// SPDX-License-Identifier: Apache-2.0
import PushCore

extension ClaimSubject {
    /// `msg_id` identifies duplicates of a message or revoke.
    convenience init(_ message: borrowing Message, sentMs: Int64, clearsOnRead: Bool, clientCounts: Bool) {
        self.init(
            kind: message.kind == .revoke ? .revoke : .message, id: message.msgID,
            conversation: message.conversation.id, sentMs: sentMs, seq: message.serverSeq,
            revoke: TestBreak.isOn(.ignoreRevoke) ? nil : message.revoke,
            expireAtMs: message.expireAtMs, clearsOnRead: clearsOnRead, clientCounts: clientCounts)
    }

    /// The event identifies those of a Live Activity, because its `msg_id` is optional (contract section 2).
    convenience init(_ activity: borrowing LiveActivity, eventID: String, sentMs: Int64) {
        self.init(
            kind: .liveActivity, id: eventID, sentMs: sentMs, expireAtMs: sentMs &+ LiveActivity.lifetimeMs)
    }
}
