public import APNsProtocol
public import PushCore

/// The `apns-*` headers that follow from an event, the same for all its receivers; topic and id are each push's own.
public struct EventHeaders: Sendable, Equatable {
    public var pushType: PushType
    /// 10, 5 or 1.
    public var priority: UInt8
    /// Unix seconds; 0: one attempt, nothing is stored.
    public var expirationSeconds: Int64
    /// At most 64 bytes of printable ASCII; nil: none is sent.
    public var collapseID: [UInt8]?

    /// - Parameters:
    ///   - profile: says whether a payload that is a text can hold a collapse id.
    ///   - original: of the message that a revoke names.
    public init(
        _ message: borrowing Message, profile: PayloadProfile, original: CollapseID.Original = .known(nil)
    ) {
        pushType = message.push.voip ? .voip : message.push.silent ? .background : .alert
        let wanted = message.push.priority.apns
        // Apple: a background push with priority 10 is an error, and 5 is what it recommends. A silent call has it too.
        priority = message.push.silent ? 5 : wanted
        expirationSeconds = message.push.voip ? 0 : Self.seconds(message.expireAtMs)
        collapseID = CollapseID.choose(message, profile: profile, original: original)
    }

    /// - Parameter expireAtMs: a Live Activity record names none: sent + 24 h.
    public init(_ activity: borrowing LiveActivity, expireAtMs: Int64) {
        pushType = .liveactivity
        priority = activity.priority.apns
        expirationSeconds = Self.seconds(expireAtMs)
        collapseID = nil
    }

    /// 0 would mean one attempt, and a time before 1970 means nothing.
    private static func seconds(_ ms: Int64) -> Int64 { max(1, ms / 1000) }
}
