// SPDX-License-Identifier: Apache-2.0
import EventLoop
public import PushCore
public import Redis

/// The result of restoring an app's tokens.
public struct TokensRestored: Sendable, Equatable {
    /// Removed for that cause since that time.
    public var found = 0
    /// Restored; in a dry run, those that would be.
    public var restored = 0
    /// The device has another token now, or the token has another owner or a newer bind.
    public var boundAnew = 0
    /// The user unbound it.
    public var unbound = 0

    public init() {}
}

/// The restoring of an app's removed tokens on an operator's request: the layer above `StateReader`.
public struct TokenRestoration: Sendable {
    private let state: StateReader
    private let app: String
    private let cause: RemovalBrake.Cause
    private let sinceMs: Int64
    private let isDryRun: Bool
    private var counts = TokensRestored()

    private static let page = 256

    /// - Parameters:
    ///   - cause: tokens that were removed for it.
    ///   - sinceMs: since this time.
    ///   - isDryRun: only counts, without changes.
    public init(_ state: StateReader, app: String, cause: RemovalBrake.Cause, sinceMs: Int64, isDryRun: Bool) {
        self.state = state
        self.app = app
        self.cause = cause
        self.sinceMs = sinceMs
        self.isDryRun = isDryRun
    }

    /// Restores the tokens, unless they were bound again.
    ///
    /// May be run again: a restored token counts once, because its tombstone is removed.
    public mutating func run() async throws(RedisFault) -> TokensRestored {
        for bucket in 0..<Tombstone.buckets {
            var offset = 0
            while true {
                let page = try await tombstones(bucket: bucket, offset: offset)
                let wanted = page.filter { $0.cause == cause.label }
                let before = counts.restored
                for tombstone in wanted {
                    guard let token = tombstone.token else { continue }
                    counts.found += 1
                    if isDryRun {
                        try await check(tombstone, token)
                    } else {
                        try await revive(tombstone, token)
                    }
                }
                if page.count < Self.page { break }
                // Restored ones are no longer in the list.
                offset += page.count - (isDryRun ? 0 : counts.restored - before)
            }
        }
        return counts
    }

    private func tombstones(bucket: Int, offset: Int) async throws(RedisFault) -> [Tombstone] {
        let (app, sinceMs) = (app, sinceMs)
        return try await state.ask { (store, tag) throws(RedisFault) in
            try store.tombstones(
                app: app, bucket: bucket, sinceMs: sinceMs, offset: offset, count: Self.page, tag: tag)
        } _: { reply in
            var found: [Tombstone] = []
            reply.forEach { member in
                // An unreadable tombstone keeps its place in the page.
                found.append(Tombstone(member: member.bytes) ?? Tombstone.unreadable)
            }
            return found
        }
    }

    private mutating func check(_ tombstone: Tombstone, _ token: BoundToken) async throws(RedisFault) {
        let app = app
        let isFree = try await state.ask { (store, tag) throws(RedisFault) in
            try store.tokenField(app: app, tombstone, tag: tag)
        } _: { reply in
            reply.isNull || reply.string == tombstone.record
        }
        let owner: Int64 = try await state.ask { (store, tag) throws(RedisFault) in
            try store.owner(app: app, token: token.record.hex, tag: tag)
        } _: { reply in
            if reply.isNull { return 1 }
            guard let owner = OwnerReply(reply), owner.uid == tombstone.uid, owner.version == token.version else {
                return 0
            }
            return owner.isBound || owner.isDead ? 1 : 2
        }
        note(isFree ? owner : 0)
    }

    private mutating func revive(_ tombstone: Tombstone, _ token: BoundToken) async throws(RedisFault) {
        let app = app
        // The copy first: nothing is pushed to the token until its owner entry agrees.
        let stands = try await state.ask(
            { (store, tag) throws(RedisFault) in try store.reviveToken(app: app, tombstone, tag: tag) },
            { $0.int64 ?? 0 })
        guard stands == 1 else { return note(0) }
        let owner = try await state.ask(
            { (store, tag) throws(RedisFault) in try store.reviveOwner(app: app, tombstone, token, tag: tag) },
            { $0.int64 ?? 0 })
        try await state.ask(
            { (store, tag) throws(RedisFault) in
                if owner == 1 {
                    try store.forgetTombstone(app: app, tombstone, token, tag: tag)
                } else {
                    try store.dropToken(
                        app: app, uid: tombstone.uid, token: token.record.hex, upTo: token.version,
                        boundMs: token.record.boundMs, nowMs: Loop.wallMs(), tag: tag)
                }
            }, { _ in })
        note(owner)
    }

    private mutating func note(_ owner: Int64) {
        switch owner {
        case 1: counts.restored += 1
        case 2: counts.unbound += 1
        default: counts.boundAnew += 1
        }
    }
}

extension Tombstone {
    /// Replaces an unreadable tombstone; it has no cause.
    fileprivate static let unreadable = Tombstone(cause: "", uid: "", field: "", record: "")

    fileprivate init(cause: String, uid: String, field: String, record: String) {
        self.cause = cause
        self.uid = uid
        self.field = field
        self.record = record
    }
}
