import Digits
import PushCore
import Redis

/// The steps of a report about a push. With a message's id the user's tokens are read and the pid is derived again. Then the
/// report is noted, and counts if it is the first of its push and device. One that does not match is counted separately.
extension UserStateTask {
    mutating func sendReport(
        _ report: UserState.PushReport, opened: Bool, _ store: StateStore, _ tag: UInt64
    ) throws(RedisFault) {
        if report.msgID != nil, step == .start {
            return try store.readUser(app: app, uid: state.uid, tag: tag)
        }
        try store.reportPush(app, state.uid, report, opened: opened, nowMs: nowMs, tag)
    }

    mutating func takeReport(_ report: UserState.PushReport, _ reply: borrowing RedisReply) -> Progress {
        if report.msgID != nil, step == .start {
            var recipient = Recipient(uid: state.uid)
            RecipientReplies.user(reply, into: &recipient)
            isUnknownPush = !report.isGenuine(app: app, uid: state.uid, tokens: recipient.tokens)
            return moved(to: .step(.record))
        }
        if reply.int64 == 0 { return .done(.repeated) }
        return .done(isUnknownPush ? .ignored(.unknownPush) : .applied(.none))
    }
}

extension UserState.PushReport {
    /// - Returns: whether the pid is that of a push of the message to a token of the device (contract section 3,
    ///   `pid`).
    ///
    /// A push to an earlier token of the device does not match, because its pid cannot be derived any more. A Live
    /// Activity's payload has no pid.
    func isGenuine(app: String, uid: String, tokens: [BoundToken]) -> Bool {
        guard let msgID else { return false }
        for kind in [PairKind.message, .revoke] {
            let stem = PushIDPrefix(app: app, uid: uid, kind: kind, id: msgID)
            for token in tokens where token.device.isSame(as: device) {
                if stem.id(tokenHex: token.record.hex).description.isSame(as: pid) { return true }
            }
        }
        return false
    }
}
