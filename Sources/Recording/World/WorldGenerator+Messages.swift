// SPDX-License-Identifier: Apache-2.0
internal import JSON

/// Records of `im.events`.
extension WorldGenerator {
    func messageID(_ number: Int) -> String { "m-\(tag)-\(number)" }

    func name(_ conversation: WorldConversation) -> String {
        switch conversation {
        case .pair(let one, let other): "p2p-u\(one)-u\(other)"
        case .group(let group): groups.name(group)
        case .system(let number): "system-\(number)"
        }
    }

    /// Message or revoke `number`, and the later actions of its receivers.
    func message(_ number: Int, atMs: Int64) -> [UInt8] {
        if isAnnouncement(number) { return groupMessage(number, group: 0, atMs: atMs) }
        switch random.below(1000) {
        case ..<20: if let line = revoke(number, atMs: atMs) { return line }
        case ..<50: return notice(number, atMs: atMs)
        case ..<300 where settings.groups > 1:
            return groupMessage(number, group: groups.pick(&random), atMs: atMs)
        default: break
        }
        return directMessage(number, atMs: atMs)
    }

    /// - Returns: whether the message goes to the largest group. These messages are evenly distributed.
    private func isAnnouncement(_ number: Int) -> Bool {
        guard settings.groups > 0 else { return false }
        return announcements(before: number + 1) != announcements(before: number)
    }

    private func announcements(before number: Int) -> Int {
        (2 * number * settings.announcements + settings.messages) / (2 * settings.messages)
    }

    private func directMessage(_ number: Int, atMs: Int64) -> [UInt8] {
        let to = PowerLaw.rank(of: settings.users, exponent: settings.exponent, unit: random.unit())
        let from = people.contact(of: to, &random)
        let conversation = WorldConversation.pair(min(to, from), max(to, from))
        begin(number, "message", conversation, from: from, atMs: atMs)
        names([to])
        content(number, forced: random.below(200) == 0 ? to : nil)
        remember(Sent(number: number, conversation: conversation, sender: from, recipient: to))
        countMessage(named: 1, members: 0)
        if people.flaps(to) {
            let presence = people.presence(to, atSeconds: Int((atMs - settings.startMs) / 1000))
            if presence.state != .off {
                let act = WorldAct.acknowledge(user: to, message: number, connection: presence.connection)
                later(act, atMs: atMs + 50 + Int64(random.below(400)))
            }
        }
        if random.below(100) < 60 {
            later(.read(user: to, conversation, upTo: number), atMs: atMs + 1000 + Int64(random.below(60_000)))
        }
        return end(atMs: atMs)
    }

    private func groupMessage(_ number: Int, group: Int, atMs: Int64) -> [UInt8] {
        let members = groups.members(group)
        let rank = PowerLaw.rank(of: members.count, exponent: settings.exponent, unit: random.unit())
        let from = members[rank]
        begin(number, "message", .group(group), from: from, atMs: atMs)
        switch random.below(100) {
        case 0: mention(nil)
        case 1...5: mention(members[random.below(members.count)])
        default: break
        }
        content(number, forced: nil)
        remember(Sent(number: number, conversation: .group(group), sender: from, recipient: from))
        countMessage(named: 0, members: members.count)
        for _ in 0..<min(members.count / 4, 8) where random.below(2) == 0 {
            let reader = members[random.below(members.count)]
            later(.read(user: reader, .group(group), upTo: number), atMs: atMs + 1000 + Int64(random.below(120_000)))
        }
        if random.below(50) == 0 {
            let act = WorldAct.mute(
                user: members[random.below(members.count)], group: group, level: random.below(2) == 0 ? 5 : 1)
            later(act, atMs: atMs + 500 + Int64(random.below(5000)))
        }
        return end(atMs: atMs)
    }

