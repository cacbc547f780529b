// SPDX-License-Identifier: Apache-2.0
public import PushCore
public import Redis

/// The owner of a token, read just before a push.
public struct OwnerReply: Sendable, Equatable {
    public var uid: String
    public var version: Int64
    public var isBound: Bool
    /// It was removed because of APNs' answer.
    public var isDead = false

    /// Reads the reply of `StateStore.owner`; nil if nobody owns the token or the record is unreadable.
    public init?(_ reply: borrowing RedisReply) {
        guard !reply.isNull else { return nil }
        var text = CompactText(reply.bytes)
        guard text.skip("1 "), let version = StateKeys.version(of: text.word()) else { return nil }
        isBound = text.skip("b ")
        if !isBound { isDead = text.word().elementsEqual("d".utf8) }
        guard let count = text.number(), let uid = text.string(count, atMost: InputLimit.user)
        else { return nil }
        self.uid = uid
        self.version = version
    }

    /// The relation of a token to the user with the hash that contains it.
    enum Standing: Equatable {
        /// Unchanged: a push may be sent.
        case owned
        /// APNs refused it as it was bound: the copy goes once the backend is notified (`TokenRemovals`).
        case refused
        /// The user bound it again since it was read, or the device has another one now: the decision is made again
        /// (contract section 5, step 15).
        case rebound
        /// Another user's, or nobody's: `token_moved`.
        case moved
    }

    static func standing(_ reply: borrowing RedisReply, uid: String, token: borrowing BoundToken) -> Standing {
        var text = CompactText(reply.bytes)
        guard text.skip("1 ") else { return .moved }
        let version = StateKeys.version(of: text.word())
        let isBound = text.skip("b ")
        let isDead = !isBound && text.skip("d ")
        guard isBound || isDead || text.skip("u ") || text.skip("s "), let count = text.number(),
            text.skip(count, ifTheyAre: uid), let version
        else { return .moved }
        if version != token.version { return .rebound }
        return isBound ? .owned : isDead ? .refused : .rebound
    }

    /// - Returns: whether a push may go to this token of this user.
    public static func allows(_ reply: borrowing RedisReply, uid: String, token: borrowing BoundToken) -> Bool {
        standing(reply, uid: uid, token: token) == .owned
    }
}

/// The badge as `StateStore.readBadge` reads it, in two replies.
public struct BadgeReading: Sendable, Equatable {
    /// The time of the client's report; nil if there was none.
    private(set) var atMs: Int64?
    private var value: Int64 = 0
    private var taken: Int64 = 0
    /// Entries of the ledger that were sent before the report.
    private(set) var past: Int64 = 0

    /// For a user without a report.
    init() {}

    /// The first reply: the client's last report and the number subtracted since; without a report all zero.
    public init(base: borrowing RedisReply) {
        var text = CompactText(base.bytes)
        guard let atMs = text.number(), let value = text.number(), let taken = text.number(), let past = text.number()
        else {
            return
        }
        self.atMs = atMs
        // The sums remain valid numbers, whatever is stored.
        (self.value, self.taken, self.past) = (StateKeys.time(value), StateKeys.time(taken), StateKeys.time(past))
    }

    /// Some messages of the ledger are part of the report.
    var hasPast: Bool { past > 0 }

    /// The client has reported a total.
    var hasReport: Bool { atMs != nil }

    /// The client has reported its total as of that time or later.
    func isReported(since ms: Int64) -> Bool { atMs.map { $0 >= ms } ?? false }

    /// Counted messages that were sent after the report; `size` as in `badge(size:)`.
    func later(size: Int64) -> Int64 {
        let size = StateKeys.time(size)
        return size - min(past, size)
    }

    /// The number for the next push. `size` is the second reply's integer.
    public func badge(size: Int64) -> Int64 {
        let size = StateKeys.time(size)
        return size - min(past, size) + max(0, value - taken)
    }
}
