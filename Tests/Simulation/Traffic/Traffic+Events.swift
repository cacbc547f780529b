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
        send(
            Event(
                app: person.app, conversation: pair(person.uid, sender.uid), uids: [person.uid], sender: sender.uid,
                words: words(for: [person.uid], sender: sender.uid, isGroup: false), isDoubled: isDoubled))
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
        return words
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
        send(
            Event(
                app: target.app, conversation: target.conversation, uids: target.isToGroup ? nil : target.recipients,
                sender: "backend", words: words, target: target))
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
