public import PushCore
public import Redis

/// Whose a token is, as read just before a push.
public struct OwnerReply: Sendable, Equatable {
    public var uid: String
    public var version: Int64
    public var isBound: Bool
    /// It was removed because of APNs' answer.
    public var isDead = false

    /// Reads the reply of `StateStore.owner`; nil where nobody owns the token or the record cannot be read.
    public init?(_ reply: borrowing RedisReply) {
        guard !reply.isNull else { return nil }
        var text = CompactText(reply.bytes)
        guard text.skip("1 "), let version = StateKeys.version(of: text.word()) else { return nil }
        isBound = text.skip("b ")
        if !isBound { isDead = text.word().elementsEqual("d".utf8) }
        guard let count = text.number(), let uid = text.string(count, atMost: EventReader.Limit.user)
        else { return nil }
        self.uid = uid
        self.version = version
    }

    /// How a token stands to the user it was read of.
    enum Standing: Equatable {
        /// As it was read: a push may go.
        case owned
        /// The user bound it anew since it was read, or his device has another one now: the decision is to be taken again
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
        guard isBound || text.skip("u ") || text.skip("d "), let count = text.number(),
            text.skip(count, ifTheyAre: uid), let version
        else { return .moved }
        return isBound && version == token.version ? .owned : .rebound
    }

    /// Whether a push may go to this token of this user.
    public static func allows(_ reply: borrowing RedisReply, uid: String, token: borrowing BoundToken) -> Bool {
        standing(reply, uid: uid, token: token) == .owned
    }
}

/// The badge as `StateStore.readBadge` reads it, in two replies.
public struct BadgeReading: Sendable, Equatable {
    /// As of when the client reported; nil: it never has.
    private(set) var atMs: Int64?
    private var value: Int64 = 0
    private var taken: Int64 = 0
    private var past: Int64 = 0

    /// Of a user who has none.
    init() {}

    /// The first reply: the client's last report and what has been taken off it since; none is all zero.
    public init(base: borrowing RedisReply) {
        var text = CompactText(base.bytes)
        guard let atMs = text.number(), let value = text.number(), let taken = text.number(), let past = text.number()
        else {
            return
        }
        self.atMs = atMs
        // Whatever stands there, the sums stay numbers.
        (self.value, self.taken, self.past) = (StateKeys.time(value), StateKeys.time(taken), StateKeys.time(past))
    }

    /// The client has reported its total as of that time or later.
    func isReported(since ms: Int64) -> Bool { atMs.map { $0 >= ms } ?? false }

    /// Counted messages that were sent after the report; `size` as in `badge(size:)`.
    func later(size: Int64) -> Int64 {
        let size = StateKeys.time(size)
        return size - min(past, size)
    }

    /// The number that the next push would carry; `size` is the second reply's integer.
    public func badge(size: Int64) -> Int64 {
        let size = StateKeys.time(size)
        return size - min(past, size) + max(0, value - taken)
    }
}
