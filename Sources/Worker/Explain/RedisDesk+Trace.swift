public import Redis

extension RedisDesk {
    /// What happened to a user's events within the life of a trace, oldest first.
    ///
    /// - Parameter message: only what concerns this `msg_id`, and what carries it as `event_id`; nil: everything.
    public func trace(
        app: String, uid: String, message: String? = nil, plan: TracePlan, nowMs: Int64
    ) async throws(RedisFault) -> [TraceRecord] {
        var records: [TraceRecord] = []
        for day in plan.days(nowMs: nowMs) {
            var found: [TraceRecord] = []
            try await ask(
                1,
                { (store, tags) throws(RedisFault) in
                    try store.readTrace(app: app, uid: uid, day: day, tag: tags[0])
                },
                { _, reply in
                    reply.forEach { element in
                        if let record = TraceRecord(element.bytes) { found.append(record) }
                    }
                })
            records += found
        }
        let oldest = nowMs - plan.lifeMs
        var chosen: [TraceRecord] = []
        for record in records where record.atMs >= oldest {
            guard message == nil || record.msgID == message || record.eventID == message else { continue }
            // Written twice where the answer to the first writing was lost.
            if chosen.last != record { chosen.append(record) }
        }
        return chosen.reversed()
    }

    /// How far a message has come for a user, by its mark alone; nil: nobody has begun it, or the mark is over.
    public func progress(app: String, uid: String, message: String) async throws(RedisFault) -> PairProgress? {
        guard let mark = try await mark(app: app, uid: uid, kind: .message, id: message) else { return nil }
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
