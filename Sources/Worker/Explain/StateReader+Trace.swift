// SPDX-License-Identifier: Apache-2.0
import PushCore
public import Redis

extension StateReader {
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
        var marks: [String: (kind: PairKind, id: String)] = [:]
        var cursor: UInt64 = 0
        repeat {
            let (at, next) = (cursor, ScanPage())
            try await ask(
                1,
                { (store, tags) throws(RedisFault) in
                    try store.scanMarks(app: app, uid: uid, cursor: at, count: 2000, tag: tags[0])
                },
                { _, reply in next.take(reply, app: app, uid: uid) })
            // A scan may return a key twice.
            for mark in next.marks { marks[mark.kind.rawValue + mark.id] = mark }
            cursor = next.cursor
        } while cursor != 0
        for id in try await messagesWithGroupMarks(app: app, uid: uid) {
            marks[PairKind.message.rawValue + id] = (.message, id)
        }
        var records: [TraceRecord] = []
        var waiting: [WaitingPush] = []
        for (kind, id) in marks.values.sorted(by: { $0.id < $1.id }) {
            guard let mark = try await mark(app: app, uid: uid, kind: kind, id: id) else { continue }
            if let record = Self.record(mark, kind, id) { records.append(record) }
            if mark.state == .fresh || mark.state == .resume {
                waiting.append(WaitingPush(what: .event(kind, id: id)))
            }
        }
        return (Self.ordered(records, plan, nowMs), waiting + (try await parked(app: app, uid: uid, nowMs: nowMs)))
    }

    /// Removes all marks of a user, with their traces.
    func removeMarks(app: String, uid: String) async throws(RedisFault) {
        var cursor: UInt64 = 0
        repeat {
            let (at, next) = (cursor, ScanPage())
            try await ask(
                1,
                { (store, tags) throws(RedisFault) in
                    try store.scanMarks(app: app, uid: uid, cursor: at, count: 2000, tag: tags[0])
                },
                { _, reply in next.take(reply, app: app, uid: uid) })
            for mark in next.marks {
                try await ask(
                    { (store, tag) throws(RedisFault) in
                        try store.removeMark(app: app, uid: uid, name: mark.kind.rawValue + mark.id, tag: tag)
                    }, { _ in })
            }
            cursor = next.cursor
        } while cursor != 0
        for id in try await messagesWithGroupMarks(app: app, uid: uid) {
            try await ask(
                { (store, tag) throws(RedisFault) in try store.removeGroupMark(app: app, uid: uid, id: id, tag: tag) },
                { _ in })
        }
    }

    /// The devices that have a push in `carillon.parked`.
    private func parked(app: String, uid: String, nowMs: Int64) async throws(RedisFault) -> [WaitingPush] {
        var waiting: [WaitingPush] = []
        for (device, note) in try await recipient(app: app, uid: uid, conversation: "", group: nil).parked
        where note.leftMs(nowMs: nowMs) != nil {
            let isAPNsAsking = try await pauseMs(app: app, uid: uid, device: device, nowMs: nowMs) != nil
            waiting.append(
                WaitingPush(what: .parked(device: device, dueMs: note.dueMs, isAPNsAsking: isAPNsAsking)))
        }
        return waiting
    }

    /// For how long APNs wants the device left alone (429), as a worker noted it; nil: it does not.
    func pauseMs(app: String, uid: String, device: String, nowMs: Int64) async throws(RedisFault) -> Int64? {
        let until = try await ask(
            { (store, tag) throws(RedisFault) in
                try store.readPause(app: app, uid: uid, device: device, tag: tag)
            }, { $0.string.flatMap { Int64($0) } })
        return until.flatMap { $0 > nowMs ? $0 &- nowMs : nil }
    }

    /// The background pushes of a device in its hour; nil: it has had none lately.
    func hour(app: String, uid: String, device: String) async throws(RedisFault) -> DeviceHour? {
        try await ask(
            { (store, tag) throws(RedisFault) in try store.readHour(app: app, uid: uid, device: device, tag: tag) },
            { $0.string.flatMap { DeviceHour($0) } })
    }

    /// The group messages with members' marks in a common key, if this user is among them.
    private func messagesWithGroupMarks(app: String, uid: String) async throws(RedisFault) -> Set<String> {
        var ids: Set<String> = []
        var cursor: UInt64 = 0
        repeat {
            let (at, next) = (cursor, GroupMarkPage())
            try await ask(
                1,
                { (store, tags) throws(RedisFault) in
                    try store.scanGroupMarks(app: app, uid: uid, cursor: at, count: 2000, tag: tags[0])
                },
                { _, reply in next.take(reply, app: app) })
            for standing in zip(
                next.ids, try await standings(of: next.ids.map { PairName(app: app, uid: uid, kind: .message, id: $0) })
            )
            where standing.1?.progress == .ended {
                ids.insert(standing.0)
            }
            cursor = next.cursor
        } while cursor != 0
        return ids
    }

    private func trace(
        app: String, uid: String, _ kind: PairKind, _ id: String
    ) async throws(RedisFault) -> TraceRecord? {
        try await mark(app: app, uid: uid, kind: kind, id: id).flatMap { Self.record($0, kind, id) }
    }

    private static func record(_ mark: PairMark, _ kind: PairKind, _ id: String) -> TraceRecord? {
        mark.trace.isEmpty ? nil : mark.trace.withUnsafeBytes { TraceRecord($0, kind: kind, id: id) }
    }

    private static func ordered(_ records: [TraceRecord], _ plan: TracePlan, _ nowMs: Int64) -> [TraceRecord] {
        records.filter { $0.atMs >= nowMs - plan.lifeMs }.sorted { ($0.atMs, $0.eventID) < ($1.atMs, $1.eventID) }
    }

    /// The progress of a message for a user; nil if it has not begun, or if its mark has expired.
    public func progress(
        app: String, uid: String, message: String, nowMs: Int64
    ) async throws(RedisFault) -> PairProgress? {
        guard let mark = try await mark(app: app, uid: uid, kind: .message, id: message) else {
            // A message claimed by plain commands has no mark until it is finished. A mark lives for at least a day.
            let since = nowMs - StateKeys.markSecondsMin * 1000
            return try await ledgerHolds(app: app, uid: uid, message: message, sentSince: since) ? .begun : nil
        }
        switch mark.state {
        case nil: return .revokedOnly
        case .ended?: return .ended
        case .fresh?, .resume?: return .begun
        }
    }
}

/// The content of the mark of a (user, message).
public enum PairProgress: Sendable, Equatable {
    /// Claimed and not finished: in progress, waiting for an ack or a hold, or left by a crash.
    case begun
    case ended
    /// Only its revoke has come.
    case revokedOnly
}

/// One page of a scan for marks in common keys.
private final class GroupMarkPage {
    var cursor: UInt64 = 0
    var ids: [String] = []

    func take(_ reply: borrowing RedisReply, app: String) {
        cursor = reply[0].string.flatMap { UInt64($0) } ?? 0
        reply[1].forEach { key in
            if let id = StateStore.messageID(ofKey: key.bytes, app: app) { ids.append(id) }
        }
    }
}

/// One page of a scan for a user's marks.
private final class ScanPage {
    var cursor: UInt64 = 0
    var marks: [(kind: PairKind, id: String)] = []

    func take(_ reply: borrowing RedisReply, app: String, uid: String) {
        cursor = reply[0].string.flatMap { UInt64($0) } ?? 0
        reply[1].forEach { key in
            if let mark = StateStore.mark(ofKey: key.bytes, app: app, uid: uid) { marks.append(mark) }
        }
    }
}
