// SPDX-License-Identifier: Apache-2.0
/// The class of a push's traffic. Each lane has a guaranteed share of the streams.
///
/// So a giant group drains without delaying 1:1 chats. `LaneShares` has the shares.
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

    /// Percent of `APNsLimits.pushesMax` up to which the lane may fill the client. The rest is for higher lanes.
    var fillPercent: Int {
        switch self {
        case .urgent, .direct: 100
        case .group: 90
        case .bulk, .silent: 80
        }
    }
}
