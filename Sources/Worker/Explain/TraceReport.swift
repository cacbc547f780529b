// SPDX-License-Identifier: Apache-2.0
import Digits
public import PushCore
public import Redis

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

extension StateReader {
    /// - Parameter message: a `msg_id`, found by one lookup; nil scans every key of the server for all messages.
    public func traceReport(
        app: String, uid: String, message: String?, settings: Configuration.Trace, nowMs: Int64
    ) async throws(RedisFault) -> TraceReport {
        let plan = TracePlan(settings)
        let records: [TraceRecord]
        var waiting: [WaitingPush] = []
        if let message {
            records = try await trace(app: app, uid: uid, message: message, plan: plan, nowMs: nowMs)
        } else {
            (records, waiting) = try await traces(app: app, uid: uid, plan: plan, nowMs: nowMs)
        }
        if !records.isEmpty || !waiting.isEmpty { return .records(records, waiting: waiting) }
        return .absent(try await absence(app, uid, message, plan, settings, nowMs: nowMs))
    }

    private func absence(
        _ app: String, _ uid: String, _ message: String?, _ plan: TracePlan, _ settings: Configuration.Trace,
        nowMs: Int64
    ) async throws(RedisFault) -> String {
        let what = message.map { "of message \($0) for \(uid)" } ?? "of \(uid)"
        let nothing = "nothing \(what) in the last \(settings.ttlHours) h"
        if let message, let kept = try await keptOriginal(app: app, msgID: message), let sendAtMs = kept.sendAtMs,
            sendAtMs > nowMs
        {
            let progress = try await progress(app: app, uid: uid, message: message, nowMs: nowMs)
            let isRevoked = kept.isRevoked || progress == .revokedOnly
            return "\(nothing) yet: it is scheduled until \(InstantText.text(ms: sendAtMs)) (push.send_at_ms)"
                + (isRevoked ? "; it is revoked, and ends as revoked then" : ", and is decided then")
        }
        guard plan.covers(app: app, uid: uid) else {
            return settings.sample == 0
                ? "\(nothing): trace.sample is 0, no traces are kept"
                : "\(nothing): trace.sample (\(settings.sample)) leaves this user out, but for failures"
        }
        guard let message else { return "\(nothing): no event named this user, or the worker has not read it yet" }
        switch try await progress(app: app, uid: uid, message: message, nowMs: nowMs) {
        case .begun?:
            return "\(nothing) yet: it is in progress (waiting for an ack, a hold, a window or a retry), "
                + "or its worker died and it will be resumed"
        case .ended?:
            return "\(nothing), but it has ended: its trace was not kept"
        case .revokedOnly?:
            return "\(nothing): only its revoke has arrived, not the message itself"
        case nil:
            return
                "\(nothing): no worker has decided it for this user. The user may be its sender, excluded or not a member; "
                + "the record may be unread (see the lag) or bad (see the dead-letter topic)"
        }
    }
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
