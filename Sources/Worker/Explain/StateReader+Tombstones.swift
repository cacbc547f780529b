import EventLoop
public import PushCore
public import Redis

/// What became of an app's tombstones.
public struct TokensRestored: Sendable, Equatable {
    /// Removed for that cause since that time.
    public var found = 0
    /// Back, or in a dry run: would be.
    public var restored = 0
    /// The device has another token by now, or the token another owner or a newer bind.
    public var boundAnew = 0
    /// The user unbound it himself.
    public var unbound = 0

    public init() {}
}

extension StateReader {
    /// Workers that stopped since Redis lost its tokens go on without them.
    public func acceptLoss() async throws(RedisFault) {
        let nowMs = Loop.wallMs()
        _ = try await ask { (store, tag) throws(RedisFault) in
            try store.acceptLoss(nowMs: nowMs, tag: tag)
        } _: {
            !$0.isNull
        }
    }

    private static let page = 256

    /// Brings back the tokens of an app that were removed for a cause since a time, where nobody bound anew.
    ///
    /// May be run again: what is back already counts as restored only once, since its tombstone is gone.
    ///
    /// - Parameter isDryRun: counts what would be done, and changes nothing.
    public func restoreTokens(
        app: String, cause: RemovalBrake.Cause, sinceMs: Int64, isDryRun: Bool
    ) async throws(RedisFault) -> TokensRestored {
        var counts = TokensRestored()
        for bucket in 0..<Tombstone.buckets {
            var offset = 0
            while true {
                let page = try await tombstones(app: app, bucket: bucket, sinceMs: sinceMs, offset: offset)
                let wanted = page.filter { $0.cause == cause.label }
                let before = counts.restored
                for tombstone in wanted {
                    guard let token = tombstone.token else { continue }
                    counts.found += 1
                    if isDryRun {
                        try await look(tombstone, token, app: app, &counts)
                    } else {
                        try await revive(tombstone, token, app: app, &counts)
                    }
                }
                if page.count < Self.page { break }
                // Those that are back stand there no more.
                offset += page.count - (isDryRun ? 0 : counts.restored - before)
            }
        }
        return counts
    }

    private func tombstones(
        app: String, bucket: Int, sinceMs: Int64, offset: Int
    ) async throws(RedisFault) -> [Tombstone] {
        try await ask { (store, tag) throws(RedisFault) in
            try store.tombstones(
                app: app, bucket: bucket, sinceMs: sinceMs, offset: offset, count: Self.page, tag: tag)
        } _: { reply in
            var found: [Tombstone] = []
            reply.forEach { member in
                // What cannot be read keeps its place in the page.
                found.append(Tombstone(member: member.bytes) ?? Tombstone.unreadable)
            }
            return found
        }
    }

    private func look(
        _ tombstone: Tombstone, _ token: BoundToken, app: String, _ counts: inout TokensRestored
    ) async throws(RedisFault) {
        let isFree = try await ask { (store, tag) throws(RedisFault) in
            try store.tokenField(app: app, tombstone, tag: tag)
        } _: { reply in
            reply.isNull || reply.string == tombstone.record
        }
        let owner: Int64 = try await ask { (store, tag) throws(RedisFault) in
            try store.owner(app: app, token: token.record.hex, tag: tag)
        } _: { reply in
            if reply.isNull { return 1 }
            guard let owner = OwnerReply(reply), owner.uid == tombstone.uid, owner.version == token.version else {
                return 0
            }
            return owner.isBound || owner.isDead ? 1 : 2
        }
        note(isFree ? owner : 0, &counts)
    }

    private func revive(
        _ tombstone: Tombstone, _ token: BoundToken, app: String, _ counts: inout TokensRestored
    ) async throws(RedisFault) {
        // The copy first: while its owner does not say so too, nothing is pushed to it.
        let stands = try await number { (store, tag) throws(RedisFault) in
            try store.reviveToken(app: app, tombstone, tag: tag)
        }
        guard stands == 1 else { return note(0, &counts) }
        let owner = try await number { (store, tag) throws(RedisFault) in
            try store.reviveOwner(app: app, tombstone, token, tag: tag)
        }
        _ = try await number { (store, tag) throws(RedisFault) in
            if owner == 1 {
                try store.forgetTombstone(app: app, tombstone, token, tag: tag)
            } else {
                try store.dropToken(
                    app: app, uid: tombstone.uid, token: token.record.hex, upTo: token.version,
                    boundMs: token.record.boundMs, tag: tag)
            }
        }
        note(owner, &counts)
    }

    /// One command whose reply is an integer; 0 for any other reply.
    private func number(
        _ send: (StateStore, UInt64) throws(RedisFault) -> Void
    ) async throws(RedisFault) -> Int64 {
        try await ask(send) { $0.int64 ?? 0 }
    }

    private func note(_ owner: Int64, _ counts: inout TokensRestored) {
        switch owner {
        case 1: counts.restored += 1
        case 2: counts.unbound += 1
        default: counts.boundAnew += 1
        }
    }
}

extension Tombstone {
    /// In the place of one that cannot be read; it is of no cause.
    fileprivate static let unreadable = Tombstone(cause: "", uid: "", field: "", record: "")

    fileprivate init(cause: String, uid: String, field: String, record: String) {
        self.cause = cause
        self.uid = uid
        self.field = field
        self.record = record
    }
}
