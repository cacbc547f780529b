// SPDX-License-Identifier: Apache-2.0
import EventLoop
import SimulatedSystem

/// The producers of the world: backends that write events, and clients that write user state. The seed decides all of it.
final class Traffic {
    typealias Place = (partition: Int32, offset: Int64)

    /// A record as its producer writes it.
    struct Written {
        var topic: String
        var key: String
        var value: String
        /// The producer's time; nil: the broker's.
        var createdMs: Int64?
        /// The end of a transaction follows it.
        var endsTransaction = false
        /// So many partitions after that of the key.
        var partitionsOn = 0
    }

    var people: [Person] = []
    private(set) var sent: [Sent] = []
    private(set) var states: [StateSent] = []
    private(set) var groups: [Group] = []
    let plan: Plan
    let system: SimulatedSystem
    /// For what users choose.
    var choices: SmallRandom
    let story: Story
    var random: SmallRandom
    /// For kinds of traffic that came later: the others keep their numbers.
    var extra: SmallRandom
    /// Appends a record to a topic; returns its place.
    private let append: (Written) -> Place
    /// The number of records with a time that is not in milliseconds, by topic.
    private(set) var oddTimes: [String: Int] = [:]
    private var numbers: [String: Int] = [:]
    private var sequences: [String: Int64] = [:]
    private var version: Int64 = 0
    /// Of each token's last bind.
    private var versions: [String: Int64] = [:]
    /// Of Live Activities: app, id and the users with a token of it.
    var activities: [(app: String, id: String, uids: [String])] = []
    var reportTimes: [Int64] = []

    /// A group, and each member's level in it.
    struct Group {
        var app: String
        var id: String
        var levels: [(uid: String, level: Int)]
    }

    init(
        _ plan: Plan, system: SimulatedSystem, story: Story,
        append: @escaping (Written) -> Place
    ) {
        self.plan = plan
        self.system = system
        self.story = story
        self.append = append
        random = SmallRandom(seed: plan.seed ^ 0x7AFF1C)
        extra = SmallRandom(seed: plan.seed ^ 0xE47A)
        choices = SmallRandom(seed: plan.seed ^ 0xC401_CE5)
        for app in plan.apps {
            for number in 1...max(1, plan.usersPerApp) {
                people.append(Person(app: app.id, uid: "u\(number)", devices: makeDevices()))
            }
        }
    }

    private func makeDevices() -> [Person.Device] {
        var devices = (1...max(1, chance(1...plan.devicesMax))).map {
            var device = Person.Device(name: "d\($0)", token: makeToken())
            if isChosen(4) { device.platform = "ipad" }
            if plan.kinds.contains(.variants), isChosen(2) { device.voip = makeToken() }
            if plan.kinds.contains(.activities), isChosen(2) { device.start = makeToken() }
            return device
        }
        if plan.kinds.contains(.desktops), isChosen(2) {
            // Some have a token of their own.
            let token = isChosen(3) ? makeToken() : ""
            devices.append(Person.Device(name: "pc", token: token, platform: isChosen(2) ? "mac" : "pc"))
        }
        return devices
    }

    func chance(_ range: ClosedRange<Int>) -> Int {
        Int(random.next(in: UInt64(range.lowerBound)...UInt64(range.upperBound)))
    }

    /// True in one of so many cases.
    func isChosen(_ share: Int) -> Bool { chance(1...share) == 1 }

    func next(_ name: String) -> Int {
        numbers[name, default: 0] += 1
        return numbers[name, default: 0]
    }

    func makeToken() -> String {
        let digits = String(next("token"), radix: 16)
        return "ca11" + String(repeating: "0", count: 60 - digits.count) + digits
    }

    // MARK: The schedule

    private func moment(_ range: ClosedRange<UInt64>, _ body: @escaping () -> Void) {
        system.after(nanos: random.next(in: range), body)
    }

    private static let second: UInt64 = 1_000_000_000

