// SPDX-License-Identifier: Apache-2.0
import EventLoop
import SimulatedSystem

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

    /// Options of a message that change what is shown, or how it is sent.
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
