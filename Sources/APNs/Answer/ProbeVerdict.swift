// SPDX-License-Identifier: Apache-2.0
/// The meaning of APNs' answer to a push for a token that no device has.
public enum ProbeVerdict: Sendable, Equatable {
    /// Only the device was wrong: credential, environment and topic are accepted.
    case taken
    /// The credential is refused: wrong key, key id or team id, a revoked key, or a wrong clock.
    case credential
    /// The credential is for the other environment.
    case environment
    /// The credential may not push to this topic.
    case topic
    /// A temporary answer: try again.
    case passing
    /// The answer names another cause.
    case other

    public init(status: Int, reason: APNsReason) {
        switch (status, reason.text) {
        // DeviceTokenNotForTopic concerns a token that exists.
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
