// SPDX-License-Identifier: Apache-2.0
/// Whether a connection can deliver a message now: by the clock, never by a disconnect event (contract section 4).
public enum Liveness: Sendable, Equatable {
    /// Suspended, off, or suspect: the route is APNs.
    case dead
    case foreground
    /// Left the foreground less than two minutes ago, and can raise a local alert.
    case background

    /// A mobile system freezes an app at this time at the latest, without an event.
    public static let backgroundActiveMs: Int64 = 120_000

    public var isLive: Bool { self != .dead }

    /// Maximum time for an ack (contract section 5).
    public var ackWithinMs: Int64 { self == .foreground ? 8_000 : 4_000 }
}

extension DevicePresence {
    public func liveness(at now: Int64) -> Liveness {
        if isSuspect { return .dead }
        switch state {
        case .off: return .dead
        case .foreground: return .foreground
        case .background:
            guard raisesLocalAlert, let since = backgroundSinceMs else { return .dead }
            return since > now &- Liveness.backgroundActiveMs ? .background : .dead
        }
    }
}
