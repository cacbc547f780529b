// SPDX-License-Identifier: Apache-2.0
import Digits

/// A device token with all data of its bind (contract section 2, `bind`).
public struct TokenRecord: Sendable, Equatable {
    // Texts first: see the initialiser of `PushOptions`.

    /// Lower-case hexadecimal. Apple asks not to assume its length.
    public let hex: String
    /// The bare bundle id. The worker adds suffixes.
    public var topic: String
    /// The name of a credential set of the app; nil for its only or first one.
    public let credential: String?
    public let contentKey: String?
    public let language: String?
    public let zone: String?
    public let activityID: String?
    /// For a `start` token, the only attributes type that it starts; nil for types without their own token on the
    /// device.
    public let attributesType: String?
    /// `sent_ms` of the bind. A 410's timestamp is compared with it.
    public let boundMs: Int64
    public let environment: APNsEnvironment
    public let type: Kind
    /// False if the device shows no alerts: none is pushed to it.
    public let showsAlerts: Bool

    public enum Kind: String, Sendable {
        case alert, voip, activity, start

        /// The suffix of the topic after the bundle id.
        public var topicSuffix: String? {
            switch self {
            case .alert: nil
            case .voip: ".voip"
            case .activity, .start: ".push-type.liveactivity"
            }
        }

        /// Apple accepts Live Activities only with a provider key (`.p8`), not with a certificate.
        public var needsProviderKey: Bool { self == .activity || self == .start }
    }
}

extension TokenRecord {
    public init(
        hex: String, environment: APNsEnvironment, topic: String, type: Kind, credential: String? = nil,
        contentKey: String? = nil, language: String? = nil, zone: String? = nil, activityID: String? = nil,
        attributesType: String? = nil, boundMs: Int64, showsAlerts: Bool = true
    ) {
        self.init(
            hex: hex, topic: topic, credential: credential, contentKey: contentKey, language: language, zone: zone,
            activityID: activityID, attributesType: attributesType, boundMs: boundMs, environment: environment,
            type: type, showsAlerts: showsAlerts)
    }

    /// - Returns: whether a 410 applies to this binding. A token that was bound again after the 410's time is alive.
    ///
    /// Without a time the token counts as dead. BadDeviceToken and DeviceTokenNotForTopic have none and always remove
    /// (contract section 5, step 17).
    public func isDead(sinceMs timestampMs: Int64?) -> Bool {
        guard let timestampMs else { return true }
        return timestampMs > boundMs
    }
}

/// A token and its device.
///
/// By reference, because it is passed on often and a copy would retain nine parts.
public final class BoundToken: Sendable, Equatable {
    public let device: String
    public let record: TokenRecord
    public let version: Int64

    public init(device: String, record: TokenRecord, version: Int64) {
        self.device = device
        self.record = record
        self.version = version
    }

    public static func == (one: BoundToken, other: BoundToken) -> Bool {
        one.device.isSame(as: other.device) && one.record == other.record && one.version == other.version
    }
}

public enum APNsEnvironment: String, Sendable {
    case production, sandbox
}
