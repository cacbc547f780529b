public import PushCore

/// The `apns-*` headers that follow from an event, the same for all its receivers.
public struct PushHeaders: Sendable, Equatable {
    public var type: PushType
    public var priority: UInt8
    /// Unix seconds; 0: one attempt, nothing is stored.
    public var expiration: Int64
    public var collapseID: String

    public init(type: PushType, priority: UInt8, expiration: Int64, collapseID: String) {
        self.type = type
        self.priority = priority
        self.expiration = expiration
        self.collapseID = collapseID
    }

    /// - Parameter originalCollapseID: of a revoke: what its target was sent with, if known.
    public init(_ message: borrowing Message, originalCollapseID: String? = nil) {
        let push = message.push
        type = push.voip ? .voip : push.silent ? .background : .alert
        // Apple: a background push with priority 10 is an error.
        priority = type == .background ? min(5, push.priority.apns) : push.priority.apns
        // 0 would mean "one attempt"; a time before 1970 is none.
        expiration = push.voip ? 0 : max(1, message.expireAtMs / 1000)
        collapseID = CollapseID.choose(message, original: originalCollapseID)
    }
}

/// `apns-push-type`, with the suffix that its topic takes.
public enum PushType: String, Sendable {
    case alert, background, voip, liveactivity

    public var topicSuffix: String {
        switch self {
        case .alert, .background: ""
        case .voip: ".voip"
        case .liveactivity: ".push-type.liveactivity"
        }
    }

    /// `apns-topic` for a bare bundle id.
    public func topic(_ bundleID: String) -> String {
        topicSuffix.isEmpty ? bundleID : bundleID + topicSuffix
    }
}
