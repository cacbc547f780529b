// SPDX-License-Identifier: Apache-2.0
import EventLoop
import SimulatedSystem

/// Gateways and what is connected to them: presence and leases in Redis, acks of deliveries.
final class Gateways {
    private let system: SimulatedSystem
    private let traffic: Traffic
    private let story: Story
    private let command: ([String]) -> Void
    private var random: SmallRandom
    private var isOver = false
    /// What they wrote, for the judge.
    private(set) var moves: [Move] = []
    /// When they removed all connections.
    private(set) var endNanos: UInt64 = .max
    private static let second: UInt64 = 1_000_000_000
    private static let names = ["gw-1", "gw-2"]

    init(
        _ traffic: Traffic, system: SimulatedSystem, story: Story, command: @escaping ([String]) -> Void
    ) {
        self.traffic = traffic
        self.system = system
        self.story = story
        self.command = command
        random = SmallRandom(seed: traffic.plan.seed ^ 0x6A7E)
    }

    func begin() {
        renewLeases()
        for person in traffic.people {
            for device in person.devices where random.next(in: 0...1) == 0 {
                for _ in 0..<random.next(in: 1...4) {
                    let after = random.next(in: 0...Self.second * 4 + traffic.plan.trafficNanos)
                    system.after(nanos: after) { [weak self] in self?.move(person, device) }
                }
            }
        }
    }

    /// All devices are suspended from now on.
    func end() {
        isOver = true
        endNanos = system.nowNanos
        for person in traffic.people { command(["DEL", "p:{\(person.tag)}"]) }
    }

    private func renewLeases() {
        guard !isOver else { return }
        for name in Self.names { command(["SET", "gw:{\(name)}", "1", "EX", "10"]) }
        system.after(nanos: 3 * Self.second) { [weak self] in self?.renewLeases() }
    }

    /// A device comes to the foreground, goes to the background, or leaves.
    private func move(_ person: Person, _ device: Person.Device) {
        guard !isOver else { return }
        let gateway = Self.names[Int(random.next(in: 0...1))]
        let state = ["fg", "fg", "bg", "off"][Int(random.next(in: 0...3))]
        let hasLocal = random.next(in: 0...1) == 0
        let peer = traffic.people.filter { $0.app == person.app && $0.uid != person.uid }.randomElement(using: &random)
        let opens = state == "fg" && random.next(in: 0...4) == 0
        let open = opens ? peer.map { traffic.pair(person.uid, $0.uid) } : nil
        let since = state == "bg" ? "\(system.wallMs)" : "-"
        let value =
            "\(state),\(device.platform),\(gateway),1,1,\(system.wallMs),\(since),\(open ?? "-"),\(hasLocal ? "l" : "-")"
        command(["HSET", "p:{\(person.tag)}", device.name, value])
        command(["EXPIRE", "p:{\(person.tag)}", "180"])
        moves.append(
            Move(
                app: person.app, uid: person.uid, device: device.name, atNanos: system.nowNanos, state: state,
                isDesktop: device.platform == "pc", hasLocal: hasLocal, openConversation: open))
        story.tell(
            "gateway \(gateway): \(person.uid)'s \(device.name) (\(person.app)) is \(state)"
                + (open.map { ", \($0) is open" } ?? ""))
    }

    /// Deliveries reached their devices.
    func deliver(_ delivery: JudgeJSON) {
        guard let app = delivery["app"]?.text, let message = delivery["event"]?["msg_id"]?.text else { return }
        for target in delivery["to"]?.list ?? [] {
            guard target["ack_by_ms"] != nil, let uid = target["uid"]?.text, let device = target["device"]?.text,
                random.next(in: 0...9) < 7
            else { continue }
            system.after(nanos: random.next(in: 1_000_000...9 * Self.second)) { [weak self] in
                self?.traffic.ack(app: app, uid: uid, device: device, messageID: message)
            }
        }
    }
}