    /// Plans all of the traffic; the time of the last record is `plan.trafficNanos` from the beginning.
    func begin() {
        for index in people.indices {
            for device in people[index].devices.indices {
                moment(0...Self.second) { [unowned self] in bindAll(index, device) }
            }
        }
        makeGroups()
        beginSettings()
        let range = 4 * Self.second...(4 * Self.second + plan.trafficNanos)
        func some(_ kind: Plan.Kind, _ count: Int, _ body: @escaping () -> Void) {
            guard plan.kinds.contains(kind) else { return }
            for _ in 0..<count { moment(range, body) }
        }
        let messages = plan.messages
        for _ in 0..<messages { moment(range) { [unowned self] in message() } }
        some(.reads, messages / 4) { [unowned self] in read() }
        some(.revokes, messages / 8) { [unowned self] in revoke() }
        some(.rebinds, chance(1...4)) { [unowned self] in if isChosen(4) { unbind() } else { rebind() } }
        some(.mutes, chance(0...3)) { [unowned self] in mute() }
        some(.quiet, chance(0...3)) { [unowned self] in quiet() }
        some(.reports, chance(2...8)) { [unowned self] in report() }
        some(.activities, chance(2...10)) { [unowned self] in activity() }
        some(.crowds, chance(1...2)) { [unowned self] in crowd() }
        some(.versions, chance(1...4)) { [unowned self] in bindAgain() }
        some(.versions, chance(0...3)) { [unowned self] in adjust() }
        beginChoices(until: range.upperBound)
        guard plan.kinds.contains(.switches) else { return }
        for _ in 0..<extra.next(in: 1...3) {
            system.after(nanos: extra.next(in: range)) { [unowned self] in switchAccount() }
        }
    }

    /// The last messages follow soon: no further record may come between them.
    var isOver: Bool { system.nowNanos > 4 * Self.second + plan.trafficNanos }

    private func makeGroups() {
        for app in plan.apps {
            let own = people.filter { $0.app == app.id }.map(\.uid)
            func levels(_ uids: [String]) -> [(uid: String, level: Int)] {
                uids.map { ($0, plan.kinds.contains(.mutes) && isChosen(5) ? [1, 2, 4, 5, -1][chance(0...4)] : 0) }
            }
            if plan.kinds.contains(.groups) {
                let members = own.filter { _ in !isChosen(3) }
                if members.count > 1 { groups.append(Group(app: app.id, id: "g1", levels: levels(members))) }
            }
            if plan.kinds.contains(.crowds), app.id == "im" {
                let many = (1...Plan.directMax + chance(1...60)).map { "crowd\($0)" }
                groups.append(Group(app: app.id, id: "g-crowd", levels: levels(own) + many.map { ($0, 0) }))
            }
        }
    }

    private func beginSettings() {
        func first(_ kind: Plan.Kind, _ share: Int, _ body: @escaping (Int) -> Void) {
            guard plan.kinds.contains(kind) else { return }
            for index in people.indices where isChosen(share) {
                moment(0...2 * Self.second) { body(index) }
            }
        }
        first(.mutes, 3) { [unowned self] in mute($0) }
        first(.quiet, 3) { [unowned self] in quiet($0) }
        first(.hiding, 2) { [unowned self] in
            write(.showsDetail(false), of: people[$0])
        }
        first(.languages, 2) { [unowned self] in
            write(.language(isChosen(3) ? "zh-Hans" : "en"), of: people[$0])
        }
        first(.options, 3) { [unowned self] in write(.phone("+4930\($0)"), of: people[$0]) }
        first(.desktops, 2) { [unowned self] in
            let holds = isChosen(2) ? 0 : chance(1...6)
            write(.desktopPolicy(pushes: false, holdSeconds: holds), of: people[$0])
        }
    }

