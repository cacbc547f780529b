// SPDX-License-Identifier: Apache-2.0
internal import JSON
internal import Queues

/// Generates the traffic of a messenger, record by record in order of time, for `carillon replay`.
///
/// First all users bind their devices. Then messages come, with their consequences: reads, acks, mutes, revokes, and
/// storms of reads and binds. Pure: equal settings give equal bytes on every machine. Its memory does not grow with the
/// number of users, members or messages, except for storms of binds (100 000 users each). For one thread only.
public final class WorldGenerator {
    /// A message that may still be read or revoked.
    struct Sent {
        var number: Int
        var conversation: WorldConversation
        var sender: Int
        /// The receiver in a pair conversation.
        var recipient: Int
        var isRevoked = false
    }

    public private(set) var tally = WorldTally()

    let settings: WorldSettings
    let people: WorldPeople
    let groups: WorldGroups
    let tag: String
    var random: WorldRandom
    var writer = JSONWriter(reservingCapacity: 2048)
    /// What follows from messages that were sent.
    var queue = DueQueue<Int64, WorldAct>()
    /// The newest messages, in a ring.
    var recent: [Sent] = []
    private var start: WorldStart
    private var times: WorldTimes
    private var timeRandom: WorldRandom
    private var storms: WorldStorms
    private var nextMessageMs: Int64?
    private var messageNumber = 0
    private var stateNumber = 0

    static let recentMax = 4096
    /// Above this size of the queue, only storms are added.
    private static let actsMax = 200_000

    /// The settings must have no fault.
    public init(_ settings: WorldSettings) {
        precondition(settings.fault == nil, "a world cannot be made of these settings")
        self.settings = settings
        people = WorldPeople(settings)
        groups = WorldGroups(settings)
        tag = settings.tag
        random = WorldRandom(seed: settings.seed, stream: 1)
        timeRandom = WorldRandom(seed: settings.seed, stream: 2)
        start = WorldStart(settings)
        times = WorldTimes(settings)
        storms = WorldStorms(settings)
        nextMessageMs = times.next(&timeRandom)
        recent.reserveCapacity(Self.recentMax)
    }

    /// The next line of the recording with its line end; nil at the end.
    public func next() -> [UInt8]? {
        if let step = start.next(people) { return line(step) }
        while true {
            let messageMs = nextMessageMs ?? .max
            let actMs = queue.earliest ?? .max
            if let storm = storms.next, storm.atMs <= min(messageMs, actMs) {
                storms.removeNext()
                if storm.isOfReads { readAll(storm) } else { bindAgain(storm) }
                continue
            }
            if actMs < messageMs, let act = queue.popDue(actMs) { return line(act, atMs: actMs) }
            guard let atMs = nextMessageMs else { return nil }
            nextMessageMs = times.next(&timeRandom)
            defer { messageNumber += 1 }
            return message(messageNumber, atMs: atMs)
        }
    }

    // MARK: Lines

    /// Begins a line with the fields that every record has.
    func begin(_ kind: String, key: String, id: String, atMs: Int64) {
        writer.clear()
        writer.beginObject()
        writer.member("key", key)
        writer.key("value")
        writer.beginObject()
        writer.member("v", 1)
        writer.member("kind", kind)
        writer.member("app", settings.app)
        writer.member("event_id", id)
        writer.member("sent_ms", atMs)
        tally.records[kind, default: 0] += 1
    }

    private func beginState(_ kind: String, _ user: Int, atMs: Int64) {
        let uid = people.uid(user)
        begin(kind, key: uid, id: "s-\(tag)-\(stateNumber)", atMs: atMs)
        writer.member("uid", uid)
        stateNumber += 1
    }

    func end(atMs: Int64) -> [UInt8] {
        writer.endObject()
        writer.member("timestamp_ms", atMs)
        writer.endObject()
        let bytes = writer.bytes + [0x0A]
        tally.bytes += bytes.count
        if tally.firstMs == nil { tally.firstMs = atMs }
        tally.lastMs = atMs
        return bytes
    }

    private func countMessage(named: Int, members: Int) {
        tally.events += 1
        tally.named += named
        tally.members += members
    }

    // MARK: What follows

    /// Schedules a later action of a user, unless the world ends before it or the queue is full.
    func later(_ act: WorldAct, atMs: Int64) {
        if atMs <= settings.endMs, queue.count < Self.actsMax { queue.insert(act, due: atMs) }
    }

