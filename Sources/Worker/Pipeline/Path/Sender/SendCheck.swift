// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore

/// The check before sending (contract section 5, step 15) of one push that had to wait: outstanding answers, and the
/// result of the others.
struct SendCheck {
    /// The push in the APNs client; nil if it is not there yet.
    var ticket: PushTicket?
    var awaiting: Int8
    /// The number in the client's push. If it has not changed, the push goes unchanged.
    var madeBadge: Int64?
    var hasFailed = false
    /// The claim was refused: its facts are read without a write.
    var isPeek = false
    /// Another worker, or another delivery, has finished it.
    var isEnded = false
    var isAcknowledged = false
    var isRebound = false
    var facts = SendFacts()

    /// The meaning of the answers for the push.
    enum Verdict: Equatable {
        case send
        /// Redis could not answer; ask again.
        case askAgain
        /// It ends with this reason.
        case stop(Reason)
        /// The device has acknowledged a delivery: it needs no push.
        case acknowledged
        /// The partition's next owner has finished it: it ends without a record.
        case endedElsewhere
        /// The same user re-bound the token: the decision is made again.
        case decideAgain
    }

    func verdict(expireAtMs: Int64, nowMs: Int64) -> Verdict {
        if hasFailed { return .askAgain }
        if isEnded { return .endedElsewhere }
        if isAcknowledged { return .acknowledged }
        if let reason = facts.reason(expireAtMs: expireAtMs, now: nowMs) { return .stop(reason) }
        return isRebound ? .decideAgain : .send
    }
}

/// The reason why a queued push is not sent.
struct UnsentPush {
    var device: DeviceRef
    var cause: Cause

    enum Cause: Equatable {
        case check(SendCheck.Verdict)
        /// It could never be sent; the APNs client gives the reason.
        case unfit(PushFault)
        /// It waits outside memory.
        case park(ParkCause, dueMs: Int64, client: String?)
    }
}
