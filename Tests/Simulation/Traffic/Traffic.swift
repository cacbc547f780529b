import EventLoop
import SimulatedSystem

/// The producers of the world: backends that write events, and clients that write user state. The seed decides all of it.
final class Traffic {
    private(set) var people: [Person] = []
    private(set) var sent: [Sent] = []
    private(set) var states: [StateSent] = []
    let plan: Plan
    private let system: SimulatedSystem
    private let story: Story
    private var random: SmallRandom
    /// Appends a record to a topic; returns its place.
    private let produce: (_ topic: String, _ key: String, _ value: String) -> (partition: Int32, offset: Int64)
    private var numbers: [String: Int] = [:]
    private var sequences: [String: Int64] = [:]
    private var version: Int64 = 0
    private(set) var groups: [(app: String, id: String, members: [String])] = []

    init(
        _ plan: Plan, system: SimulatedSystem, story: Story,
        produce: @escaping (_ topic: String, _ key: String, _ value: String) -> (partition: Int32, offset: Int64)
    ) {
        self.plan = plan
        self.system = system
        self.story = story
        self.produce = produce
        random = SmallRandom(seed: plan.seed ^ 0x7AFF1C)
        for app in plan.apps {
            for number in 1...max(1, plan.usersPerApp) {
                let uid = "u\(number)"
                let devices = (1...max(1, chance(1...plan.devicesMax))).map {
                    Person.Device(name: "d\($0)", token: makeToken(), acks: random.next(in: 0...3) > 0)
                }
                people.append(Person(app: app, uid: uid, devices: devices))
            }
        }
    }

    private func chance(_ range: ClosedRange<Int>) -> Int {
        Int(random.next(in: UInt64(range.lowerBound)...UInt64(range.upperBound)))
    }

    private func next(_ name: String) -> Int {
        numbers[name, default: 0] += 1
        return numbers[name, default: 0]
    }

    private func makeToken() -> String {
        let digits = String(next("token"), radix: 16)
        return "ca11" + String(repeating: "0", count: 60 - digits.count) + digits
    }

    private func moment(_ range: ClosedRange<UInt64>, _ body: @escaping () -> Void) {
        system.after(nanos: random.next(in: range), body)
    }

    // MARK: The schedule

    /// Plans all of the traffic; the time of the last record is `plan.trafficNanos` from the beginning.
    func begin() {
        let second: UInt64 = 1_000_000_000
        for index in people.indices {
            for device in people[index].devices.indices {
                moment(0...second) { [unowned self] in bind(index, device) }
            }
        }
        if plan.kinds.contains(.groups) {
            for app in plan.apps {
                let members = people.filter { $0.app == app && random.next(in: 0...2) > 0 }.map(\.uid)
                if members.count > 1 { groups.append((app, "g1", members)) }
            }
        }
        if plan.kinds.contains(.mutes) {
            for index in people.indices where random.next(in: 0...3) == 0 {
                moment(0...second) { [unowned self] in mute(index) }
            }
        }
        let range = 4 * second...(4 * second + plan.trafficNanos)
        for _ in 0..<plan.messages { moment(range) { [unowned self] in message() } }
        if plan.kinds.contains(.reads) {
            for _ in 0..<plan.messages / 4 { moment(range) { [unowned self] in read() } }
        }
        if plan.kinds.contains(.revokes) {
            for _ in 0..<plan.messages / 8 { moment(range) { [unowned self] in revoke() } }
        }
        if plan.kinds.contains(.rebinds) {
            for _ in 0..<chance(1...4) { moment(range) { [unowned self] in rebind() } }
        }
    }

    /// A last message to each user, whose badge says what the worker has counted.
    func probe() {
        for person in people {
            send(
                .probe, app: person.app, conversation: "probe-\(person.uid)", type: "p2p", to: [person.uid],
                from: "backend")
        }
    }

    // MARK: Events

    private func message() {
        guard let person = people.randomElement(using: &random) else { return }
        if let group = groups.filter({ $0.app == person.app }).randomElement(using: &random),
            random.next(in: 0...2) == 0
        {
            let sender = group.members.randomElement(using: &random) ?? ""
            return send(.message, app: person.app, conversation: group.id, type: "group", to: nil, from: sender)
        }
        let others = people.filter { $0.app == person.app && $0.uid != person.uid }
        guard let sender = others.randomElement(using: &random) else { return }
        let pair = [person.uid, sender.uid].sorted().joined(separator: "_")
        send(.message, app: person.app, conversation: pair, type: "p2p", to: [person.uid], from: sender.uid)
    }