    /// A message of the service itself, to up to twenty users.
    private func notice(_ number: Int, atMs: Int64) -> [UInt8] {
        let conversation = WorldConversation.system(random.below(16))
        begin(number, "message", conversation, from: nil, atMs: atMs)
        let first = random.below(settings.users)
        let count = min(1 + random.below(20), settings.users)
        names((0..<count).map { (first + $0) % settings.users })
        writer.key("push")
        writer.beginObject()
        writer.member("prefix", false)
        if random.below(3) == 0 {
            writer.member("silent", true)
        } else {
            writer.member("title", "Service")
            writer.member("content", WorldText.words(&random))
        }
        writer.member("priority", "low")
        writer.endObject()
        remember(Sent(number: number, conversation: conversation, sender: first, recipient: first))
        countMessage(named: count, members: 0)
        return end(atMs: atMs)
    }

    /// - Returns: nil if there is no message to revoke.
    private func revoke(_ number: Int, atMs: Int64) -> [UInt8]? {
        guard !recent.isEmpty else { return nil }
        let index = random.below(recent.count)
        let target = recent[index]
        // Messages to the largest group are never revoked, because a revoke would be another announcement.
        guard !target.isRevoked, target.conversation != .group(0) else { return nil }
        if case .system = target.conversation { return nil }
        recent[index].isRevoked = true
        begin(number, "revoke", target.conversation, from: target.sender, atMs: atMs)
        if case .group(let group) = target.conversation {
            countMessage(named: 0, members: groups.size(group))
        } else {
            names([target.recipient])
            countMessage(named: 1, members: 0)
        }
        writer.key("push")
        writer.beginObject()
        writer.member("content", "recalled a message")
        writer.endObject()
        writer.key("revoke")
        writer.beginObject()
        writer.member("target_msg_id", messageID(target.number))
        writer.endObject()
        // It has its own place in the ring, whatever it revokes.
        remember(
            Sent(
                number: number, conversation: target.conversation, sender: target.sender,
                recipient: target.recipient, isRevoked: true))
        return end(atMs: atMs)
    }

    // MARK: Parts

    private func begin(
        _ number: Int, _ kind: String, _ conversation: WorldConversation, from: Int?, atMs: Int64
    ) {
        let type =
            switch conversation {
            case .pair: "p2p"
            case .group: "group"
            case .system: "system"
            }
        let name = name(conversation)
        begin(kind, key: name, id: "e-\(tag)-\(number)", atMs: atMs)
        writer.member("msg_id", messageID(number))
        writer.member("server_seq", Int64(number + 1))
        // Nothing expires during a late replay.
        writer.member("expire_at_ms", settings.endMs + 86_400_000)
        writer.key("conv")
        writer.beginObject()
        writer.member("id", name)
        writer.member("type", type)
        writer.endObject()
        writer.key("from")
        writer.beginObject()
        writer.member("uid", from.map { people.uid($0) } ?? "service")
        if let from { writer.member("nick", people.nick(from)) }
        writer.endObject()
    }

    private func names(_ users: [Int]) {
        writer.key("to")
        writer.beginObject()
        writer.key("uids")
        writer.beginArray()
        for user in users { writer.string(people.uid(user)) }
        writer.endArray()
        writer.endObject()
    }

    /// - Parameter user: nil mentions all.
    private func mention(_ user: Int?) {
        writer.key("mention")
        writer.beginObject()
        if let user {
            writer.key("uids")
            writer.beginArray()
            writer.string(people.uid(user))
            writer.endArray()
        } else {
            writer.member("all", true)
        }
        writer.endObject()
    }

    private func content(_ number: Int, forced: Int?) {
        // A picture has no text. The worker uses the built-in text of its type.
        let isPicture = random.below(25) == 0
        writer.member("type_name", isPicture ? "RC:ImgMsg" : "RC:TxtMsg")
        writer.key("push")
        writer.beginObject()
        if !isPicture { writer.member("content", WorldText.words(&random)) }
        if random.below(10) == 0 {
            writer.key("payload")
            writer.beginObject()
            writer.member("jump", "chat")
            writer.member("room", Int64(number % 1000))
            writer.endObject()
        }
        if let forced {
            writer.key("force")
            writer.beginObject()
            writer.member("mode", "list")
            writer.key("uids")
            writer.beginArray()
            writer.string(people.uid(forced))
            writer.endArray()
            writer.endObject()
        }
        writer.endObject()
    }
}
