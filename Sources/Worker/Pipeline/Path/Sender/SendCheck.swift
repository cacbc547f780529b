// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore

/// The check before sending (contract section 5, step 15) of one push that had to wait: outstanding answers, and the
/// result of the others.
struct SendCheck {
    /// The push in the APNs client; nil if it is not there yet.
    var ticket: PushTicket?
    var answers: Answers
    var subject: Subject
    /// The claim was refused: its facts are read without a write.
    var isPeek = false
    var isAcknowledged = false
    var isRebound = false
    var facts = SendFacts()

    /// The push that is checked. For a push with a number, the check also compares the number.
    enum Subject: Equatable {
        case push
        case numberedPush(Int64)
        /// Another worker, or another delivery, has finished it; the second with this outcome of the device, which counts.
        case ended
        case counted(CountedOutcome)

        init(badge: Int64?) { self = badge.map { .numberedPush($0) } ?? .push }
    }

    /// The meaning of the answers for the push.
    enum Verdict: Equatable {
        case send
        /// Redis could not answer; ask again.
        case askAgain
        /// It ends with this reason.
        case stop(Reason)
        /// The device has acknowledged a delivery: it needs no push.
        case acknowledged
        /// Another owner of the partition has finished it: it ends without a record, and counts as that one says.
        case endedElsewhere(CountedOutcome?)
        /// The same user re-bound the token: the decision is made again.
        case decideAgain
    }

    func verdict(expireAtMs: Int64, nowMs: Int64) -> Verdict {
        if answers.hasFailed { return .askAgain }
        switch subject {
        case .ended: return .endedElsewhere(nil)
        case .counted(let outcome): return .endedElsewhere(outcome)
        case .push, .numberedPush: break
        }
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
