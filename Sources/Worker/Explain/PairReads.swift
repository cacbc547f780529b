// SPDX-License-Identifier: Apache-2.0
public import Redis

/// A (user, message) pair in the form of its mark's name.
public struct PairName: Sendable {
    public var app: String
    public var uid: String
    public var kind: PairKind
    /// The `msg_id`; for a Live Activity the event's id.
    public var id: String

    public init(app: String, uid: String, kind: PairKind, id: String) {
        self.app = app
        self.uid = uid
        self.kind = kind
        self.id = id
    }
}

/// The progress of a pair, and the event that made it.
public struct PairStanding: Sendable, Equatable {
    public var progress: PairProgress
    /// The finishing event and its time, Unix ms; nil if no trace was kept.
    public var trace: (eventID: String, atMs: Int64)?

    /// Nil if there is no mark.
    init?(of pair: PairName, _ reply: borrowing RedisReply) {
        guard let mark = PairMark(reply) else { return nil }
        progress =
            switch mark.state {
            case nil: .revokedOnly
            case .ended?: .ended
            case .fresh?, .resume?: .begun
            }
        let record = mark.trace.withUnsafeBytes {
            $0.isEmpty ? nil : TraceRecord($0, kind: pair.kind, id: pair.id)
        }
        trace = record.map { ($0.eventID, $0.atMs) }
    }

    public static func == (one: PairStanding, other: PairStanding) -> Bool {
        one.progress == other.progress && one.trace?.eventID == other.trace?.eventID
            && one.trace?.atMs == other.trace?.atMs
    }
}

/// The marks of (user, message) pairs, and the claims on them: the layer above `StateReader`.
public struct PairReads: Sendable {
    let state: StateReader

    public init(_ state: StateReader) { self.state = state }

    /// The progress of each pair, from marks only, in one round trip; nil if it has not begun, or if its mark has
    /// expired.
    public func standings(of pairs: [PairName]) async throws(RedisFault) -> [PairStanding?] {
        if pairs.isEmpty { return [] }
        let standings: [PairStanding?] = try await state.ask(
            pairs.count, into: Array(repeating: nil, count: pairs.count),
            { (store, tags) throws(RedisFault) in
                for (pair, tag) in zip(pairs, tags) {
                    try store.readMark(app: pair.app, uid: pair.uid, kind: pair.kind, id: pair.id, tag: tag)
                }
            },
            { standings, place, reply in standings[place] = PairStanding(of: pairs[place], reply) })
        let members = pairs.indices.filter { place in
            pairs[place].kind == .message && !pairs[place].uid.isEmpty && standings[place]?.progress != .ended
        }
        if members.isEmpty { return standings }
        // Marks of a group's finished members may be in a common key.
        return try await state.ask(
            members.count, into: standings,
            { (store, tags) throws(RedisFault) in
                for (place, tag) in zip(members, tags) {
                    try store.readGroupMarks(
                        app: pairs[place].app, uid: pairs[place].uid, id: pairs[place].id, tag: tag)
                }
            },
            { standings, index, reply in
                let place = members[index]
                if let standing = PairStanding(of: pairs[place], reply) { standings[place] = standing }
            })
    }

    /// A pair's mark: its own, or the one in the common key of the members.
    func mark(app: String, uid: String, kind: PairKind, id: String) async throws(RedisFault) -> PairMark? {
        let own = try await state.ask(
            { (store, tag) throws(RedisFault) in
                try store.readMark(app: app, uid: uid, kind: kind, id: id, tag: tag)
            }, { PairMark($0) })
        guard kind == .message, own?.state != .ended else { return own }
        return try await groupMark(app: app, uid: uid, id: id) ?? own
    }

    /// A finished member's mark in the common key; nil if there is none.
    func groupMark(app: String, uid: String, id: String) async throws(RedisFault) -> PairMark? {
        guard !uid.isEmpty else { return nil }
        return try await state.ask(
            { (store, tag) throws(RedisFault) in try store.readGroupMarks(app: app, uid: uid, id: id, tag: tag) },
            { PairMark($0) })
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

    /// Whether the badge ledger contains a message sent since then: it was counted, and is unread.
    private func ledgerHolds(
        app: String, uid: String, message: String, sentSince: Int64
    ) async throws(RedisFault) -> Bool {
        try await state.ask(
            { (store, tag) throws(RedisFault) in try store.readLedger(app: app, uid: uid, tag: tag) },
            { StateStore.holds($0, message: message, sentSince: sentSince) })
    }

    /// The present answer of a claim.
    func claimDryRun(_ request: ClaimRequest) async throws(RedisFault) -> ClaimReply {
        let reply = try await state.ask(
            { (store, tag) throws(RedisFault) in try store.claimDryRun(request, tag: tag) }, { ClaimReply($0) })
        guard let reply else { throw RedisFault(.protocolViolation, "the claim has no reply") }
        if request.subject.kind == .message, reply.state != .ended,
            try await groupMark(app: request.app, uid: request.uid, id: request.subject.id) != nil
        {
            return ClaimReply(state: .ended, badge: nil)
        }
        return reply
    }

    // MARK: - All marks of a user

    /// Goes through the marks of a user's own keys. Scans every key of the server in small steps, because an index would
    /// cost every push. Takes some seconds per ten million keys. A mark may come twice.
    func scanMarks(
        app: String, uid: String, _ take: ([UserMark]) async throws(RedisFault) -> Void
    ) async throws(RedisFault) {
        var cursor: UInt64 = 0
        repeat {
            let at = cursor
            let page = try await state.ask(
                { (store, tag) throws(RedisFault) in
                    try store.scanMarks(app: app, uid: uid, cursor: at, count: 2000, tag: tag)
                }, { ScanPage($0) { StateStore.mark(ofKey: $0, app: app, uid: uid) } })
            try await take(page.items)
            cursor = page.cursor
        } while cursor != 0
    }

    /// The group messages with members' marks in a common key, if this user is among them.
    func messagesWithGroupMarks(app: String, uid: String) async throws(RedisFault) -> Set<String> {
        var ids: Set<String> = []
        var cursor: UInt64 = 0
        repeat {
            let at = cursor
            let page = try await state.ask(
                { (store, tag) throws(RedisFault) in
                    try store.scanGroupMarks(app: app, uid: uid, cursor: at, count: 2000, tag: tag)
                }, { ScanPage($0) { StateStore.messageID(ofKey: $0, app: app) } })
            let names = page.items.map { PairName(app: app, uid: uid, kind: .message, id: $0) }
            for (id, standing) in zip(page.items, try await standings(of: names)) where standing?.progress == .ended {
                ids.insert(id)
            }
            cursor = page.cursor
        } while cursor != 0
        return ids
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

/// A mark of a user: its kind of message and the message.
typealias UserMark = (kind: PairKind, id: String)

/// One page of a scan of Redis' keys, with the wanted ones of its keys.
private struct ScanPage<Item: Sendable>: Sendable {
    let cursor: UInt64
    let items: [Item]

    /// - Parameter item: of a key; nil: another key.
    init(_ reply: borrowing RedisReply, _ item: (UnsafeRawBufferPointer) -> Item?) {
        cursor = reply[0].string.flatMap { UInt64($0) } ?? 0
        var found: [Item] = []
        reply[1].forEach { key in
            if let item = item(key.bytes) { found.append(item) }
        }
        items = found
    }
}
