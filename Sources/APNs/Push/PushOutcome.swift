/// How a push ended. Every push that a client took ends in exactly one of these.
public enum PushOutcome: Sendable, Equatable {
    /// 200: APNs has it.
    case accepted(apnsID: PushID)
    /// APNs answered that it will not deliver it; `time` comes with a 410 only.
    case rejected(status: Int, reason: APNsReason, time: AnswerTime)
    /// Its time ran out before any attempt was accepted.
    case expired
    /// APNs wants more patience than `APNsLimits.holdNanos` gives; the caller may put it away and send it again later.
    case deferred(status: Int, reason: APNsReason, retryAfterMs: Int64)
    /// A newer push for the device took its place while APNs wanted the device left alone (429 TooManyRequests).
    case superseded
    /// APNs provably never processed it: sending it again cannot make a double.
    case unprocessed(UnprocessedCause)
    /// It was sent and no answer came: it may or may not have been delivered. Whoever sends it again sends the same id.
    case unknown(UnknownCause, apnsID: PushID)
}

extension PushOutcome {
    /// APNs looked at the push itself and said yes or no.
    var isJudgement: Bool {
        switch self {
        case .accepted, .rejected: true
        case .expired, .deferred, .superseded, .unprocessed, .unknown: false
        }
    }
}

/// Why a push is known not to have been processed.
public enum UnprocessedCause: String, Sendable {
    /// The client was closed while it waited.
    case closed
    /// RST_STREAM with REFUSED_STREAM (RFC 9113, 8.7: safe to retry).
    case refused
    /// Above the last stream id of a GOAWAY (RFC 9113, 6.8).
    case aboveGoaway
    /// Never left this process.
    case notSent
}

/// Why a push's fate is not known.
public enum UnknownCause: String, Sendable {
    /// No answer within `APNsLimits.answerNanos`.
    case timeout
    /// The connection ended first.
    case connectionLost
    /// RST_STREAM with a code that does not exclude processing.
    case reset
    /// The answer had no usable status.
    case badAnswer
}
