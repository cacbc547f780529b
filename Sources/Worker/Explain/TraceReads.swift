// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore
public import Redis

/// The recorded decisions on a user's messages: the layer above `PairReads` and `UserReads`.
public struct TraceReads: Sendable {
    private let pairs: PairReads
    private let users: UserReads

    public init(_ state: StateReader) {
        pairs = PairReads(state)
        users = UserReads(state)
    }

    /// All that is recorded, or why nothing is.
    ///
    /// - Parameter message: a `msg_id`, found by one lookup; nil scans every key of the server for all messages.
    public func report(
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
        if let message, let kept = try await users.keptOriginal(app: app, msgID: message), let sendAtMs = kept.sendAtMs,
            sendAtMs > nowMs
        {
            let progress = try await pairs.progress(app: app, uid: uid, message: message, nowMs: nowMs)
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
        switch try await pairs.progress(app: app, uid: uid, message: message, nowMs: nowMs) {
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

    /// The recorded decisions on one message for a user; for a Live Activity, on the event. Oldest first.
    public func trace(
        app: String, uid: String, message id: String, plan: TracePlan, nowMs: Int64
    ) async throws(RedisFault) -> [TraceRecord] {
        var records: [TraceRecord] = []
        for kind in [PairKind.message, .revoke, .liveActivity] {
            if let record = try await trace(app: app, uid: uid, kind, id) { records.append(record) }
        }
        return Self.ordered(records, plan, nowMs)
    }

    /// The recorded decisions on all of a user's events, and the events without an end. Scans every key of the server in
    /// small steps, because an index would cost every push. Takes some seconds per ten million keys.
    public func traces(
        app: String, uid: String, plan: TracePlan, nowMs: Int64
    ) async throws(RedisFault) -> (records: [TraceRecord], waiting: [WaitingPush]) {
        var marks: [String: UserMark] = [:]
        try await pairs.scanMarks(app: app, uid: uid) { (page: [UserMark]) throws(RedisFault) in
            // A scan may return a key twice.
            for mark in page { marks[mark.kind.rawValue + mark.id] = mark }
        }
        for id in try await pairs.messagesWithGroupMarks(app: app, uid: uid) {
            marks[PairKind.message.rawValue + id] = (.message, id)
        }
        var records: [TraceRecord] = []
        var waiting: [WaitingPush] = []
        for (kind, id) in marks.values.sorted(by: { $0.id < $1.id }) {
            guard let mark = try await pairs.mark(app: app, uid: uid, kind: kind, id: id) else { continue }
            if let record = Self.record(mark, kind, id) { records.append(record) }
            if mark.state == .fresh || mark.state == .resume {
                waiting.append(WaitingPush(what: .event(kind, id: id)))
            }
        }
        return (Self.ordered(records, plan, nowMs), waiting + (try await parked(app: app, uid: uid, nowMs: nowMs)))
    }

    /// The devices that have a push in `carillon.parked`.
    private func parked(app: String, uid: String, nowMs: Int64) async throws(RedisFault) -> [WaitingPush] {
        var waiting: [WaitingPush] = []
        for (device, note) in try await users.recipient(app: app, uid: uid, conversation: "", group: nil).parked
        where note.leftMs(nowMs: nowMs) != nil {
            let isAPNsAsking = try await users.pauseMs(app: app, uid: uid, device: device, nowMs: nowMs) != nil
            waiting.append(
                WaitingPush(what: .parked(device: device, dueMs: note.dueMs, isAPNsAsking: isAPNsAsking)))
        }
        return waiting
    }

    private func trace(
        app: String, uid: String, _ kind: PairKind, _ id: String
    ) async throws(RedisFault) -> TraceRecord? {
        try await pairs.mark(app: app, uid: uid, kind: kind, id: id).flatMap { Self.record($0, kind, id) }
    }

    private static func record(_ mark: PairMark, _ kind: PairKind, _ id: String) -> TraceRecord? {
        mark.trace.isEmpty ? nil : mark.trace.withUnsafeBytes { TraceRecord($0, kind: kind, id: id) }
    }

    private static func ordered(_ records: [TraceRecord], _ plan: TracePlan, _ nowMs: Int64) -> [TraceRecord] {
        records.filter { $0.atMs >= nowMs - plan.lifeMs }.sorted { ($0.atMs, $0.eventID) < ($1.atMs, $1.eventID) }
    }
}
