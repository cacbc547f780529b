// SPDX-License-Identifier: Apache-2.0
import APNs
import APNsProtocol
import PushCore

/// One outcome, or one report of a device, as the statistics count it: 64 bits without a reference.
///
/// It says when (the hour), what, and for which kind of push. The app, the name and the task are in its `CountedSubject`.
struct CountedOutcome: Hashable {
    /// The counted kinds. The raw values are in marks and must not change.
    enum Kind: UInt8, CaseIterable {
        case accepted, rejected, expired, suppressed, online
        case arrived, opened
    }

    /// `push_type` in the statistics. The raw values are in marks and must not change.
    enum PushKind: UInt8, CaseIterable {
        case alert, background, voip
        case liveActivity
        /// A number without an alert.
        case badge

        var name: String {
            switch self {
            case .alert: "alert"
            case .background: "background"
            case .voip: "voip"
            case .liveActivity: "liveactivity"
            case .badge: "badge"
            }
        }
    }

    private(set) var bits: UInt64

    private static let hourBits: UInt64 = 0x3FF
    /// No count of 0 bits is one.
    private static let isSet: UInt64 = 1 << 63
    private static let isSentBit: UInt64 = 1 << 18
    /// 0 in every outcome: others keep a number there.
    static let unusedPlace: UInt64 = 36
    static let unusedBits: UInt64 = (1 << 27 - 1) << unusedPlace

    /// - Parameters:
    ///   - hour: hours since 1970; kept modulo 1024, which is longer than a mark lives.
    ///   - reason: of `CountedReason`.
    ///   - credential: its number in `Statistics`.
    init(
        hour: Int64, _ kind: Kind, _ push: PushKind, _ lane: PushLane, reason: UInt8 = 0, credential: UInt8 = 0,
        isSent: Bool = false
    ) {
        bits = Self.isSet | UInt64(truncatingIfNeeded: hour) & Self.hourBits
        bits |= UInt64(kind.rawValue) << 10 | UInt64(push.rawValue) << 13 | UInt64(lane.rawValue & 3) << 16
        if lane.rawValue & 4 != 0 { bits |= 1 << 19 }
        if isSent { bits |= Self.isSentBit }
        bits |= UInt64(reason) << 20 | UInt64(credential) << 28
    }

    init(bits: UInt64) { self.bits = bits }

    /// The hour nearest to the present one.
    func hour(now: Int64) -> Int64 {
        let behind = (UInt64(truncatingIfNeeded: now) &- bits) & Self.hourBits
        // A clock of another worker may be an hour ahead.
        return behind > 1000 ? now &+ Int64(1024 - behind) : now &- Int64(behind)
    }

    var kind: Kind { Kind(rawValue: UInt8(bits >> 10 & 7)) ?? .suppressed }
    var push: PushKind { PushKind(rawValue: UInt8(bits >> 13 & 7)) ?? .alert }
    var lane: PushLane { PushLane(rawValue: UInt8(bits >> 16 & 3) | UInt8(bits >> 19 & 1) << 2) ?? .direct }
    /// A request reached APNs, or may have.
    var isSent: Bool { bits & Self.isSentBit != 0 }
    var reason: UInt8 { UInt8(truncatingIfNeeded: bits >> 20) }
    var credential: UInt8 { UInt8(truncatingIfNeeded: bits >> 28) }

    /// The same push, reported by its device.
    func reported(_ kind: Kind) -> CountedOutcome {
        CountedOutcome(bits: bits & ~(7 << 10) | UInt64(kind.rawValue) << 10)
    }

    func with(credential: UInt8) -> CountedOutcome {
        CountedOutcome(bits: bits & ~(0xFF << 28) | UInt64(credential) << 28)
    }
}

extension CountedOutcome.Kind {
    /// Nil for a verdict that is not final.
    init?(_ verdict: Verdict) {
        switch verdict {
        case .accepted: self = .accepted
        case .rejected: self = .rejected
        case .expired: self = .expired
        case .suppressed: self = .suppressed
        case .online: self = .online
        case .parked: return nil
        }
    }

    /// Its letter in the fields of Redis.
    var letter: String {
        switch self {
        case .accepted: "a"
        case .rejected: "r"
        case .expired: "e"
        case .suppressed: "x"
        case .online: "o"
        case .arrived: "v"
        case .opened: "w"
        }
    }

    /// Its word in what people read.
    var word: String { "\(self)" }
}

/// The reasons of outcomes as numbers of one byte, the same in every worker: marks contain them.
enum CountedReason {
    /// New ones go to the end. The last place is for a reason that is not listed.
    static let labels: [String] = [
        "ok", "forced", "no_recipients", "acked", "connection_only", "expired", "already_read", "msg_push_off",
        "conv_muted", "dnd", "desktop_online", "no_token", "payload_too_large", "revoked", "token_moved",
        "activity_over", "coalesced", "Unprocessed", "Unanswered", "Unfit", "BadDeviceToken", "DeviceTokenNotForTopic",
        "BadCollapseId", "BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic", "DuplicateHeaders",
        "IdleTimeout", "InvalidPushType", "MissingDeviceToken", "MissingTopic", "PayloadEmpty", "TopicDisallowed",
        "BadCertificate", "BadCertificateEnvironment", "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken",
        "ExpiredProviderToken", "Forbidden", "InvalidProviderToken", "MissingProviderToken", "UnrelatedKeyIdInToken",
        "BadPath", "MethodNotAllowed", "ExpiredToken", "Unregistered", "PayloadTooLarge",
        "TooManyProviderTokenUpdates", "TooManyRequests", "InternalServerError", "ServiceUnavailable", "Shutdown",
        "alerts_off",
    ]
    private static let other: UInt8 = 255
    private static let codes: [String: UInt8] = Dictionary(
        labels.enumerated().map { ($1, UInt8($0)) }, uniquingKeysWith: { first, _ in first })

    static func code(_ label: String) -> UInt8 { label == "ok" ? 0 : codes[label] ?? other }

    static func label(_ code: UInt8) -> String { Int(code) < labels.count ? labels[Int(code)] : "other" }
}
