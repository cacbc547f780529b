// SPDX-License-Identifier: Apache-2.0
import Payload
public import PushCore
public import Redis

/// The stored facts of users, read as the worker reads them: the layer above `StateReader`.
public struct UserReads: Sendable {
    let state: StateReader

    public init(_ state: StateReader) { self.state = state }

    /// All inputs of `decide` for one recipient; leases are not applied yet.
    ///
    /// - Parameter group: the group with the member's level; nil if the member scan gave the level, or without a group.
    func recipient(
        app: String, uid: String, conversation: String, group: String?
    ) async throws(RedisFault) -> Recipient {
        try await state.ask(
            group == nil ? 3 : 4, into: Recipient(uid: uid),
            { (store, tags) throws(RedisFault) in
                try store.readConversation(app: app, uid: uid, conversation: conversation, tag: tags[0])
                try store.readUser(app: app, uid: uid, tag: tags[1])
                try store.readPresence(app: app, uid: uid, tag: tags[2])
                if let group { try store.readMember(app: app, group: group, uid: uid, tag: tags[3]) }
            },
            { recipient, place, reply in
                switch place {
                case 0: _ = RecipientReplies.conversation(reply, into: &recipient)
                case 1: RecipientReplies.user(reply, into: &recipient)
                case 2: RecipientReplies.presence(reply, into: &recipient)
                default: RecipientReplies.member(reply, into: &recipient)
                }
            })
    }

    /// The epoch of a gateway's lease; nil without a lease.
    func lease(_ gateway: String) async throws(RedisFault) -> Int64? {
        try await state.ask({ (store, tag) throws(RedisFault) in try store.lease(gateway, tag: tag) }, { $0.int64 })
    }

    func members(
        app: String, group: String, cursor: UInt64, count: Int
    ) async throws(RedisFault) -> MemberPage {
        let page = try await state.ask(
            { (store, tag) throws(RedisFault) in
                try store.members(app: app, group: group, cursor: cursor, count: count, tag: tag)
            }, { MemberPage($0) })
        guard let page else { throw RedisFault(.protocolViolation, "HSCAN has no reply") }
        return page
    }

    /// The devices that acknowledged a delivery of the message.
    func acks(app: String, uid: String, msgID: String) async throws(RedisFault) -> [String] {
        try await state.ask(
            { (store, tag) throws(RedisFault) in try store.acks(app: app, uid: uid, msgID: msgID, tag: tag) },
            { StateStore.devices($0) })
    }

    /// Whether the token still belongs to this user.
    func standing(app: String, uid: String, token: BoundToken) async throws(RedisFault) -> OwnerReply.Standing {
        try await state.ask(
            { (store, tag) throws(RedisFault) in try store.owner(app: app, token: token.record.hex, tag: tag) },
            { OwnerReply.standing($0, uid: uid, token: token) })
    }

    /// The owners of tokens, in their order; nil for a token that has none.
    func owners(app: String, tokens: ArraySlice<String>) async throws(RedisFault) -> [String?] {
        try await state.ask(
            tokens.count, into: Array(repeating: nil, count: tokens.count),
            { (store, tags) throws(RedisFault) in
                for (token, tag) in zip(tokens, tags) { try store.owner(app: app, token: token, tag: tag) }
            },
            { owners, place, reply in
                if let owner = OwnerReply(reply), owner.isBound { owners[place] = owner.uid }
            })
    }

    /// The note about a message, for its revoke.
    func keptOriginal(app: String, msgID: String) async throws(RedisFault) -> KeptOriginal? {
        try await state.ask(
            { (store, tag) throws(RedisFault) in try store.readOriginal(app: app, msgID: msgID, tag: tag) },
            { KeptOriginal($0) })
    }

    /// The collapse id of the message that a revoke names, as far as it is known. It is the same for all recipients.
    ///
    /// - Parameter kept: `keptOriginal`
    func original(app: String, msgID: String, _ kept: KeptOriginal?) async throws(RedisFault) -> CollapseID.Original {
        if let kept { return .known(kept.collapseID) }
        let isMarked = try await state.ask(
            { (store, tag) throws(RedisFault) in try store.countGroupMarks(app: app, id: msgID, tag: tag) },
            { StateStore.hasGroupMarks($0) })
        return isMarked ? .known(nil) : .unknown
    }

    func activityState(app: String, uid: String, activityID: String) async throws(RedisFault) -> ActivityState {
        try await state.ask(
            { (store, tag) throws(RedisFault) in
                try store.activityState(app: app, uid: uid, activityID: activityID, tag: tag)
            }, { ActivityState($0) })
    }

    /// A page of the users who bound a Live Activity; a nil `last` gives the first page.
    func activityUsers(
        app: String, activityID: String, after last: String?, count: Int
    ) async throws(RedisFault) -> [String] {
        try await state.ask(
            { (store, tag) throws(RedisFault) in
                try store.activityUsers(app: app, activityID: activityID, after: last, count: count, tag: tag)
            }, { StateStore.activityUsers($0) })
    }

    /// The number on the user's icons.
    public func badge(app: String, uid: String) async throws(RedisFault) -> Int64 {
        let (reading, size) = try await state.ask(
            2, into: (BadgeReading?.none, Int64(0)),
            { (store, tags) throws(RedisFault) in
                try store.readBadge(app: app, uid: uid, baseTag: tags[0], sizeTag: tags[1])
            },
            { read, place, reply in
                if place == 0 { read.0 = BadgeReading(base: reply) } else { read.1 = reply.int64 ?? 0 }
            })
        return reading?.badge(size: size) ?? 0
    }

