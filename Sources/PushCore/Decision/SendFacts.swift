// SPDX-License-Identifier: Apache-2.0
/// The result of the last check before sending (step 15): facts that may have changed since the decision.
///
/// One rule for all callers: an immediate push, a push that waited, and `explain`.
public struct SendFacts: Sendable, Equatable {
    /// A read mark covers the message.
    public var isRead: Bool
    /// The message was revoked.
    public var isRevoked: Bool
    /// The Live Activity takes no such record any more.
    public var isActivityOver: Bool
    /// The token's present owner is this user, with the version of the decision.
    public var isTokenOwned: Bool

    public init(
        isRead: Bool = false, isRevoked: Bool = false, isActivityOver: Bool = false, isTokenOwned: Bool = true
    ) {
        self.isRead = isRead
        self.isRevoked = isRevoked
        self.isActivityOver = isActivityOver
        self.isTokenOwned = isTokenOwned
    }

    /// The reason not to send the push; nil to send it.
    public func reason(expireAtMs: Int64, now: Int64) -> Reason? {
        if expireAtMs <= now { return .expired }
        if isRead { return .alreadyRead }
        if isRevoked { return .revoked }
        if isActivityOver { return .activityOver }
        return isTokenOwned ? nil : .tokenMoved
    }
}
