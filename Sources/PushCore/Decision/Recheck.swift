/// Step 15: what may have changed between the decision and the sending of a push.
public struct Recheck: Sendable {
    public var read: UserState.ReadMark?
    public var isRevoked: Bool
    /// The token's present owner is this user, with the version that was decided about.
    public var isTokenOwned: Bool

    public init(read: UserState.ReadMark?, isRevoked: Bool, isTokenOwned: Bool) {
        self.read = read
        self.isRevoked = isRevoked
        self.isTokenOwned = isTokenOwned
    }

    /// Why the push is not to be sent after all; nil: send it.
    public func reason(against message: borrowing Message, sentMs: Int64, now: Int64) -> Reason? {
        if message.expireAtMs <= now { return .expired }
        if let read, read.covers(seq: message.serverSeq, sentMs: sentMs) { return .alreadyRead }
        if isRevoked { return .revoked }
        return isTokenOwned ? nil : .tokenMoved
    }
}