    private func remember(_ sent: Sent) {
        if recent.count < Self.recentMax {
            recent.append(sent)
        } else {
            recent[sent.number % Self.recentMax] = sent
        }
    }

    /// All users return at once and read their conversations.
    private func readAll(_ storm: WorldStorms.Storm) {
        for sent in recent {
            switch sent.conversation {
            case .pair: read(sent, by: sent.recipient, in: storm)
            case .group(let group):
                let members = groups.members(group)
                for _ in 0..<min(members.count, 20) {
                    read(sent, by: members[random.below(members.count)], in: storm)
                }
            case .system: break
            }
        }
    }

    /// A tenth of the users get new tokens, as after an app update.
    private func bindAgain(_ storm: WorldStorms.Storm) {
        var users = stride(from: storm.number % 10, to: settings.users, by: 10).makeIterator()
        var left = WorldStorms.bindsMax
        while left > 0, let user = users.next() {
            left -= 1
            guard people.hasTokens(user) else { continue }
            let atMs = storm.atMs + Int64(random.below(10_000))
            // Some log out first.
            if random.below(8) == 0 { queue.insert(.unbind(user: user, storm: storm.number), due: atMs) }
            queue.insert(.bind(user: user, storm: storm.number), due: atMs + 1)
        }
    }

    private func read(_ sent: Sent, by user: Int, in storm: WorldStorms.Storm) {
        let act = WorldAct.read(user: user, sent.conversation, upTo: sent.number)
        queue.insert(act, due: storm.atMs + Int64(random.below(2000)))
    }

    // MARK: Messages
    // Records of `im.events`.

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

    // MARK: State
    // Records of `im.user-state`.

    func line(_ step: WorldStart.Step) -> [UInt8] {
        switch step {
        case .bind(let user, let isPad, let atMs):
            return bind(user, isPad: isPad, version: WorldStorms.version(after: nil), atMs: atMs)
        case .settings(let user, let atMs):
            beginState("settings", user, atMs: atMs)
            if people.hasDND(user) {
                writer.key("dnd")
                writer.beginObject()
                writer.member("on", true)
                writer.member("start", "22:00")
                writer.member("end", "08:00")
                writer.member("level", user % 2 == 0 ? 5 : 1)
                writer.endObject()
            }
            if people.hidesDetail(user) { writer.member("show_detail", false) }
            return end(atMs: atMs)
        }
    }

    func line(_ act: WorldAct, atMs: Int64) -> [UInt8] {
        switch act {
        case .read(let user, let conversation, let number):
            beginState("read", user, atMs: atMs)
            writer.member("conv_id", name(conversation))
            writer.member("up_to_seq", Int64(number + 1))
        case .acknowledge(let user, let message, let connection):
            beginState("ack", user, atMs: atMs)
            writer.member("device", people.device(user, isPad: false))
            writer.member("conn_epoch", Int64(connection))
            writer.key("msg_ids")
            writer.beginArray()
            writer.string(messageID(message))
            writer.endArray()
        case .unbind(let user, let storm):
            let version = WorldStorms.version(after: WorldStorms.before(storm))
            beginState("unbind", user, atMs: atMs)
            writer.key("token")
            writer.beginObject()
            writer.member("device", people.device(user, isPad: false))
            writer.member("token", people.token(user, isPad: false, version: version))
            writer.member("bind_ver", Int64(version))
            writer.endObject()
        case .bind(let user, let storm):
            return bind(user, isPad: false, version: WorldStorms.version(after: storm), atMs: atMs)
        case .mute(let user, let group, let level):
            beginState("mute", user, atMs: atMs)
            writer.member("conv_id", groups.name(group))
            writer.member("level", Int64(level))
        }
        return end(atMs: atMs)
    }

    private func bind(_ user: Int, isPad: Bool, version: Int, atMs: Int64) -> [UInt8] {
        beginState("bind", user, atMs: atMs)
        writer.key("token")
        writer.beginObject()
        writer.member("device", people.device(user, isPad: isPad))
        writer.member("token", people.token(user, isPad: isPad, version: version))
        writer.member("env", settings.environment)
        writer.member("topic", settings.bundle)
        writer.member("type", "alert")
        writer.member("bind_ver", Int64(version))
        writer.member("lang", people.language(user))
        writer.member("tz", people.zone(user))
        writer.endObject()
        return end(atMs: atMs)
    }
}
