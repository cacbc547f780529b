// SPDX-License-Identifier: Apache-2.0
/// The consequences of an APNs answer for the push, its connection, the credential and the token.
public struct AnswerRule: Sendable, Equatable {
    public let status: Int
    public let reason: String
    let push: PushStep
    let connection: ConnectionStep
    let credential: CredentialStep
    /// Which sending rate slows down.
    let pace: PaceStep
    /// The caller's action for the token. The client itself stores no tokens.
    public let token: TokenFate
    /// An operator must act: the configuration, the sender's program or the client has a fault.
    public let needsOperator: Bool

    init(
        _ status: Int, _ reason: String, _ push: PushStep, connection: ConnectionStep = .keep,
        credential: CredentialStep = .keep, pace: PaceStep = .keep, token: TokenFate = .keep,
        needsOperator: Bool = false
    ) {
        self.status = status
        self.reason = reason
        self.push = push
        self.connection = connection
        self.credential = credential
        self.pace = pace
        self.token = token
        self.needsOperator = needsOperator
    }

    enum PushStep: Sendable, Equatable {
        case accept
        /// Final: the same request would get the same answer.
        case reject
        /// At once, on another connection.
        case resend
        /// Again after a rising, jittered delay that respects `Retry-After`.
        case retry
        /// Waits until the credential is accepted again.
        case awaitCredential
    }

    enum ConnectionStep: Sendable, Equatable {
        case keep
        /// No new streams. A new connection takes over.
        case drain
    }

    enum CredentialStep: Sendable, Equatable {
        case keep
        /// Sign a new provider token, once.
        case resign
        /// Keep the present provider token and sign no other for twenty minutes.
        case holdSigning
        /// Nothing is sent with it until a probe is accepted. The operator is notified.
        case pause
        /// Like `pause`, unless the connection has accepted pushes before: then it is bound to another key, and a new
        /// connection is not.
        case pauseIfFresh
    }

    enum PaceStep: Sendable, Equatable {
        case keep
        /// Only this device token; all others continue.
        case token
        /// The endpoint is overloaded.
        case endpoint
    }

    /// The answer's statement on the device token.
    public enum TokenFate: Sendable, Equatable {
        case keep
        /// Dead for this topic.
        case remove
        /// Dead, unless it was bound after the answer's timestamp.
        case removeIfOlder
    }
}

/// Every status and reason that Apple documents (and three only observed), each with its consequences. The only place
/// with this knowledge.
///
/// Sources: "Handling notification responses from APNs" and, for broadcasts and channels, "Handling error responses". A
/// reason that is not listed follows the class of its status.
public enum AnswerTable {
    static let accepted = AnswerRule(200, "", .accept)

    static let rules: [AnswerRule] = devices + broadcasts