    /// A last message to each user, whose badge says what the worker has counted.
    func probe() {
        for person in people {
            var words = PushWords()
            words.content = "the last one"
            send(
                Event(
                    kind: .probe, app: person.app, conversation: "probe-\(person.uid)", uids: [person.uid],
                    sender: "backend", words: words))
        }
    }

    /// The records have other offsets.
    func didMove(_ sent: [Sent], _ states: [StateSent]) { (self.sent, self.states) = (sent, states) }

    // MARK: Writing

    func produce(_ topic: String, _ key: String, _ value: String, partitionsOn: Int = 0) -> Place {
        var record = Written(topic: topic, key: key, value: value, partitionsOn: partitionsOn)
        if plan.kinds.contains(.oddTimes), extra.next(in: 1...3) == 1 {
            record.createdMs = [1, Int64(extra.next(in: 1...1000)), system.wallMs / 1000][Int(extra.next(in: 0...2))]
            oddTimes[topic, default: 0] += 1
        }
        record.endsTransaction = plan.kinds.contains(.transactions) && extra.next(in: 1...3) == 1
        return append(record)
    }

    /// An event before it is written.
    struct Event {
        var kind: Sent.Kind = .message
        var app: String
        var conversation: String
        /// Nil: the group's members.
        var uids: [String]?
        var sender: String
        var words = PushWords()
        var target: Sent?
        var revokeBadge = "decrease"
        var devices: [String] = []
        var isDoubled = false
        /// A `system` conversation.
        var isOfSystem = false
    }

    func send(_ event: Event) {
        var event = event
        let isCopied =
            plan.kinds.contains(.copies) && event.kind == .message && event.target == nil && !event.isDoubled
            && extra.next(in: 1...5) == 1
        if isCopied { event.isDoubled = true }
        let number = next("event")
        let eventID = "e\(number)"
        let messageID = event.target == nil ? "m\(number)" : "r\(number)"
        let key = "\(event.app) \(event.conversation)"
        sequences[key, default: 0] += 1
        let seq = sequences[key, default: 0]
        let members = groups.first { $0.app == event.app && $0.id == event.conversation }?.levels.map(\.uid)
        let recipients = (event.uids ?? members ?? []).filter {
            $0 != event.sender && !event.words.excluded.contains($0)
        }
        var words = event.words
        let hasOther = words.template != nil || words.typeName != nil || event.target != nil
        if words.content == nil, !words.isCustom, !hasOther { words.content = "text of \(messageID)" }
        if words.contentCount > 1 { words.content = String(repeating: "字", count: words.contentCount) }
        var to: [String] = []
        if !event.devices.isEmpty { to.append("\"devices\":\(PushWords.list(event.devices))") }
        if let uids = event.uids { to.append("\"uids\":\(PushWords.list(uids))") }
        if !words.excluded.isEmpty { to.append("\"exclude\":\(PushWords.list(words.excluded))") }
        var fields = "\"v\":1,\"kind\":\"\(event.target == nil ? "message" : "revoke")\",\"app\":\"\(event.app)\""
        fields += ",\"event_id\":\"\(eventID)\",\"sent_ms\":\(system.wallMs),\"msg_id\":\"\(messageID)\""
        fields += ",\"server_seq\":\(seq),\"conv\":{\"id\":\"\(event.conversation)\","
        let type = members != nil ? "group" : event.isOfSystem ? "system" : "p2p"
        fields += "\"type\":\"\(type)\"}"
        fields += ",\"from\":{\"uid\":\"\(event.sender)\",\"nick\":\"N\"}"
        if !to.isEmpty { fields += ",\"to\":{\(to.joined(separator: ","))}" }
        fields += words.members
        if let target = event.target {
            fields += ",\"revoke\":{\"target_msg_id\":\"\(target.messageID)\""
            fields += event.revokeBadge == "decrease" ? "}" : ",\"badge\":\"\(event.revokeBadge)\"}"
        }
        let place = produce("im.events", event.conversation, "{\(fields)}")
        if event.isDoubled {
            let later =
                isCopied ? extra.next(in: 0...Self.second / 20) : random.next(in: 0...5 * Self.second)
            system.after(nanos: later) { [unowned self] in
                _ = produce("im.events", event.conversation, "{\(fields)}", partitionsOn: isCopied ? 1 : 0)
            }
        }
        add(
            Sent(
                kind: event.target == nil ? event.kind : .revoke, app: event.app, eventID: eventID,
                messageID: messageID, conversation: event.conversation, isGroup: members != nil,
                isOfSystem: event.isOfSystem, seq: seq, recipients: recipients, sender: event.sender,
                toDevices: event.devices, isToGroup: event.uids == nil, isDoubled: event.isDoubled,
                isCopied: isCopied, atNanos: system.nowNanos,
                sentMs: system.wallMs, push: words, target: event.target?.messageID, revokeBadge: event.revokeBadge,
                partition: place.partition, offset: place.offset, record: "{\(fields)}"), words.members)
    }

