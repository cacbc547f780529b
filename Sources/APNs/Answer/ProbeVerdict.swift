/// What APNs' answer to a push to a token that no device has says of who sends.
public enum ProbeVerdict: Sendable, Equatable {
    /// It missed nothing but the device: credential, environment and topic are taken.
    case taken
    /// The credential itself: a wrong key, key id or team id, a revoked one, or a clock that is off.
    case credential
    /// The credential is for the other environment.
    case environment
    /// It may not push to this topic.
    case topic
    /// It says nothing of the sender: try again.
    case passing
    /// Neither: the answer names something else.
    case other

    public init(status: Int, reason: APNsReason) {
        switch (status, reason.text) {
        // DeviceTokenNotForTopic is about a token that exists.
        case (400, "BadDeviceToken"), (410, _): self = .taken
        case (400, "TopicDisallowed"), (400, "BadTopic"), (400, "MissingTopic"), (400, "DeviceTokenNotForTopic"),
            (403, "TopicMismatch"):
            self = .topic
        case (403, "BadCertificateEnvironment"), (403, "BadEnvironmentKeyIdInToken"),
            (403, "BadEnvironmentKeyInToken"):
            self = .environment
        case (403, _): self = .credential
        case (429, _), (500..., _): self = .passing
        default: self = .other
        }
    }
}
