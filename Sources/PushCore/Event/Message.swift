// SPDX-License-Identifier: Apache-2.0
import Digits

/// A `message` or a `revoke` (contract section 2).
public struct Message: Sendable {
    /// Distinguishes two pushes with the same `msgID`. Part of the duplicate key and of the push id.
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
    /// RongCloud's objectName or NIM's type. Selects the built-in text.
    public var typeName: String?
    /// Rising per conversation. Compared with a read record's `up_to_seq`.
    public var serverSeq: Int64?
    /// Nothing is sent at or after this time. Default: sent + 24 h.
    public var expireAtMs: Int64
    public var kind: Kind = .message
    /// A custom type alerts only with its own content.
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
        /// Given recipients; nil for a group or ultra group with members in Redis.
        public var uids: [String]?
        public var exclude: [String] {
            didSet { index = TextIndex(exclude) }
        }
        /// The devices that the message goes to; nil: all of the recipients' devices.
        public var limit: DeviceLimit?
        private var index: TextIndex?

        public init(uids: [String]? = nil, exclude: [String] = [], limit: DeviceLimit? = nil) {
            self.uids = uids
            self.exclude = exclude
            self.limit = limit
            index = TextIndex(exclude)
        }

        public func excludes(_ uid: String) -> Bool { index?.contains(uid) ?? exclude.containsSame(uid) }
    }

    /// `@`. Me and all may both be set.
    public struct Mention: Sendable, Equatable {
        public var all: Bool
        public var uids: [String] {
            didSet { index = TextIndex(uids) }
        }
        private var index: TextIndex?

        public init(all: Bool = false, uids: [String] = []) {
            self.all = all
            self.uids = uids
            index = TextIndex(uids)
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
    /// The type of the tokens that it is pushed to. Ordinary pushes never go to voip tokens.
    public var tokenType: TokenRecord.Kind { push.voip ? .voip : .alert }

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
