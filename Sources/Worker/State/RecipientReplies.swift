// SPDX-License-Identifier: Apache-2.0
public import PushCore
public import Redis

/// Fills a `Recipient` from the replies of `StateStore`'s reads.
///
/// Pure. Malformed data counts as absent: an invalid presence entry is a suspended device, an invalid token no token.
public enum RecipientReplies {
    /// Maximum devices and tokens that are read per user, because each is searched among the others. A bind keeps at
    /// most 64 tokens.
    static let devicesMax = 256

    /// Mute and read mark of the conversation. Returns the token version for the comparison with
    /// `ClaimReply.tokenVersion`.
    public static func conversation(_ reply: borrowing RedisReply, into recipient: inout Recipient) -> Int64 {
        if !reply[1].isNull { recipient.mute = mute(reply[1].bytes) }
        if !reply[2].isNull { recipient.read = readMark(reply[2].bytes) }
        return reply[0].int64 ?? 0
    }

    /// - Returns: how many entries of the ledger the client's total in the same reply includes; nil if it includes this message,
    ///   because it was reported at the message's time or later.
    static func past(_ reply: borrowing RedisReply, at subject: ClaimSubject) -> Int16? {
        if reply[3].isNull { return 0 }
        let base = BadgeReading(base: reply[3])
        return base.holds(subject) ? nil : Int16(clamping: base.past)
    }

    /// Only mute and read mark.
    static func denied(_ reply: borrowing RedisReply, into recipient: inout Recipient) {
        if !reply[0].isNull { recipient.mute = mute(reply[0].bytes) }
        if !reply[1].isNull { recipient.read = readMark(reply[1].bytes) }
    }

    /// The mutes among all fields of the key, by conversation; unreadable ones are absent.
    static func mutes(_ reply: borrowing RedisReply) -> [MutedConversation] {
        var mutes: [MutedConversation] = []
        reply.forEachPair { field, value in
            guard let letter = field.bytes.first, letter == UInt8(ascii: "m"), let mute = mute(value.bytes),
                let conversation = CompactText.text(
                    UnsafeRawBufferPointer(rebasing: field.bytes.dropFirst()), atMost: InputLimit.name)
            else { return }
            mutes.append(MutedConversation(conversation: conversation, mute: mute))
        }
        return mutes.sorted { $0.conversation < $1.conversation }
    }

    /// Settings and tokens.
    public static func user(_ reply: borrowing RedisReply, into recipient: inout Recipient) {
        recipient.parked.removeAll()
        var settings = SettingsText()
        var tokens: [BoundToken] = []
        reply.forEachPair { field, value in
            if field.bytes.first == UInt8(ascii: "t") {
                if tokens.count < devicesMax, let token = TokenText.token(field: field.bytes, record: value.bytes) {
                    tokens.append(token)
                }
            } else if field.bytes.first == UInt8(ascii: "y") {
                guard recipient.parked.count < devicesMax, field.bytes.count <= InputLimit.user + 1,
                    let note = ParkedNote(value.bytes)
                else { return }
                let device = UnsafeRawBufferPointer(rebasing: field.bytes.dropFirst())
                recipient.parked.append((String(decoding: device, as: UTF8.self), note))
            } else {
                settings.take(field: field.bytes, value: value.bytes)
            }
        }
        recipient.settings = settings.settings
        recipient.tokens = tokens
    }

    /// Presence as gateways wrote it (contract section 4). `LeaseCache` applies the leases.
    ///
    /// - Returns: How many devices have no name; they are skipped.
    @discardableResult
    public static func presence(_ reply: borrowing RedisReply, into recipient: inout Recipient) -> Int {
        guard reply.count > 0 else { return 0 }
        var emptyCount = 0
        var entries: [DevicePresence] = []
        entries.reserveCapacity(min(reply.count / 2, devicesMax))
        reply.forEachPair { field, value in
            if field.bytes.isEmpty {
                emptyCount += 1
            } else if entries.count < devicesMax,
                let entry = PresenceText.entry(device: field.bytes, value: value.bytes)
            {
                entries.append(entry)
            }
        }
        recipient.presence = entries
        return emptyCount
    }

    /// This member's level in the group.
    public static func member(_ reply: borrowing RedisReply, into recipient: inout Recipient) {
        recipient.groupLevel = level(reply)
    }

    /// A level as the IM backend wrote it; nil for an invalid one.
    static func level(_ reply: borrowing RedisReply) -> MuteLevel? {
        reply.int64.flatMap { Int(exactly: $0) }.flatMap(MuteLevel.init(rawValue:))
    }

    /// `<level> <until or -> <sent_ms>`
    private static func mute(_ bytes: UnsafeRawBufferPointer) -> Recipient.Mute? {
        var text = CompactText(bytes)
        guard let number = text.number(), let level = Int(exactly: number).flatMap(MuteLevel.init(rawValue:)) else {
            return nil
        }
        return Recipient.Mute(level: level, untilMs: text.number())
    }

    /// `<seq> <ms>|…`; either may be empty.
    static func readMark(_ bytes: UnsafeRawBufferPointer) -> UserState.ReadMark? {
        var text = CompactText(bytes)
        let mark = UserState.ReadMark(seq: text.number(), ms: text.number(until: UInt8(ascii: "|")))
        return mark.seq == nil && mark.ms == nil ? nil : mark
    }
}

/// One page of a group's members.
public struct MemberPage: Sendable, Equatable {
    /// The start of the next page; 0 after the last.
    public var cursor: UInt64
    public var members: [Member]
    /// Fields without a name; they are skipped.
    public private(set) var emptyCount = 0

    public struct Member: Sendable, Equatable {
        public var uid: String
        public var level: MuteLevel

        public init(uid: String, level: MuteLevel) {
            self.uid = uid
            self.level = level
        }
    }

    /// Reads the reply of `StateStore.members`; nil for any other reply.
    ///
    /// HSCAN may return a member twice if the hash grows. The claim accepts only one of them.
    public init?(_ reply: borrowing RedisReply) {
        guard reply.count == 2, let cursor = reply[0].string.flatMap(UInt64.init) else { return nil }
        self.cursor = cursor
        var members: [Member] = []
        var emptyCount = 0
        members.reserveCapacity(reply[1].count / 2)
        reply[1].forEachPair { uid, level in
            // No user can have this name, because no record accepts it.
            guard let uid = CompactText.text(uid.bytes, atMost: InputLimit.user) else { return }
            if uid.isEmpty { return emptyCount += 1 }
            members.append(Member(uid: uid, level: RecipientReplies.level(level) ?? .unset))
        }
        self.members = members
        self.emptyCount = emptyCount
    }
}

/// A conversation that the user muted.
public struct MutedConversation: Sendable {
    public var conversation: String
    public var mute: Recipient.Mute
}
