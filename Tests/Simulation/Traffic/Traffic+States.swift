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
        write(.bind(device: device.name, token: device.token, type: .alert), of: person)
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

    /// The world begins at 16:00 in Shanghai, the apps' time zone.
    func quiet(_ index: Int? = nil) {
        let person = people[index ?? chance(0...people.count - 1)]
        let isShort = plan.apps.contains { $0.id == person.app && $0.sendsDigests }
        let begin = 16 * 60 + [-60, -60, 1][chance(0...2)]
        let end = isShort || isChosen(2) ? 16 * 60 + 2 : 20 * 60
        write(
            .quiet(StateSent.QuietHours(isOn: !isChosen(4), start: begin, end: end, level: isChosen(3) ? 1 : 5)),
            of: person)
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
        guard plan.kinds.contains(.openings), push.status == 200, let messageID = push.messageID, isChosen(3),
            sent.contains(where: { $0.app == push.app && $0.messageID == messageID && $0.kind == .message }),
            let bind = states.last(where: { $0.token == push.token }),
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
