/// What follows from an answer of APNs (contract section 5, step 17).
public enum AnswerClass: Sendable, Equatable {
    case accepted
    /// Final; the token is kept.
    case rejected
    /// Final; the token is dead and removed with feedback, unless the brake on removals is on.
    case removeToken
    /// Again with rising, jittered delay until the message expires.
    case retry
    /// The provider token is signed anew, then the push is sent again.
    case signAgain
    /// The credential is paused, its pushes are parked, the operator is told.
    case pauseCredential

    /// - Parameters:
    ///   - timestampMs: of a 410's body: since when the token is known as dead.
    ///   - boundMs: when this token was bound last.
    public init(status: Int, reason: String?, timestampMs: Int64?, boundMs: Int64) {
        switch status {
        case 200:
            self = .accepted
        case 410:
            self = Self.removesToken(timestampMs: timestampMs, boundMs: boundMs) ? .removeToken : .rejected
        case 400 where reason == "BadDeviceToken" || reason == "DeviceTokenNotForTopic":
            self = .removeToken
        // Apple closes an idle connection with it: the push itself was not looked at.
        case 400 where reason == "IdleTimeout":
            self = .retry
        case 403:
            self = reason == "ExpiredProviderToken" ? .signAgain : .pauseCredential
        case 429, 500...599:
            self = .retry
        default:
            self = .rejected
        }
    }

    /// A 410 is about the token as it was then: one that was bound again since is alive.
    public static func removesToken(timestampMs: Int64?, boundMs: Int64) -> Bool {
        guard let timestampMs else { return true }
        return timestampMs > boundMs
    }
}
