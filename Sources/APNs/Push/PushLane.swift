/// What kind of traffic a push is, where many wait: each lane is sure of its share of what leaves.
///
/// A giant group drains without holding up the chats beside it. How large the shares are, `LaneShares` says.
public enum PushLane: UInt8, Sendable, CaseIterable {
    /// Calls and security codes.
    case urgent
    /// One to one, and mentions.
    case direct
    /// Ordinary groups.
    case group
    /// Giant groups.
    case bulk
    /// Background pushes and badges.
    case silent

    /// Its name in metrics and in the configuration.
    public var name: StaticString {
        switch self {
        case .urgent: "urgent"
        case .direct: "direct"
        case .group: "group"
        case .bulk: "bulk"
        case .silent: "silent"
        }
    }

    /// Percent of `APNsLimits.pushesMax` up to which the lane may fill the client: the rest is for lanes above it.
    var fillPercent: Int {
        switch self {
        case .urgent, .direct: 100
        case .group: 90
        case .bulk, .silent: 80
        }
    }
}
