// SPDX-License-Identifier: Apache-2.0
/// A kind of traffic.
enum CostShape: String, CaseIterable {
    case single = "1:1"
    case group
    case muted
    /// The APNs client alone.
    case client

    var users: Int { self == .group || self == .muted ? 2_000 : 3_000 }
    /// Counted events.
    var events: Int { self == .group || self == .muted ? 4 : 3_000 }
    /// Members of a group.
    var group: Int? { self == .group || self == .muted ? 1_000 : nil }
    var isMuted: Bool { self == .muted }
}