    func send(_ activity: Sent.Activity, to uids: [String], app: String) {
        let eventID = "e\(next("event"))"
        var fields = "\"v\":1,\"kind\":\"live_activity\",\"app\":\"\(app)\",\"event_id\":\"\(eventID)\""
        fields += ",\"sent_ms\":\(system.wallMs),\"to\":{\"uids\":\(PushWords.list(uids))}"
        fields += ",\"la\":{\"activity_id\":\"\(activity.id)\",\"event\":\"\(activity.step.rawValue)\","
        fields += "\"state\":{\"event\":\"\(eventID)\"}"
        if activity.step == .start {
            fields += ",\"attributes_type\":\"Ride\",\"attributes\":{},\"alert\":{\"title\":\"T\",\"body\":\"B\"}"
        }
        let place = produce("im.events", activity.id, "{\(fields)}}")
        add(
            Sent(
                kind: .activity, app: app, eventID: eventID, messageID: eventID, conversation: activity.id, seq: 0,
                recipients: uids, atNanos: system.nowNanos, sentMs: system.wallMs, activity: activity,
                partition: place.partition, offset: place.offset), "\(activity.step.rawValue)")
    }

    private func add(_ event: Sent, _ what: String) {
        sent.append(event)
        let some =
            event.recipients.count > 20 ? "\(event.recipients.count) users" : event.recipients.joined(separator: " ")
        story.tell(
            "backend: \(event.kind) \(event.messageID) (event \(event.eventID)) in \(event.conversation) to \(some) of "
                + "\(event.app)\(event.target.map { ", revokes \($0)" } ?? "") at im.events \(event.partition)/"
                + "\(event.offset): \(what)",
            about: [event.messageID, event.eventID] + (event.target.map { [$0] } ?? []))
    }

    /// - Parameter words: of a bind; without a version it has the next one.
    func write(
        _ kind: StateSent.Kind, of person: Person, activity: String? = nil, words: StateSent.BindWords = .init()
    ) {
        let eventID = "s\(next("state"))"
        let words = completed(words, kind)
        let (name, fields) = text(of: kind, app: person.app, activity: activity, words)
        let value =
            "{\"v\":1,\"kind\":\"\(name)\",\"app\":\"\(person.app)\",\"event_id\":\"\(eventID)\","
            + "\"sent_ms\":\(system.wallMs),\"uid\":\"\(person.uid)\",\(fields)}"
        let place = produce("im.user-state", person.uid, value)
        states.append(
            StateSent(
                kind: kind, app: person.app, eventID: eventID, uid: person.uid, atNanos: system.nowNanos,
                sentMs: system.wallMs, partition: place.partition, offset: place.offset, words: words,
                activity: activity, name: name))
        story.tell("client: \(name) \(eventID) of \(person.uid) (\(person.app)): \(fields)", about: [eventID])
    }

