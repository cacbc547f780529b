// SPDX-License-Identifier: Apache-2.0
public import APNsProtocol
public import PushCore

/// The `apns-*` headers of an event, equal for all receivers. Topic and id differ per push.
public struct EventHeaders: Sendable, Equatable {
    public var pushType: PushType
    /// 10, 5 or 1.
    public var priority: UInt8
    /// Unix seconds. 0: one attempt, APNs stores nothing.
    public var expirationSeconds: Int64
    /// At most 64 bytes of printable ASCII; nil sends none.
    public var collapseID: [UInt8]?

    /// - Parameters:
    ///   - profile: says whether a payload that is a text can hold a collapse id.
    ///   - original: of the message that a revoke names.
    public init(
        _ message: borrowing Message, profile: PayloadProfile, original: CollapseID.Original = .known(nil)
    ) {
        pushType = message.push.voip ? .voip : message.push.silent ? .background : .alert
        let wanted = message.push.priority.apns
        // Apple: a background push with priority 10 is an error, and 5 is recommended. A silent call has 5 too.
        priority = message.push.silent ? 5 : wanted
        expirationSeconds = message.push.voip ? 0 : Self.seconds(message.expireAtMs)
        collapseID = CollapseID.choose(message, profile: profile, original: original)
    }

    /// - Parameter expireAtMs: a Live Activity record without one expires 24 h after `sent_ms`.
    public init(_ activity: borrowing LiveActivity, expireAtMs: Int64) {
        pushType = .liveactivity
        priority = activity.priority.apns
        // A channel without storage takes no other.
        expirationSeconds = activity.channel == nil ? Self.seconds(expireAtMs) : 0
        collapseID = nil
    }

    /// 0 would mean one attempt, and a time before 1970 has no meaning.
    private static func seconds(_ ms: Int64) -> Int64 { max(1, ms / 1000) }
}
