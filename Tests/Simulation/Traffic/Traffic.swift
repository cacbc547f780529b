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

/// What users choose for themselves: levels for types of conversations, snoozes, and devices without alerts.
extension Traffic {
    /// - Parameter endNanos: no choice is made later.
    func beginChoices(until endNanos: UInt64) {
        guard plan.kinds.contains(.choices) else { return }
        for _ in 0..<choices.next(in: 2...8) {
            system.after(nanos: choices.next(in: 1_500_000_000...endNanos)) { [unowned self] in choose() }
        }
    }

    private func choose() {
        func pick<Element>(_ list: [Element]) -> Element { list[Int(choices.next(in: 0...UInt64(list.count - 1)))] }
        let person = pick(people)
        switch choices.next(in: 1...3) {
        case 1:
            write(.typeLevel(type: pick(["p2p", "group", "system"]), level: pick([5, 5, 0, -1, 1, 2, 4])), of: person)
        case 2:
            let end = system.wallMs + Int64(choices.next(in: 500...12_000))
            write(.snooze(untilMs: choices.next(in: 1...4) == 1 ? 0 : end), of: person)
        default:
            let phones = person.devices.filter { !$0.token.isEmpty }
            guard !phones.isEmpty else { return }
            let device = pick(phones)
            var words = StateSent.BindWords()
            words.alerts = pick([false, false, true])
            write(.bind(device: device.name, token: device.token, type: .alert), of: person, words: words)
        }
    }
}

/// What backends write.
extension Traffic {
    func message() {
        guard let person = people.randomElement(using: &random) else { return }
        let group = groups.filter { $0.app == person.app && $0.id == "g1" }.first
        if let group, isChosen(3) {
            let members = group.levels.map(\.uid)
            let sender = members.randomElement(using: &random) ?? ""
            return send(
                Event(
                    app: person.app, conversation: group.id, sender: sender,
                    words: words(for: members, sender: sender, isGroup: true), isDoubled: isDoubled))
        }
        let others = people.filter { $0.app == person.app && $0.uid != person.uid }
        guard let sender = others.randomElement(using: &random) else { return }
        let hasOptions = plan.kinds.contains(.options)
        let devices = hasOptions && isChosen(12) ? person.devices.map(\.name).filter { _ in isChosen(2) } : []
        let isOfSystem = hasOptions && isChosen(10)
        send(
            Event(
                app: person.app, conversation: isOfSystem ? "sys-\(person.uid)" : pair(person.uid, sender.uid),
                uids: [person.uid], sender: sender.uid,
                words: words(for: [person.uid], sender: sender.uid, isGroup: false), devices: devices,
                isDoubled: isDoubled, isOfSystem: isOfSystem))
    }

    /// A plain message, or a call.
    func call(_ index: Int, by other: Int, isVoip: Bool) {
        if isOver { return }
        let (person, sender) = (people[index], people[other])
        var words = PushWords()
        words.isVoip = isVoip
        send(
            Event(
                app: person.app, conversation: pair(person.uid, sender.uid), uids: [person.uid], sender: sender.uid,
                words: words))
    }

    /// Many plain messages to the users of an app, within three seconds.
    func flood(_ app: String, count: Int) {
        let own = people.indices.filter { people[$0].app == app }
        guard own.count > 1 else { return }
        for number in 0..<count {
            system.after(nanos: extra.next(in: 0...3_000_000_000)) { [unowned self] in
                call(own[number % own.count], by: own[(number + 1) % own.count], isVoip: false)
            }
        }
    }

    private var isDoubled: Bool { plan.kinds.contains(.doubles) && isChosen(8) }

    func pair(_ one: String, _ other: String) -> String { [one, other].sorted().joined(separator: "_") }

