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

    func beginState(_ kind: String, _ user: Int, atMs: Int64) {
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

    func countMessage(named: Int, members: Int) {
        tally.events += 1
        tally.named += named
        tally.members += members
    }

    // MARK: What follows

    /// Schedules a later action of a user, unless the world ends before it or the queue is full.
    func later(_ act: WorldAct, atMs: Int64) {
        if atMs <= settings.endMs, queue.count < Self.actsMax { queue.insert(act, due: atMs) }
    }

    func remember(_ sent: Sent) {
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
}
