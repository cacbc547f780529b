// SPDX-License-Identifier: Apache-2.0
import PushCore
public import Redis

/// Reads of recipients, groups, tokens and marks.
extension StateStore {
    /// Token version, mute and read mark of a conversation, the badge's base, and the known owners
    /// (`RecipientReplies.conversation`, `KnownOwners`).
    ///
    /// Send it before `readUser`: a bind between the two reads then appears as a newer version in the claim, not the
    /// other way round. So a cluster client must not resend it after that read.
    public func readConversation(app: String, uid: String, conversation: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads, order: .fixed) { command in
            command.arg(word: "HMGET")
            command.key("c:s", app, uid)
            command.arg(word: "v")
            command.field("m", conversation)
            command.field("r", conversation)
            command.arg(word: "b")
            command.arg(word: "o")
        }
    }

    /// Only mute and read mark, for a recipient that will probably be denied (`RecipientReplies.denied`).
    func readDenied(app: String, uid: String, conversation: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HMGET")
            command.key("c:s", app, uid)
            command.field("m", conversation)
            command.field("r", conversation)
        }
    }

    /// All of a user's mutes and read marks (`RecipientReplies.mutes`): at most 2048 of both. For commands.
    func readConversations(app: String, uid: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HGETALL")
            command.key("c:s", app, uid)
        }
    }

    /// A member's level in a group (`RecipientReplies.member`), if the member scan has not given it.
    public func readMember(app: String, group: String, uid: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HGET")
            command.key(ofOthers: "g", app, group)
            command.arg(uid)
        }
    }

    /// Settings and tokens (`RecipientReplies.user`).
    public func readUser(app: String, uid: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HGETALL")
            command.key("c:u", app, uid)
        }
    }

    /// Presence (`RecipientReplies.presence`): the whole hash, or any 256 fields of a larger one.
    ///
    /// Gateways set no bound for the hash. HGETALL of a hash of 64 MB keeps Redis and the link busy for a second. HSCAN needs
    /// another page if a table is sparse, and costs ordinary users more.
    public func readPresence(app: String, uid: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HRANDFIELD")
            command.key(ofOthers: "p", app, uid)
            // `RecipientReplies.devicesMax`
            command.arg(word: "256")
            command.arg(word: "WITHVALUES")
        }
    }

    /// A gateway's lease: an integer epoch or null, for `LeaseCache.store`.
    public func lease(_ gateway: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "GET")
            command.part(word: "gw:{")
            command.part(gateway)
            command.part(word: "}")
            command.end()
        }
    }

    /// A page of a group's members (`MemberPage`); `count` is a hint.
    ///
    /// A cursor is valid only on the server that returned it (`memberServer`), so a cluster client never redirects it.
    public func members(app: String, group: String, cursor: UInt64, count: Int, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads, order: .fixed) { command in
            command.arg(word: "HSCAN")
            command.key(ofOthers: "g", app, group)
            command.arg(String(cursor))
            command.arg(word: "COUNT")
            command.arg(max(1, count))
        }
    }

    /// Number of members of a group: an integer.
    func memberCount(app: String, group: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HLEN")
            command.key(ofOthers: "g", app, group)
        }
    }

    /// The server for a group's members, as a unique number.
    public func memberServer(app: String, group: String) -> UInt32 {
        client.generation(ofKey: "g:{\(app):\(group)}")
    }

    /// The owner of a token (`OwnerReply`); sent together with a claim by the script or while it is unknown
    /// (`KnownOwners`), and for each push that waited.
    public func owner(app: String, token: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, ownerReads) { command in
            command.arg(word: "GET")
            command.key("c:o", app, token)
        }
    }

    /// The owners of several tokens: an array of `owner` replies, also null for a record of the wrong type. Not for a
    /// cluster, where each token has its own slot.
    func owners(app: String, tokens: some Collection<String>, tag: UInt64) throws(RedisFault) {
        try client.command(tag, ownerReads) { command in
            command.arg(word: "MGET")
            for token in tokens { command.key("c:o", app, token) }
        }
    }

    /// The devices that acknowledged a delivery of this message (`StateStore.devices`).
    public func acks(app: String, uid: String, msgID: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HGET")
            command.key("c:k", app, uid)
            command.arg(msgID)
        }
    }

    /// The devices of a set, or of the reply of `acks`.
    public static func devices(_ reply: borrowing RedisReply) -> [String] {
        if reply.kind == .string {
            // The time comes before them.
            let devices = reply.bytes.drop { (48...57).contains($0) }.drop { $0 == UInt8(ascii: " ") }
            return EarlierNotes(UnsafeRawBufferPointer(rebasing: devices))?.accepted.map(\.device) ?? []
        }
        var devices: [String] = []
        reply.forEach { device in
            guard let name = CompactText.text(device.bytes, atMost: InputLimit.user), !name.isEmpty else {
                return
            }
            devices.append(name)
        }
        return devices
    }

    /// The mark of a pair, without a claim (`PairMark`).
    public func readMark(app: String, uid: String, kind: PairKind, id: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "GET")
            command.key("c:d", app, uid, kind, suffix: id)
        }
    }

    /// Marks of several pairs, which `name` adds: an array of `readMark` replies, also null for a key of the wrong
    /// type. Not for a cluster, where each user has their own slot.
    func readMarks(
        tag: UInt64, _ pairs: (_ name: (_ app: String, _ uid: String, _ subject: ClaimSubject) -> Void) -> Void
    ) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "MGET")
            pairs { app, uid, subject in command.key("c:d", app, uid, subject.kind, suffix: subject.id) }
        }
    }

    /// The badge, without changes: two commands, for `BadgeReading`.
    public func readBadge(app: String, uid: String, baseTag: UInt64, sizeTag: UInt64) throws(RedisFault) {
        try client.command(baseTag, reads) { command in
            command.arg(word: "HGET")
            command.key("c:s", app, uid)
            command.arg(word: "b")
        }
        try readLedgerSize(app: app, uid: uid, tag: sizeTag)
    }

    /// The second of these two replies alone: without a client's report it is the badge.
    func readLedgerSize(app: String, uid: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "ZCARD")
            command.key("c:l", app, uid)
        }
    }

    /// The devices of `notePushed` (`StateStore.devices`).
    public func pushedDevices(app: String, uid: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "SMEMBERS")
            command.key("c:b", app, uid)
        }
    }

    /// The state of a user's Live Activity (`ActivityState`).
    public func activityState(app: String, uid: String, activityID: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HGET")
            command.key("c:a", app, uid)
            command.arg(activityID)
        }
    }

    /// A page of the users who bound a Live Activity (`StateStore.activityUsers`), in byte order: concurrent changes or
    /// a server restart neither repeat nor skip a user.
    ///
    /// - Parameter last: the last uid of the previous page; nil for the first page.
    public func activityUsers(
        app: String, activityID: String, after last: String?, count: Int, tag: UInt64
    ) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "ZRANGEBYLEX")
            command.key("c:v", app, activityID)
            if let last { command.field("(", last) } else { command.arg(word: "-") }
            command.arg(word: "+")
            command.arg(word: "LIMIT")
            command.arg(0)
            command.arg(max(1, count))
        }
    }

    /// The reply of `activityUsers`. Fewer than requested means the last page.
    public static func activityUsers(_ reply: borrowing RedisReply) -> [String] { devices(reply) }
}