    private func words(for members: [String], sender: String, isGroup: Bool) -> PushWords {
        var words = PushWords()
        if plan.kinds.contains(.mentions), isChosen(3) {
            words.mentionsAll = isChosen(3)
            if !words.mentionsAll || isChosen(2) {
                words.mentioned = [members.randomElement(using: &random) ?? ""].filter { !$0.isEmpty }
            }
        }
        if plan.kinds.contains(.forces), isChosen(5) {
            let named = isChosen(2) ? nil : members.filter { _ in isChosen(2) }
            words.force = PushWords.Force(uids: named, content: "forced", liftsMute: !isChosen(4))
        }
        if plan.kinds.contains(.expiry), isChosen(6) {
            // Some are over before they are read.
            words.expireMs = system.wallMs + Int64(chance(0...12) * 1000) - 2000
        }
        if plan.kinds.contains(.excludes), isGroup, isChosen(4) {
            words.excluded = members.filter { _ in isChosen(3) }
        }
        if plan.kinds.contains(.hiding) { words.forcesDetail = isChosen(5) }
        if plan.kinds.contains(.variants) { vary(&words) }
        if plan.kinds.contains(.options) { dress(&words) }
        return words
    }

    /// Options of a message that change its text or its way.
    private func dress(_ words: inout PushWords) {
        if isChosen(4) { words.title = "T\(next("title"))" }
        if isChosen(8) { words.subtitle = "S" }
        if isChosen(8) { words.image = "https://example.com/i.png" }
        if isChosen(4) { words.key = "v\(next("key"))" }
        if isChosen(6) { words.taskID = "task\(chance(1...3))" }
        if isChosen(8) { words.collapseID = isChosen(3) ? String(repeating: "c", count: 70) : "c\(next("collapse"))" }
        if isChosen(8) { words.priority = ["high", "normal", "low"][chance(0...2)] }
        if isChosen(8) { words.strategy = chance(1...4) }
        if isChosen(8) { words.profile = ["nim", "raw", "rc", "wps"][chance(0...3)] }
        if isChosen(8) { words.sound = "ding.caf" }
        if isChosen(8) { words.threadID = "thread" }
        if isChosen(8) { words.category = "reply" }
        if isChosen(8) { words.interruption = ["passive", "active", "time-sensitive"][chance(0...2)] }
        if isChosen(10) { words.isMutable = false }
        if isChosen(6) { words.wantsSMS = true }
        if isChosen(8) { words.givenBadge = Int64(chance(1...99)) }
        switch chance(1...10) {
        case 1: words.typeName = "PICTURE"
        case 2: words.template = isChosen(3) ? ["name": "Bo"] : ["name": "Bo", "what": "hi"]
        case 3 where words.key == nil: words.payloadText = "p\(next("payload"))"
        case 4:
            // Around the limit of a payload.
            words.contentCount = 500
            words.key = String(repeating: "字", count: chance(700...1300))
        default: break
        }
    }

    private func vary(_ words: inout PushWords) {
        switch chance(1...20) {
        case 1, 2: words.isSilent = true
        case 3, 4: words.isVoip = true
        case 5: words.isEnabled = false
        case 6:
            words.isCustom = true
            if words.force != nil { words.force = nil }
        case 7, 8: words.isCounted = false
        case 9: words.hasPrefix = false
        default: break
        }
    }

    func revoke() {
        let since = system.nowNanos > 20_000_000_000 ? system.nowNanos - 20_000_000_000 : 0
        let targets = sent.filter { $0.kind == .message && $0.recipients.count < 100 && $0.atNanos >= since }
        guard let target = targets.randomElement(using: &random) else { return }
        guard !sent.contains(where: { $0.target == target.messageID && $0.app == target.app }) else { return }
        var words = PushWords()
        words.excluded = target.push.excluded
        let revokeBadge =
            plan.kinds.contains(.options) ? ["decrease", "decrease", "keep", "count"][chance(0...3)] : "decrease"
        if plan.kinds.contains(.options), isChosen(3) { words.content = "text of the revoke" }
        if plan.kinds.contains(.options), isChosen(4) { words.collapseID = "r\(next("collapse"))" }
        send(
            Event(
                app: target.app, conversation: target.conversation, uids: target.isToGroup ? nil : target.recipients,
                sender: "backend", words: words, target: target, revokeBadge: revokeBadge,
                isOfSystem: target.isOfSystem))
    }

