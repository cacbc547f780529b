/// The part of an app's configuration that decisions depend on (contract section 8).
public struct AppPolicy: Sendable {
    public var id: String
    /// The bundle id that pushes go to; a token bound to another topic keeps its own.
    public var topic: String
    public var profile = PayloadProfile.nim
    public var strategy = Strategy.connectionElseAPNs
    /// The last link of the mute chain; what is absent here lets everything through.
    public var defaultLevels: [Conversation.Kind: MuteLevel] = [:]
    public var dndMode = DNDMode.independent
    public var forceOverridesDND = false
    public var clearOnRead = false
    /// The largest number that is sent; 0: none.
    public var badgeCap: Int64 = 0
    public var defaultLanguage = "zh-Hans"
    public var defaultZone = "Asia/Shanghai"

    public enum DNDMode: String, Sendable {
        /// Mute levels and the quiet window are two vetoes (NIM).
        case independent
        /// An active window decides alone (RongCloud).
        case chain
    }

    public init(id: String, topic: String) {
        self.id = id
        self.topic = topic
    }
}

/// Where the offset of a time zone comes from: a table, never a clock.
public protocol ZoneTable {
    /// Seconds east of UTC in `zone` at `ms`; nil where the zone is unknown.
    func offset(of zone: String, at ms: Int64) -> Int?
}
