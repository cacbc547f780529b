// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore
import Redis

/// The steps of a report about a push. With a message's id the user's tokens are read and the pid is derived again; then the
/// message's mark says whether the push was an accepted alert, and has its subject. Then the report is noted, and counts if
/// it is the first of its push and device. One that does not match is counted separately.
extension UserStateTask {
    mutating func sendReport(
        _ report: UserState.PushReport, opened: Bool, _ store: StateStore, _ tag: UInt64
    ) throws(RedisFault) {
        switch (step, report.msgID) {
        case (.start, .some): try store.readUser(app: app, uid: state.uid, tag: tag)
        case (.mark(let kind), let id?): try store.readMark(app: app, uid: state.uid, kind: kind, id: id, tag: tag)
        case (.groupMark, let id?): try store.readGroupMarks(app: app, uid: state.uid, id: id, tag: tag)
        default: try store.reportPush(app, state.uid, report, opened: opened, record: record, nowMs: nowMs, tag)
        }
    }

    /// The present step writes; those of a report before its last one only read.
    var writes: Bool {
        switch state.change {
        case .openReport(let report), .arrivedReport(let report): report.msgID == nil || step == .record
        case .bind, .unbind, .settings, .mute, .read, .badgeReport, .ack, .forget: true
        }
    }

    mutating func takeReport(_ report: UserState.PushReport, _ reply: borrowing RedisReply) -> Progress {
        switch step {
        case .start where report.msgID != nil:
            var recipient = Recipient(uid: state.uid)
            RecipientReplies.user(reply, into: &recipient)
            guard let kind = report.genuineKind(app: app, uid: state.uid, tokens: recipient.tokens) else {
                isUnknownPush = true
                return moved(to: .step(.record))
            }
            return moved(to: .step(.mark(kind)))
        case .mark(let kind): return takeMark(report, reply, mayBeInGroup: kind == .message)
        case .groupMark: return takeMark(report, reply, mayBeInGroup: false)
        default:
            if reply.int64 == 0 { return .done(.repeated) }
            return .done(isUnknownPush ? .ignored(.unknownPush) : .applied(.none))
        }
    }

    private mutating func takeMark(
        _ report: UserState.PushReport, _ reply: borrowing RedisReply, mayBeInGroup: Bool
    ) -> Progress {
        guard PairMark.state(reply) == .ended else {
            if mayBeInGroup { return moved(to: .step(.groupMark)) }
            // The mark comes after the broker's answer, and the report may be faster.
            marksMissed += 1
            if marksMissed >= Self.marksMissedMax { return moved(to: .step(.record)) }
            if case .groupMark = step { _ = moved(to: .step(.mark(.message))) }
            return .later
        }
        let device = MarkCounts.short(report.device)
        if let counts = PairMark.counts(reply),
            let outcome = counts.outcomes.first(where: {
                $0.kind == .accepted && $0.push == .alert && $0.device == device
            })
        {
            reported = (counts, outcome)
        }
        return moved(to: .step(.record))
    }

    /// The report's mark is not awaited any more.
    mutating func stopWaiting() {
        marksMissed = Self.marksMissedMax
        _ = moved(to: .step(.record))
    }

    private static var marksMissedMax: Int { 6 }
}

extension UserState.PushReport {
    /// Finds the kind of event by its push id for a token of the device; nil: no kind gives this pid (contract section 3, `pid`).
    ///
    /// A push to an earlier token of the device does not match, because its pid cannot be derived any more. A Live
    /// Activity's payload has no pid.
    func genuineKind(app: String, uid: String, tokens: [BoundToken]) -> PairKind? {
        guard let msgID else { return nil }
        for kind in [PairKind.message, .revoke] {
            let stem = PushIDPrefix(app: app, uid: uid, kind: kind, id: msgID)
            for token in tokens where token.device.isSame(as: device) {
                if stem.id(tokenHex: token.record.hex).description.isSame(as: pid) { return kind }
            }
        }
        return nil
    }
}
