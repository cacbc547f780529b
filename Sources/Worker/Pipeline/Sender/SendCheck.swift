import APNs
import PushCore

/// The check before sending (contract section 5, step 15) of one push that had to wait: the answers that are still to come,
/// and what those that came say.
struct SendCheck {
    /// Where the push waits in the APNs client; nil: it is not there yet.
    var ticket: PushTicket?
    var awaiting: Int8
    /// The number that the push in the client carries: with the same one it goes as it is.
    var madeBadge: Int64?
    var hasFailed = false
    /// The claim was refused: what it would see is looked at without a write.
    var isPeek = false
    /// Another worker, or another delivery, has finished it meanwhile.
    var isFinished = false
    var isAcknowledged = false
    var isRebound = false
    var facts = SendFacts()

    /// What the answers mean for the push.
    enum Verdict: Equatable {
        case send
        /// Redis could not say; ask again.
        case askAgain
        /// It ends with this reason.
        case stop(Reason)
        /// The device has acknowledged a delivery: it needs no push.
        case acknowledged
        /// The partition's next owner has finished it: it ends without a record.
        case finishedElsewhere
        /// The token was bound anew by the same user: the decision is taken again.
        case decideAgain
    }

    func verdict(expireAtMs: Int64, nowMs: Int64) -> Verdict {
        if hasFailed { return .askAgain }
        if isFinished { return .finishedElsewhere }
        if isAcknowledged { return .acknowledged }
        if let reason = facts.reason(expireAtMs: expireAtMs, now: nowMs) { return .stop(reason) }
        return isRebound ? .decideAgain : .send
    }
}

/// Why a push that was queued is not sent.
struct UnsentPush {
    var device: DeviceRef
    var cause: Cause

    enum Cause: Equatable {
        case check(SendCheck.Verdict)
        /// It could never be sent; the APNs client says why.
        case unfit(PushFault)
        /// It waits outside of memory.
        case park(ParkCause, dueMs: Int64, client: String?)
    }
}
