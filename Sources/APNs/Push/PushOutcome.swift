// SPDX-License-Identifier: Apache-2.0
/// The end of a push. Every push that a client accepted ends in exactly one of these.
public enum PushOutcome: Sendable, Equatable {
    /// 200: APNs accepted it.
    case accepted(apnsID: PushID)
    /// APNs answered that it will not deliver it; `time` comes with a 410 only.
    case rejected(status: Int, reason: APNsReason, time: AnswerTime)
    /// It expired before any attempt was accepted.
    case expired
    /// APNs asks for a longer wait than `APNsLimits.holdNanos`. The caller may keep it and send it again later.
    case deferred(status: Int, reason: APNsReason, retryAfterMs: Int64)
    /// A newer push with its collapse id replaced it while the device backed off (429 TooManyRequests).
    case superseded
    /// APNs certainly did not process it. Sending it again cannot cause a duplicate.
    case unprocessed(UnprocessedCause)
    /// It was sent and no answer came, so it may have been delivered. A resend uses the same id.
    case unknown(UnknownCause, apnsID: PushID)
}

extension PushOutcome {
    /// APNs judged the push itself.
    var isJudgement: Bool {
        switch self {
        case .accepted, .rejected: true
        case .expired, .deferred, .superseded, .unprocessed, .unknown: false
        }
    }
}

/// The proof that a push was not processed.
public enum UnprocessedCause: String, Sendable {
    /// The client was closed while it waited.
    case closed
    /// RST_STREAM with REFUSED_STREAM (RFC 9113, 8.7: safe to retry).
    case refused
    /// Above the last stream id of a GOAWAY (RFC 9113, 6.8).
    case aboveGoaway
    /// Never sent.
    case notSent
}

/// The reason why a push's result is unknown.
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