    private func completed(_ words: StateSent.BindWords, _ kind: StateSent.Kind) -> StateSent.BindWords {
        var words = words
        switch kind {
        case .bind(_, let token, _) where words.version == 0:
            version += 1
            versions[token] = version
            words.version = version
        case .unbind(_, let token): words.version = versions[token] ?? 0
        default: break
        }
        return words
    }

    private func text(
        of kind: StateSent.Kind, app: String, activity: String?, _ words: StateSent.BindWords
    ) -> (name: String, fields: String) {
        func member(_ name: String, _ text: String?) -> String { text.map { ",\"\(name)\":\"\($0)\"" } ?? "" }
        switch kind {
        case .bind(let device, let token, let type):
            return (
                "bind",
                "\"token\":{\"device\":\"\(device)\",\"token\":\"\(token)\",\"env\":\"production\","
                    + "\"topic\":\"com.example.\(app)\",\"type\":\"\(type.rawValue)\",\"bind_ver\":\(words.version)"
                    + member("activity_id", activity) + member("lang", words.language) + member("tz", words.zone)
                    + member("content_key", words.contentKey) + (words.alerts.map { ",\"alerts\":\($0)" } ?? "") + "}"
            )
        case .unbind(let device, let token):
            return (
                "unbind",
                "\"token\":{\"device\":\"\(device)\",\"token\":\"\(token)\",\"bind_ver\":\(words.version)}"
            )
        case .read(let conversation, let upTo): return ("read", "\"conv_id\":\"\(conversation)\",\"up_to_seq\":\(upTo)")
        case .mute(let conversation, let level, let untilMs):
            let until = untilMs.map { ",\"until_ms\":\($0)" } ?? ""
            return ("mute", "\"conv_id\":\"\(conversation)\",\"level\":\(level)\(until)")
        case .quiet(let hours):
            return (
                "settings",
                "\"dnd\":{\"on\":\(hours.isOn),\"start\":\"\(Self.clock(hours.start))\",\"end\":\"\(Self.clock(hours.end))\","
                    + "\"level\":\(hours.level)\(member("tz", hours.zone))"
                    + (hours.days.isEmpty ? "" : ",\"days\":\(hours.days)") + "}"
            )
        case .quietSwitch(let isOn): return ("settings", "\"dnd\":{\"on\":\(isOn)}")
        case .quietLevel(let level): return ("settings", "\"dnd\":{\"level\":\(level)}")
        case .typeLevel(let type, let level): return ("settings", "\"levels\":{\"\(type)\":\(level)}")
        case .snooze(let untilMs): return ("settings", "\"snooze_until_ms\":\(untilMs)")
        case .language(let language): return ("settings", "\"lang\":\"\(language)\"")
        case .phone(let number): return ("settings", "\"phone\":\"\(number)\"")
        case .showsDetail(let shows): return ("settings", "\"show_detail\":\(shows)")
        case .desktopPolicy(let pushes, let hold):
            return ("settings", "\"push_when_desktop_online\":\(pushes),\"hold_s\":\(hold)")
        case .report(let value, let clientMs):
            return ("badge_report", "\"device\":\"d1\",\"value\":\(value),\"client_ms\":\(clientMs)")
        case .pushReport(let device, let pid, let messageID, let isOpened):
            return (
                isOpened ? "open_report" : "arrived_report",
                "\"device\":\"\(device)\",\"pid\":\"\(pid)\",\"msg_id\":\"\(messageID)\","
                    + "\"\(isOpened ? "opened" : "arrived")_ms\":\(system.wallMs)"
            )
        case .ack(let device, let messageID):
            return ("ack", "\"device\":\"\(device)\",\"msg_ids\":[\"\(messageID)\"]")
        }
    }

    private static func clock(_ minutes: Int) -> String {
        let minutes = (minutes % 1440 + 1440) % 1440
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(two(minutes / 60)):\(two(minutes % 60))"
    }
}
