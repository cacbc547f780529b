// SPDX-License-Identifier: Apache-2.0
/// A kind of traffic.
enum CostShape: String, CaseIterable {
    case single = "1:1"
    case group
    case muted
    /// The APNs client alone.
    case client
    /// So few 1:1 messages that callgrind plays them in a debug build (`deploy/push_path.py`).
    case trace

    var users: Int {
        switch self {
        case .single, .client: 3_000
        case .group, .muted: 2_000
        case .trace: 108
        }
    }
    /// Counted events.
    var events: Int { group == nil ? users : 4 }
    /// Members of a group.
    var group: Int? { self == .group || self == .muted ? 1_000 : nil }
    var isMuted: Bool { self == .muted }
}