    private static let devices: [AnswerRule] = [
        AnswerRule(400, "BadDeviceToken", .reject, token: .remove),
        AnswerRule(400, "DeviceTokenNotForTopic", .reject, token: .remove),
        // `Push` and `PushHeaders` check these first, so such an answer means a mistake of ours.
        AnswerRule(400, "BadCollapseId", .reject, needsOperator: true),
        AnswerRule(400, "BadExpirationDate", .reject, needsOperator: true),
        AnswerRule(400, "BadMessageId", .reject, needsOperator: true),
        AnswerRule(400, "BadPriority", .reject, needsOperator: true),
        AnswerRule(400, "BadTopic", .reject, needsOperator: true),
        AnswerRule(400, "DuplicateHeaders", .reject, needsOperator: true),
        AnswerRule(400, "IdleTimeout", .resend, connection: .drain),
        AnswerRule(400, "InvalidPushType", .reject, needsOperator: true),
        AnswerRule(400, "MissingDeviceToken", .reject, needsOperator: true),
        AnswerRule(400, "MissingTopic", .reject, needsOperator: true),
        AnswerRule(400, "PayloadEmpty", .reject, needsOperator: true),
        AnswerRule(400, "TopicDisallowed", .reject, needsOperator: true),
        AnswerRule(403, "BadCertificate", .awaitCredential, connection: .drain, credential: .pause),
        AnswerRule(403, "BadCertificateEnvironment", .awaitCredential, connection: .drain, credential: .pause),
        AnswerRule(403, "BadEnvironmentKeyIdInToken", .awaitCredential, connection: .drain, credential: .pause),
        AnswerRule(403, "BadEnvironmentKeyInToken", .awaitCredential, connection: .drain, credential: .pause),
        // The connection that saw the old token gives no useful answers any more.
        AnswerRule(403, "ExpiredProviderToken", .awaitCredential, connection: .drain, credential: .resign),
        AnswerRule(403, "Forbidden", .awaitCredential, credential: .pause),
        AnswerRule(403, "InvalidProviderToken", .awaitCredential, connection: .drain, credential: .pause),
        AnswerRule(403, "MissingProviderToken", .awaitCredential, connection: .drain, credential: .pause),
        AnswerRule(403, "UnrelatedKeyIdInToken", .awaitCredential, connection: .drain, credential: .pauseIfFresh),
        AnswerRule(404, "BadPath", .reject, needsOperator: true),
        AnswerRule(405, "MethodNotAllowed", .reject, needsOperator: true),
        AnswerRule(410, "ExpiredToken", .reject, token: .removeIfOlder),
        AnswerRule(410, "Unregistered", .reject, token: .removeIfOlder),
        AnswerRule(413, "PayloadTooLarge", .reject, needsOperator: true),
        AnswerRule(429, "TooManyProviderTokenUpdates", .retry, connection: .drain, credential: .holdSigning),
        AnswerRule(429, "TooManyRequests", .retry, pace: .token),
        AnswerRule(500, "InternalServerError", .retry),
        AnswerRule(503, "ServiceUnavailable", .retry, pace: .endpoint),
        AnswerRule(503, "Shutdown", .resend, connection: .drain),
    ]

    /// Answers to broadcasts and channel requests. They concern neither a device token nor a credential.
    private static let broadcasts: [AnswerRule] = [
        AnswerRule(400, "BadChannelId", .reject),
        AnswerRule(400, "BadRequestParams", .reject, needsOperator: true),
        AnswerRule(400, "BadRequestPayload", .reject, needsOperator: true),
        AnswerRule(400, "CannotCreateChannelConfig", .reject, needsOperator: true),
        AnswerRule(400, "ChannelNotRegistered", .reject),
        AnswerRule(400, "FeatureNotEnabled", .reject, needsOperator: true),
        AnswerRule(400, "MissingChannelId", .reject, needsOperator: true),
        AnswerRule(400, "MissingChannelQueueSize", .reject, needsOperator: true),
        AnswerRule(400, "MissingPushType", .reject, needsOperator: true),
        AnswerRule(403, "FeatureNotEnabled", .reject, needsOperator: true),
        AnswerRule(403, "TopicMismatch", .reject, needsOperator: true),
        AnswerRule(404, "ChannelNotRegistered", .reject),
        AnswerRule(410, "ChannelNotRegistered", .reject),
        AnswerRule(429, "CannotCreateChannelConfig", .reject, needsOperator: true),
    ]

    /// The rule for an answer: by reason if known with that status, else by status.
    public static func rule(status: Int, reason: APNsReason) -> AnswerRule {
        if status == 200 { return accepted }
        if reason.isKnown, let rule = rules.first(where: { $0.status == status && $0.reason == reason.text }) {
            return rule
        }
        return switch status {
        case 403: AnswerRule(status, reason.text, .awaitCredential, connection: .drain, credential: .pause)
        case 410: AnswerRule(status, reason.text, .reject, token: .removeIfOlder)
        case 408: AnswerRule(status, reason.text, .retry)
        case 429: AnswerRule(status, reason.text, .retry, pace: .token)
        case 503: AnswerRule(status, reason.text, .retry, pace: .endpoint)
        case 500...599: AnswerRule(status, reason.text, .retry)
        default: AnswerRule(status, reason.text, .reject)
        }
    }
}

extension PushOutcome {
    /// The consequence of this outcome for the device token (contract: the caller removes it and writes feedback).
    public var tokenFate: AnswerRule.TokenFate {
        guard case .rejected(let status, let reason, _) = self else { return .keep }
        return AnswerTable.rule(status: status, reason: reason).token
    }
}
