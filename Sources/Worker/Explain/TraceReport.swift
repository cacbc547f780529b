// SPDX-License-Identifier: Apache-2.0
public import PushCore

/// The report of `carillon trace` and of the operator's page on a user's events.
public enum TraceReport: Sendable, Equatable {
    /// Oldest first. If all of a user's events were asked for, also those that have begun and not ended.
    case records([TraceRecord], waiting: [WaitingPush])
    /// Nothing was found; the text gives possible reasons.
    case absent(String)
}

/// An event that has begun for a user and not ended, or a device with pushes in `carillon.parked`.
public struct WaitingPush: Sendable, Equatable {
    public enum What: Sendable, Equatable {
        case event(PairKind, id: String)
        /// - Parameters:
        ///   - dueMs: when it is looked at again, Unix ms.
        ///   - isAPNsAsking: APNs wants the device left alone until then.
        case parked(device: String, dueMs: Int64, isAPNsAsking: Bool)
    }

    public var what: What
}

extension PairKind {
    /// The `kind` of its record.
    public var title: String {
        switch self {
        case .message: "message"
        case .revoke: "revoke"
        case .liveActivity: "live_activity"
        }
    }
}

extension TraceRecord {
    /// Its kind and `msg_id`; a Live Activity has no `msg_id`.
    public var title: String { msgID.isEmpty ? kind.title : "\(kind.title) \(msgID)" }
}

extension DecisionStep {
    /// As `explain` names it.
    public var title: String {
        switch self {
        case .expiry: "expiry"
        case .read: "read"
        case .veto: "veto"
        case .mute: "mute"
        case .dnd: "DND"
        case .badge: "badge"
        case .routes: "route"
        case .token: "token"
        }
    }
}
