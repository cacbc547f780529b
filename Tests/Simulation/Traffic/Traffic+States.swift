// SPDX-License-Identifier: Apache-2.0
import EventLoop
import SimulatedSystem

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
