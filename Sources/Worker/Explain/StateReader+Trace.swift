public import Redis

extension StateReader {
    /// What happened to one message for a user; of a Live Activity, the event. Oldest first.
    public func trace(
        app: String, uid: String, message id: String, plan: TracePlan, nowMs: Int64
    ) async throws(RedisFault) -> [TraceRecord] {
        var records: [TraceRecord] = []
        for kind in [PairKind.message, .revoke, .liveActivity] {
            if let record = try await trace(app: app, uid: uid, kind, id) { records.append(record) }
        }
        return Self.ordered(records, plan, nowMs)
    }

    /// What happened to all of a user's events: looks through every key that the server holds, in small steps, since no
    /// push pays for an index. Some seconds per ten million keys.
    public func traces(
        app: String, uid: String, plan: TracePlan, nowMs: Int64
    ) async throws(RedisFault) -> [TraceRecord] {
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
            // A key may come twice.
            for mark in next.marks { marks[mark.kind.rawValue + mark.id] = mark }
            cursor = next.cursor
        } while cursor != 0
        for id in try await messagesTogether(app: app, uid: uid) {
            marks[PairKind.message.rawValue + id] = (.message, id)
        }
        var records: [TraceRecord] = []
        for mark in marks.values {
            if let record = try await trace(app: app, uid: uid, mark.kind, mark.id) { records.append(record) }
        }
        return Self.ordered(records, plan, nowMs)
    }

    /// The group messages whose members' marks lie together, this user's among them.
    private func messagesTogether(app: String, uid: String) async throws(RedisFault) -> Set<String> {
        var ids: Set<String> = []
        var cursor: UInt64 = 0
        repeat {
            let (at, next) = (cursor, TogetherPage())
            try await ask(
                1,
                { (store, tags) throws(RedisFault) in
                    try store.scanTogether(app: app, uid: uid, cursor: at, count: 2000, tag: tags[0])
                },
                { _, reply in next.take(reply, app: app) })
            for standing in zip(
                next.ids, try await standings(of: next.ids.map { PairName(app: app, uid: uid, kind: .message, id: $0) })
            )
            where standing.1?.progress == .finished {
                ids.insert(standing.0)
            }
            cursor = next.cursor
        } while cursor != 0
        return ids
    }

    private func trace(
        app: String, uid: String, _ kind: PairKind, _ id: String
    ) async throws(RedisFault) -> TraceRecord? {
        guard let mark = try await mark(app: app, uid: uid, kind: kind, id: id), !mark.trace.isEmpty else { return nil }
        return mark.trace.withUnsafeBytes { TraceRecord($0, kind: kind, id: id) }
    }

    private static func ordered(_ records: [TraceRecord], _ plan: TracePlan, _ nowMs: Int64) -> [TraceRecord] {
        records.filter { $0.atMs >= nowMs - plan.lifeMs }.sorted { ($0.atMs, $0.eventID) < ($1.atMs, $1.eventID) }
    }

    /// How far a message has come for a user; nil: nobody has begun it, or its mark is over.
    public func progress(
        app: String, uid: String, message: String, nowMs: Int64
    ) async throws(RedisFault) -> PairProgress? {
        guard let mark = try await mark(app: app, uid: uid, kind: .message, id: message) else {
            // What plain commands have claimed has no mark before it is finished, which lives for a day at least.
            let since = nowMs - StateKeys.markSecondsMin * 1000
            return try await ledgerHolds(app: app, uid: uid, message: message, sentSince: since) ? .begun : nil
        }
        switch mark.state {
        case nil: return .revokedOnly
        case .finished?: return .finished
        case .fresh?, .resume?: return .begun
        }
    }
}

/// What the mark of a (user, message) says.
public enum PairProgress: Sendable, Equatable {
    /// Claimed and not finished: in work now, waiting for an ack or a hold, or left behind by a crash.
    case begun
    case finished
    /// Only its recall has come.
    case revokedOnly
}

/// One page of a scan for marks that lie together.
private final class TogetherPage {
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