    private func send(
        _ kind: Sent.Kind, app: String, conversation: String, type: String, to uids: [String]?, from sender: String,
        target: Sent? = nil
    ) {
        let number = next("event")
        let eventID = "e\(number)"
        let messageID = target == nil ? "m\(number)" : "r\(number)"
        sequences["\(app) \(conversation)", default: 0] += 1
        let seq = sequences["\(app) \(conversation)", default: 0]
        let members = groups.first { $0.app == app && $0.id == conversation }?.members ?? []
        let recipients = (uids ?? members).filter { $0 != sender }
        var fields = "\"v\":1,\"kind\":\"\(target == nil ? "message" : "revoke")\",\"app\":\"\(app)\""
        fields += ",\"event_id\":\"\(eventID)\",\"sent_ms\":\(system.wallMs),\"msg_id\":\"\(messageID)\""
        fields += ",\"server_seq\":\(seq),\"conv\":{\"id\":\"\(conversation)\",\"type\":\"\(type)\"}"
        fields += ",\"from\":{\"uid\":\"\(sender)\",\"nick\":\"N\"}"
        if let uids { fields += ",\"to\":{\"uids\":[\(uids.map { "\"\($0)\"" }.joined(separator: ","))]}" }
        fields += ",\"push\":{\"content\":\"text of \(messageID)\"}"
        if let target { fields += ",\"revoke\":{\"target_msg_id\":\"\(target.messageID)\"}" }
        let place = produce("im.events", conversation, "{\(fields)}")
        sent.append(
            Sent(
                kind: target == nil ? kind : .revoke, app: app, eventID: eventID, messageID: messageID,
                conversation: conversation, isGroup: type == "group", seq: seq, recipients: recipients,
                atNanos: system.nowNanos, target: target?.messageID, partition: place.partition, offset: place.offset))
        story.tell(
            "backend: \(target == nil ? "message" : "revoke") \(messageID) (event \(eventID)) in \(conversation) to "
                + "\(recipients.joined(separator: " ")) of \(app)\(target.map { ", revokes \($0.messageID)" } ?? "")"
                + " at im.events \(place.partition)/\(place.offset)",
            about: [messageID, eventID] + (target.map { [$0.messageID] } ?? []))
    }

    private func revoke() {
        guard let target = sent.filter({ $0.kind == .message }).randomElement(using: &random) else { return }
        send(
            .revoke, app: target.app, conversation: target.conversation, type: target.isGroup ? "group" : "p2p",
            to: target.isGroup ? nil : target.recipients, from: "backend", target: target)
    }

    // MARK: User state

    private func write(_ kind: StateSent.Kind, _ name: String, app: String, uid: String, _ fields: String) {
        let eventID = "s\(next("state"))"
        let value =
            "{\"v\":1,\"kind\":\"\(name)\",\"app\":\"\(app)\",\"event_id\":\"\(eventID)\","
            + "\"sent_ms\":\(system.wallMs),\"uid\":\"\(uid)\",\(fields)}"
        _ = produce("im.user-state", uid, value)
        states.append(
            StateSent(
                kind: kind, app: app, eventID: eventID, uid: uid, atNanos: system.nowNanos, version: version))
        story.tell("client: \(name) \(eventID) of \(uid) (\(app)): \(fields)", about: [eventID])
    }

    private func bind(_ index: Int, _ device: Int) {
        let (person, device) = (people[index], people[index].devices[device])
        version += 1
        write(
            .bind(device: device.name, token: device.token), "bind", app: person.app, uid: person.uid,
            "\"token\":{\"device\":\"\(device.name)\",\"token\":\"\(device.token)\",\"env\":\"production\","
                + "\"topic\":\"com.example.\(person.app)\",\"type\":\"alert\",\"bind_ver\":\(version)}")
    }

    private func mute(_ index: Int) {
        let person = people[index]
        let others = people.filter { $0.app == person.app && $0.uid != person.uid }
        guard let other = others.randomElement(using: &random) else { return }
        let pair = [person.uid, other.uid].sorted().joined(separator: "_")
        write(
            .mute(conversation: pair), "mute", app: person.app, uid: person.uid,
            "\"conv_id\":\"\(pair)\",\"level\":5")
    }

    private func read() {
        let candidates = sent.filter { $0.kind == .message }
        guard let message = candidates.randomElement(using: &random),
            let uid = message.recipients.randomElement(using: &random)
        else { return }
        write(
            .read(conversation: message.conversation, upTo: message.seq), "read", app: message.app, uid: uid,
            "\"conv_id\":\"\(message.conversation)\",\"up_to_seq\":\(message.seq)")
    }

    /// A phone changes hands: its token goes to another user, on a device of its own there.
    private func rebind() {
        let (from, to) = (chance(0...people.count - 1), chance(0...people.count - 1))
        guard from != to, people[from].app == people[to].app, people[from].devices.count > 0 else { return }
        let device = people[from].devices.removeLast()
        people[to].devices.append(Person.Device(name: "x\(next("moved"))", token: device.token))
        bind(to, people[to].devices.count - 1)
    }

    /// A device confirms a delivery.
    func ack(app: String, uid: String, device: String, messageID: String) {
        write(
            .other, "ack", app: app, uid: uid, "\"device\":\"\(device)\",\"msg_ids\":[\"\(messageID)\"]")
    }
}
