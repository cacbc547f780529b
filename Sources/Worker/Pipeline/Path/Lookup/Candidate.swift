// SPDX-License-Identifier: Apache-2.0
import PushCore

/// One round of a recipient up to its decision: reads, facts, decision and claim. It is freed once its routes have
/// begun.
final class Candidate {
    enum Phase: Equatable {
        /// All inputs of the decision are read.
        case reading
        /// Only facts that can change a likely denial are read (`Lookup.isLikelyDenied`).
        case readingDenied
        /// Its gateways' leases are read.
        case readingLeases
        case claiming
        /// The acks for a delivery of an earlier try are read.
        case readingAcks
        /// Redis could not answer; it is read again at its time.
        case postponed
        /// The same dedup key is in progress for an earlier delivery of the event. At that one's end everything is read again; if that
        /// one is parked, so is this one.
        case waitingForTwin
    }

    /// Its number among all candidates of the shard, in the order of their start.
    let order: UInt64
    var recipient: Recipient
    /// The version of the user's tokens at the read.
    var tokenVersion: Int64 = 0
    /// When it asked for its leases, and then for its claim (monotonic).
    var askedNanos: UInt64 = 0
    /// When a postponed one is read again (monotonic).
    var dueNanos: UInt64 = 0
    /// Indices of tokens that now belong to another user, or to nobody.
    var lostTokens: [Int] = []
    /// Devices that acknowledged a delivery; nil if not asked.
    var acknowledged: [String]?
    /// The state of the event's Live Activity.
    var activity = ActivityState()
    var decision: Decision?
    var claim: ClaimReply?
    /// Hashed for the recipient's dedup key; nil in a later round.
    var pushIDPrefix: PushIDPrefix?
    /// Its claim by plain commands; nil if the script claims it.
    var plainClaim: PlainClaim?

    // Small parts together, so that a candidate fits 512 bytes.

    /// Consecutive times that Redis could not answer; spaces the retries.
    var failures: Int32 = 0
    /// Answers of the present phase.
    var answers = Answers()
    var phase = Phase.reading
    /// How many entries of the ledger the client's total includes, at the read. Nil if the reads forbid a plain claim: a mark, a
    /// total that includes the message, an unreadable key.
    var plainPast: Int16?
    /// All of the user's tokens belong to the user, as known for this token version (`KnownOwners`).
    var areOwnersKnown = false
    /// The tokens changed between read and claim, and are read again.
    var isReread = false
    /// The state of an earlier try from its mark; nil if there was none, or if it was not read.
    var earlierTry: ClaimReply.State?
    /// The counts in the mark of the try that finished it, if that was read.
    var endedBy: MarkCounts?
    /// The owners of its tokens are asked for together with the claim.
    var asksOwners = true
    /// All owners are asked for, to be known from now on; false once a token was found to belong to another user.
    var learnsOwners = false
    /// How Redis refused the claim: its pushes have no badge. Nil if it did not.
    var refusal: Refusal?
    /// The same user re-bound a token since it was read.
    var hasReboundToken = false

    enum Refusal {
        /// Redis will accept the claim later.
        case forNow
        /// The key has a permanent fault.
        case lasting
    }

    init(uid: String, groupLevel: MuteLevel? = nil, order: UInt64) {
        recipient = Recipient(uid: uid)
        recipient.groupLevel = groupLevel
        self.order = order
    }

    /// The indices of the tokens that the decision pushes to, or holds a push for.
    var pushedTokens: some Sequence<Int> { (decision?.routes ?? []).lazy.compactMap(\.pushedToken) }

    /// Drops the reads, to read again.
    func beginReading(_ phase: Phase) {
        self.phase = phase
        earlierTry = nil
        endedBy = nil
        plainPast = nil
        areOwnersKnown = false
        plainClaim = nil
        hasReboundToken = false
        lostTokens.removeAll(keepingCapacity: true)
        recipient.presence.removeAll(keepingCapacity: true)
        recipient.tokens.removeAll(keepingCapacity: true)
    }
}

extension Route {
    /// The token of this route's push or hold.
    var pushedToken: Int? {
        switch way {
        case .apns(let token, _), .hold(let token, _): token
        case .connection, .none: nil
        }
    }
}
