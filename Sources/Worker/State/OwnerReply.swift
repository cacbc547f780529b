public import PushCore
public import Redis

/// Whose a token is, as read just before a push.
public struct OwnerReply: Sendable, Equatable {
    public var uid: String
    public var version: Int64
    public var isBound: Bool

    /// Reads the reply of `StateStore.owner`; nil where nobody owns the token or the record cannot be read.
    public init?(_ reply: borrowing RedisReply) {
        guard !reply.isNull else { return nil }
        var text = CompactText(reply.bytes)
        guard text.skip("1 "), let version = StateKeys.version(of: text.word()) else { return nil }
        isBound = text.skip("b ")
        if !isBound { _ = text.word() }
        guard let count = text.number(), let uid = text.string(count) else { return nil }
        self.uid = uid
        self.version = version
    }

    /// Whether a push may go to this token of this user; anything else is `token_moved`.
    public static func allows(_ reply: borrowing RedisReply, uid: String, token: borrowing BoundToken) -> Bool {
        var text = CompactText(reply.bytes)
        guard text.skip("1 "), StateKeys.version(of: text.word()) == token.version, text.skip("b "),
            let count = text.number()
        else { return false }
        return text.skip(count, ifTheyAre: uid)
    }
}

/// The badge as `StateStore.readBadge` reads it, in two replies.
public struct BadgeReading: Sendable, Equatable {
    private var value: Int64 = 0
    private var taken: Int64 = 0
    private var past: Int64 = 0

    /// Of a user who has none.
    init() {}

    /// The first reply: the client's last report and what has been taken off it since; none is all zero.
    public init(base: borrowing RedisReply) {
        var text = CompactText(base.bytes)
        guard text.number() != nil, let value = text.number(), let taken = text.number(), let past = text.number()
        else {
            return
        }
        (self.value, self.taken, self.past) = (value, taken, past)
    }

    /// The number that the next push would carry; `size` is the second reply's integer.
    public func badge(size: Int64) -> Int64 {
        max(0, size - min(past, size)) + max(0, value - taken)
    }
}
