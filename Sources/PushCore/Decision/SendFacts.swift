/// What the last check before sending finds (step 15): facts that may have changed since the decision.
///
/// One rule for whoever asks: the push that goes at once, the one that waited and is looked at again, and `explain`.
public struct SendFacts: Sendable, Equatable {
    /// A read receipt covers the message.
    public var isRead: Bool
    /// A recall of it has come.
    public var isRevoked: Bool
    /// The Live Activity takes no such record any more.
    public var isActivityOver: Bool
    /// The token's present owner is this user, with the version that was decided about.
    public var isTokenOwned: Bool

    public init(
        isRead: Bool = false, isRevoked: Bool = false, isActivityOver: Bool = false, isTokenOwned: Bool = true
    ) {
        self.isRead = isRead
        self.isRevoked = isRevoked
        self.isActivityOver = isActivityOver
        self.isTokenOwned = isTokenOwned
    }

    /// Why the push is not to be sent after all; nil: send it.
    public func reason(expireAtMs: Int64, now: Int64) -> Reason? {
        if expireAtMs <= now { return .expired }
        if isRead { return .alreadyRead }
        if isRevoked { return .revoked }
        if isActivityOver { return .activityOver }
        return isTokenOwned ? nil : .tokenMoved
    }
}