    /// A message to a group that is divided into chunks.
    func crowd() {
        guard let group = groups.first(where: { $0.id == "g-crowd" }) else { return }
        let people = people.filter { $0.app == group.app }.map(\.uid)
        send(
            Event(
                app: group.app, conversation: group.id, sender: people.first ?? "",
                words: words(for: people, sender: "", isGroup: true)))
    }

    /// An activity begins, changes, or ends.
    func activity() {
        guard let person = people.randomElement(using: &random) else { return }
        let own = activities.indices.filter { activities[$0].app == person.app }
        guard let index = own.randomElement(using: &random), !isChosen(3) else {
            let uids = people.filter { $0.app == person.app && ($0.uid == person.uid || isChosen(3)) }.map(\.uid)
            let id = "ride\(next("activity"))"
            activities.append((person.app, id, uids))
            send(Sent.Activity(id: id, step: .start), to: uids, app: person.app)
            return follow(uids, person.app, id)
        }
        let (app, id, uids) = activities[index]
        send(Sent.Activity(id: id, step: isChosen(3) ? .end : .update), to: uids, app: app)
    }

    /// The devices show the activity, and bind the tokens for its updates.
    private func follow(_ uids: [String], _ app: String, _ id: String) {
        for person in people where person.app == app && uids.contains(person.uid) {
            for device in person.devices where device.start != nil {
                let token = makeToken()
                system.after(nanos: random.next(in: 0...3_000_000_000)) { [unowned self] in
                    write(.bind(device: device.name, token: token, type: .activity), of: person, activity: id)
                }
            }
        }
    }
}

/// What clients write.
extension Traffic {
    func bindAll(_ index: Int, _ device: Int) {
        bind(index, device)
        let (person, device) = (people[index], people[index].devices[device])
        if let voip = device.voip { write(.bind(device: device.name, token: voip, type: .voip), of: person) }
        if let start = device.start { write(.bind(device: device.name, token: start, type: .start), of: person) }
    }

    private func bind(_ index: Int, _ device: Int) {
        let (person, device) = (people[index], people[index].devices[device])
        guard !device.token.isEmpty else { return }
        write(.bind(device: device.name, token: device.token, type: .alert), of: person, words: bindWords())
    }