    /// A user as the worker sees it: settings, tokens, presence and the gateways' leases. A key of a wrong type counts as absent.
    public func user(app: String, uid: String) async throws(RedisFault) -> UserFacts {
        var facts = UserFacts()
        let stored = try await readable("settings and tokens", &facts.unreadable) { () async throws(RedisFault) in
            try await self.stored(app: app, uid: uid)
        }
        if let stored { (facts.settings, facts.tokens) = (stored.settings, stored.tokens) }
        let presence = try await readable("presence", &facts.unreadable) { () async throws(RedisFault) in
            try await self.presence(app: app, uid: uid)
        }
        if let presence { (facts.presence, facts.malformedPresence) = presence }
        let badge = try await readable("badge", &facts.unreadable) { () async throws(RedisFault) in
            try await self.badge(app: app, uid: uid)
        }
        facts.badge = badge ?? 0
        let mutes = try await readable("mutes", &facts.unreadable) { () async throws(RedisFault) in
            try await self.mutes(app: app, uid: uid)
        }
        facts.mutes = mutes ?? []
        for gateway in Set(facts.presence.map(\.gateway)) { facts.leases[gateway] = try await lease(gateway) }
        return facts
    }

    /// A part of a user; nil if its key has a wrong type, which is noted.
    private func readable<Value>(
        _ part: String, _ unreadable: inout [String], _ body: () async throws(RedisFault) -> Value
    ) async throws(RedisFault) -> Value? {
        do throws(RedisFault) {
            return try await body()
        } catch {
            guard error.code == .wrongType else { throw error }
            unreadable.append(part)
            return nil
        }
    }

    private func stored(app: String, uid: String) async throws(RedisFault) -> Recipient {
        try await state.ask({ (store, tag) throws(RedisFault) in try store.readUser(app: app, uid: uid, tag: tag) }) {
            reply in
            var recipient = Recipient(uid: uid)
            RecipientReplies.user(reply, into: &recipient)
            return recipient
        }
    }

    /// The user's own mutes, also ended ones.
    private func mutes(app: String, uid: String) async throws(RedisFault) -> [MutedConversation] {
        try await state.ask(
            { (store, tag) throws(RedisFault) in try store.readConversations(app: app, uid: uid, tag: tag) },
            { RecipientReplies.mutes($0) })
    }

    /// - Returns: also the fields of the presence key that count as absent because nobody can read them.
    private func presence(
        app: String, uid: String
    ) async throws(RedisFault) -> ([DevicePresence], malformed: [UserFacts.Malformed]) {
        try await state.ask({ (store, tag) throws(RedisFault) in
            try store.readPresence(app: app, uid: uid, tag: tag)
        }) { reply in
            var recipient = Recipient(uid: uid)
            RecipientReplies.presence(reply, into: &recipient)
            var malformed: [UserFacts.Malformed] = []
            reply.forEachPair { field, value in
                guard malformed.count < RecipientReplies.devicesMax,
                    PresenceText.entry(device: field.bytes, value: value.bytes) == nil
                else { return }
                malformed.append(UserFacts.Malformed(device: field.bytes, value: value.bytes))
            }
            return (recipient.presence, malformed)
        }
    }

    /// For how long APNs wants the device left alone (429), as a worker noted it; nil: it does not.
    func pauseMs(app: String, uid: String, device: String, nowMs: Int64) async throws(RedisFault) -> Int64? {
        let until = try await state.ask(
            { (store, tag) throws(RedisFault) in
                try store.readPause(app: app, uid: uid, device: device, tag: tag)
            }, { $0.string.flatMap { Int64($0) } })
        return until.flatMap { $0 > nowMs ? $0 &- nowMs : nil }
    }

    /// The background pushes of a device in its hour; nil: it has had none lately.
    func hour(app: String, uid: String, device: String) async throws(RedisFault) -> DeviceHour? {
        try await state.ask(
            { (store, tag) throws(RedisFault) in try store.readHour(app: app, uid: uid, device: device, tag: tag) },
            { $0.string.flatMap { DeviceHour($0) } })
    }
}

/// The stored data of one user of one app.
public struct UserFacts: Sendable {
    public var settings = UserSettings()
    public var tokens: [BoundToken] = []
    public var presence: [DevicePresence] = []
    /// Presence that counts as absent.
    public var malformedPresence: [Malformed] = []
    /// The epochs of the gateways' leases; a missing entry means no lease.
    public var leases: [String: Int64] = [:]
    /// Uncapped.
    public var badge: Int64 = 0
    /// The user's own mutes by conversation, also ended ones.
    public var mutes: [MutedConversation] = []
    /// Parts that count as absent, because their keys have a wrong type.
    public var unreadable: [String] = []

    /// Nothing is known of the user, as if the id were wrong.
    public var isEmpty: Bool {
        settings == UserSettings() && tokens.isEmpty && presence.isEmpty && malformedPresence.isEmpty && badge == 0
            && mutes.isEmpty && unreadable.isEmpty
    }

    /// A field as it is stored, cut.
    public struct Malformed: Sendable {
        public var device: String
        public var value: String

        private static let bytesMax = 200

        init(device: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
            self.device = String(decoding: device.prefix(Self.bytesMax), as: UTF8.self)
            self.value = String(decoding: value.prefix(Self.bytesMax), as: UTF8.self)
        }
    }
}
