import Digits

/// A `message` or a `revoke` (contract section 2).
public struct Message: Sendable {
    /// What distinguishes two pushes about the same `msgID`; part of the duplicate key and of the push id.
    public enum Kind: String, Sendable {
        case message, revoke
    }

    // Large parts first: see the initialiser of `PushOptions`.

    public var push: PushOptions
    public var conversation: Conversation
    public var from: Sender
    public var to: Audience
    public var mention: Mention?
    public var revoke: Revoke?
    /// Unique per app, ≤ 64 bytes.
    public var msgID: String
    /// RongCloud's objectName or NIM's type; names the built-in text.
    public var typeName: String?
    /// Rising per conversation; what a read receipt's `up_to_seq` is compared with.
    public var serverSeq: Int64?
    /// Nothing is sent at or after it. Absent in the record: sent + 24 h.
    public var expireAtMs: Int64
    public var kind: Kind = .message
    /// A custom type alerts only with a content of its own.
    public var isCustomType: Bool = false

    public struct Sender: Sendable, Equatable {
        public var uid: String
        public var nick: String?
        public var device: String?
        /// A URL of at most 512 bytes; for communication notifications.
        public var avatar: String?

        public init(uid: String, nick: String? = nil, device: String? = nil, avatar: String? = nil) {
            self.uid = uid
            self.nick = nick
            self.device = device
            self.avatar = avatar
        }
    }

    public struct Audience: Sendable, Equatable {
        /// Given recipients; nil for a group or ultra group whose members are read from Redis.
        public var uids: [String]?
        public var exclude: [String] {
            didSet { index = UserIndex(exclude) }
        }
        private var index: UserIndex?

        public init(uids: [String]? = nil, exclude: [String] = []) {
            self.uids = uids
            self.exclude = exclude
            index = UserIndex(exclude)
        }

        public func excludes(_ uid: String) -> Bool { index?.contains(uid) ?? exclude.containsSame(uid) }
    }

    /// `@`; me and all may both hold.
    public struct Mention: Sendable, Equatable {
        public var all: Bool
        public var uids: [String] {
            didSet { index = UserIndex(uids) }
        }
        private var index: UserIndex?

        public init(all: Bool = false, uids: [String] = []) {
            self.all = all
            self.uids = uids
            index = UserIndex(uids)
        }

        public func names(_ uid: String) -> Bool { index?.contains(uid) ?? uids.containsSame(uid) }
    }

    public struct Revoke: Sendable, Equatable {
        public var targetMsgID: String
        public var badge: Badge

        public enum Badge: String, Sendable {
            case decrease, keep, count
        }

        public init(targetMsgID: String, badge: Badge = .decrease) {
            self.targetMsgID = targetMsgID
            self.badge = badge
        }
    }
}

extension Message {
    public init(
        kind: Kind = .message, msgID: String, serverSeq: Int64? = nil, expireAtMs: Int64, conversation: Conversation,
        from: Sender, to: Audience, mention: Mention? = nil, typeName: String? = nil, isCustomType: Bool = false,
        push: PushOptions = PushOptions(), revoke: Revoke? = nil
    ) {
        self.init(
            push: push, conversation: conversation, from: from, to: to, mention: mention, revoke: revoke, msgID: msgID,
            typeName: typeName, serverSeq: serverSeq, expireAtMs: expireAtMs, kind: kind, isCustomType: isCustomType)
    }
}

/// A list that each recipient is looked for in. A record of one MiB can name a hundred thousand: searched one by one for
/// the members of a large group, they would hold up every other user of the shard.
private struct UserIndex: Sendable, Equatable {
    private let uids: Set<UTF8Key>

    /// Nil for a list that is searched faster as it stands.
    init?(_ uids: [String]) {
        guard uids.count > 32 else { return nil }
        self.uids = Set(uids.lazy.map { UTF8Key($0) })
    }

    func contains(_ uid: String) -> Bool { uids.contains(UTF8Key(uid)) }
}
