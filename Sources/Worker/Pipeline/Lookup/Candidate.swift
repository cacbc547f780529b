import PushCore

/// One round of a recipient on the way to its decision: what was read, decided and claimed. It goes once its routes have begun.
final class Candidate {
    enum Phase: Equatable {
        /// All that a decision needs is read.
        case reading
        /// Only what can turn a likely denial is read (`Lookup.isLikelyDenied`).
        case readingDenied
        /// The leases of its gateways are read.
        case readingLeases
        case claiming
        /// Who acknowledged what an earlier try delivered.
        case readingAcks
        /// Redis could not answer; it is read anew when its turn comes.
        case postponed
    }

    /// Place among all candidates of the shard, in the order in which they began.
    let order: UInt64
    /// Answers that the present phase still waits for.
    var awaiting = 0
    var recipient: Recipient
    /// The version of the user's tokens when they were read.
    var tokenVersion: Int64 = 0
    /// When its claim was sent, monotonic.
    var claimNanos: UInt64 = 0
    /// Times in a row that Redis could not answer about it; spaces the retries.
    var failures = 0
    /// When a postponed one is read anew (monotonic).
    var dueNanos: UInt64 = 0
    /// Places of tokens that another user owns by now, or nobody.
    var lostTokens: [Int] = []
    /// Devices that acknowledged a delivery; nil: not asked.
    var acknowledged: [String]?
    /// Of the event's Live Activity.
    var activity = ActivityState()
    var decision: Decision?
    var claim: ClaimReply?
    /// Its claim by plain commands; nil: the script claims it.
    var plainClaim: PlainClaim?

    // Small parts, together: a candidate fits 448 bytes.

    /// What the steps of the decision said.
    var facts: DecisionFacts = []
    var phase = Phase.reading
    /// Something failed while the present phase waited.
    var hasFailed = false
    /// All his tokens are his, as was found out for this version of them (`KnownOwners`).
    var areOwnersKnown = false
    /// The tokens changed between read and claim, and are read a second time.
    var isReread = false
    /// What its mark says of an earlier try; nil: nothing, or it was not read.
    var earlierTry: ClaimReply.State?
    /// Nothing that was read stands against a claim by plain commands: no mark, no client's total that holds the
    /// message, no key that cannot be read.
    var isPlain = false
    /// Whose its tokens are is asked beside the claim.
    var asksOwners = true
    /// All of them are asked for, to be known from now on; false once one was found to be another's.
    var learnsOwners = false
    /// Redis refused the claim: what is pushed carries no badge.
    var isUnclaimed = false
    /// It takes the refused claim later. Of a key that no waiting mends it never will.
    var owesClaim = false
    /// Some token was bound anew by the same user since it was read.
    var hasReboundToken = false

    init(uid: String, groupLevel: MuteLevel? = nil, order: UInt64) {
        recipient = Recipient(uid: uid)
        recipient.groupLevel = groupLevel
        self.order = order
    }

    /// The places of the tokens that the decision pushes to, or holds a push for.
    var pushedTokens: some Sequence<Int> { (decision?.routes ?? []).lazy.compactMap(\.pushedToken) }

    /// Forgets what was read, to read it anew.
    func beginReading(_ phase: Phase) {
        self.phase = phase
        hasFailed = false
        earlierTry = nil
        isPlain = false
        areOwnersKnown = false
        plainClaim = nil
        hasReboundToken = false
        lostTokens.removeAll(keepingCapacity: true)
        recipient.presence.removeAll(keepingCapacity: true)
        recipient.tokens.removeAll(keepingCapacity: true)
    }

    /// One of the answers of the present phase. True: all of them are in.
    func answered(failed: Bool) -> Bool {
        awaiting -= 1
        if failed { hasFailed = true }
        return awaiting == 0
    }
}

extension Route {
    /// The token that a push or a hold of this route is for.
    var pushedToken: Int? {
        switch way {
        case .apns(let token, _), .hold(let token, _): token
        case .connection, .none: nil
        }
    }
}