    private func bindWords() -> StateSent.BindWords {
        var words = StateSent.BindWords()
        guard plan.kinds.contains(.languages) else { return words }
        if isChosen(2) { words.language = ["en", "zh-Hans", "de", ""][chance(0...3)] }
        if isChosen(3) { words.zone = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", ""][chance(0...3)] }
        if isChosen(3) { words.contentKey = ["secret", "unknown", ""][chance(0...2)] }
        return words
    }

    /// A newer bind of the token came before it.
    private func isOld(_ state: StateSent) -> Bool {
        state.tokenType != nil
            && states.contains {
                $0.token == state.token && $0.tokenType != nil && $0.words.version >= state.words.version
                    && $0.uid != state.uid && $0.atNanos < state.atNanos
            }
    }

    /// The same bind again, or an older one; or one of another user with the same version. It changes nothing.
    func bindAgain() {
        let person = people[chance(0...people.count - 1)]
        guard let device = person.devices.first(where: { !$0.token.isEmpty }),
            let bind = states.last(where: { $0.token == device.token && $0.tokenType != nil }), bind.uid == person.uid,
            system.nowNanos > bind.atNanos + 4_000_000_000
        else { return }
        switch chance(1...3) {
        case 1: write(bind.kind, of: person, words: bind.words)
        case 2:
            var words = bindWords()
            words.version = bind.words.version - 1
            write(.bind(device: device.name, token: makeToken(), type: .alert), of: person, words: words)
        default:
            guard let other = people.first(where: { $0.app == person.app && $0.uid != person.uid }) else { return }
            var words = StateSent.BindWords()
            words.version = bind.words.version
            write(.bind(device: "taken", token: device.token, type: .alert), of: other, words: words)
        }
    }

    /// Parts of settings.
    func adjust() {
        let person = people[chance(0...people.count - 1)]
        switch chance(1...5) {
        case 1
        where states.contains(where: {
            if case .quiet = $0.kind { $0.uid == person.uid && $0.app == person.app } else { false }
        }):
            write(isChosen(2) ? .quietSwitch(isChosen(2)) : .quietLevel(isChosen(2) ? 1 : 5), of: person)
        case 2 where plan.kinds.contains(.hiding): write(.showsDetail(isChosen(2)), of: person)
        case 3 where plan.kinds.contains(.languages):
            write(.language(["en", "zh-Hans", ""][chance(0...2)]), of: person)
        case 4 where plan.kinds.contains(.desktops):
            write(.desktopPolicy(pushes: isChosen(3), holdSeconds: [0, 2, 5][chance(0...2)]), of: person)
        default: break
        }
    }

    /// A phone changes hands: its token goes to another user, on a device of its own there. Or it gets a new token.
    func rebind() {
        let (from, to) = (chance(0...people.count - 1), chance(0...people.count - 1))
        guard let device = people[from].devices.indices.filter({ !people[from].devices[$0].token.isEmpty }).last else {
            return
        }
        if from == to {
            people[from].devices[device].token = makeToken()
            return bind(from, device)
        }
        guard people[from].app == people[to].app else { return }
        let token = people[from].devices.remove(at: device).token
        people[to].devices.append(Person.Device(name: "x\(next("moved"))", token: token))
        bind(to, people[to].devices.count - 1)
    }

    /// A user logs in on a phone on which another one is logged in, and the app unbinds nothing. The other one's messages go on,
    /// and sometimes it logs in again.
    func switchAccount() {
        let phones = people.indices.flatMap { index in
            people[index].devices.filter { !$0.token.isEmpty && !$0.isDesktop }.map { (index, $0) }
        }
        guard let (from, phone) = phones.randomElement(using: &extra) else { return }
        var device = phone
        let others = people.indices.filter { $0 != from && people[$0].app == people[from].app }
        guard let to = others.randomElement(using: &extra) else { return }
        if device.voip == nil {
            device.voip = makeToken()
            write(.bind(device: device.name, token: device.voip ?? "", type: .voip), of: people[from])
        }
        let second: UInt64 = 1_000_000_000
        system.after(nanos: extra.next(in: second...3 * second)) { [unowned self] in
            guard !isOver, let place = people[from].devices.firstIndex(where: { $0.token == device.token }) else {
                return
            }
            people[from].devices.remove(at: place)
            let own = Person.Device(name: "s\(next("switched"))", token: device.token)
            people[to].devices.append(own)
            bindAll(to, people[to].devices.count - 1)
            for number in 1...4 {
                system.after(nanos: extra.next(in: 0...4 * second)) { [unowned self] in
                    call(from, by: to, isVoip: number > 1)
                }
            }
            guard extra.next(in: 0...1) == 0 else { return }
            system.after(nanos: extra.next(in: 5 * second...9 * second)) { [unowned self] in
                logInAgain(from, device, after: to)
            }
        }
    }

    private func logInAgain(_ from: Int, _ device: Person.Device, after other: Int) {
        guard !isOver, let place = people[other].devices.firstIndex(where: { $0.token == device.token }) else {
            return
        }
        people[other].devices.remove(at: place)
        people[from].devices.append(device)
        bindAll(from, people[from].devices.count - 1)
    }

    /// A user logs out on a device.
    func unbind() {
        let index = chance(0...people.count - 1)
        guard let device = people[index].devices.indices.first(where: { !people[index].devices[$0].token.isEmpty })
        else { return }
        let left = people[index].devices.remove(at: device)
        write(.unbind(device: left.name, token: left.token), of: people[index])
    }

    func mute(_ index: Int? = nil) {
        let person = people[index ?? chance(0...people.count - 1)]
        let others = people.filter { $0.app == person.app && $0.uid != person.uid }
        guard let other = others.randomElement(using: &random) else { return }
        let group = groups.first { $0.app == person.app && $0.id == "g1" }
        let conversation = group != nil && isChosen(2) ? group?.id ?? "" : pair(person.uid, other.uid)
        let level = [5, 5, 0, -1, 1, 2, 4][chance(0...6)]
        let until = isChosen(4) ? system.wallMs + Int64(chance(1...20) * 1000) : nil
        write(.mute(conversation: conversation, level: level, untilMs: until), of: person)
    }

    /// In minutes from the boundary near which the world begins.
    func quiet(_ index: Int? = nil) {
        let person = people[index ?? chance(0...people.count - 1)]
        let isShort = plan.apps.contains { $0.id == person.app && $0.sendsDigests }
        let begin = [-60, -60, -60, 0, 0, 1][chance(0...5)]
        let end = begin < 0 && !isShort && isChosen(4) ? 0 : isShort || isChosen(2) ? 2 : 240
        var hours = StateSent.QuietHours(isOn: !isChosen(4), start: begin, end: end, level: isChosen(3) ? 1 : 5)
        if plan.kinds.contains(.languages), isChosen(3) {
            hours.zone = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC"][chance(0...3)]
        }
        let (weekday, boundary) = Zone.minute(at: plan.boundaryMs - 1, in: hours.zone ?? "Asia/Shanghai")
        (hours.start, hours.end) = ((begin + boundary + 1) % 1440, (end + boundary + 1) % 1440)
        if isChosen(4) { hours.days = [weekday, weekday % 7 + 1, (weekday + 3) % 7 + 1].filter { _ in isChosen(2) } }
        write(.quiet(hours), of: person)
    }

    func read() {
        let candidates = sent.filter { $0.kind == .message && $0.recipients.count < 100 }
        guard let message = candidates.randomElement(using: &random),
            let uid = message.recipients.randomElement(using: &random),
            let person = people.first(where: { $0.app == message.app && $0.uid == uid })
        else { return }
        write(.read(conversation: message.conversation, upTo: message.seq), of: person)
    }

    /// The client has counted for itself, a moment ago.
    func report() {
        let person = people[chance(0...people.count - 1)]
        // No two reports are of one time: which is newer would be open.
        let ms = system.wallMs - Int64(chance(0...3000))
        // Some come late: a report that was made before another one.
        let clientMs = isChosen(3) ? (reportTimes.last ?? ms) - Int64(chance(1...2000)) : ms
        guard !reportTimes.contains(clientMs) else { return }
        reportTimes.append(clientMs)
        write(.report(value: Int64(chance(0...6)), clientMs: clientMs), of: person)
    }

    /// A push reached its device: some report that, or that the user opened it, some of them twice.
    func didArrive(_ push: Observed.Push) {
        guard plan.kinds.contains(.openings), push.app != Episode.app, push.status == 200,
            let messageID = push.messageID, isChosen(3),
            sent.contains(where: { $0.app == push.app && $0.messageID == messageID && $0.kind == .message }),
            let bind = states.last(where: { $0.token == push.token && !isOld($0) }),
            case .bind(let device, _, _) = bind.kind,
            let person = people.first(where: { $0.app == bind.app && $0.uid == bind.uid })
        else { return }
        let isOpened = isChosen(2)
        for _ in 0..<(isChosen(5) ? 2 : 1) {
            system.after(nanos: random.next(in: 0...3_000_000_000)) { [unowned self] in
                write(
                    .pushReport(device: device, pid: push.pid, messageID: messageID, isOpened: isOpened), of: person)
            }
        }
    }

    /// A device confirms a delivery.
    func ack(app: String, uid: String, device: String, messageID: String) {
        guard let person = people.first(where: { $0.app == app && $0.uid == uid }) else { return }
        write(.ack(device: device, messageID: messageID), of: person)
    }
}
