// SPDX-License-Identifier: Apache-2.0
import EventLoop
import SimulatedSystem

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
