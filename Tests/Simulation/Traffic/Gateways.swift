// SPDX-License-Identifier: Apache-2.0
import EventLoop
import SimulatedSystem

/// From when to when a gateway was away, and with it the lease of that epoch for good.
struct LeaseLoss {
    var gateway: String
    var epoch: Int64
    var fromNanos: UInt64
    /// When it came back with another epoch.
    var toNanos: UInt64
}

/// Gateways and what is connected to them: presence and leases in Redis, acks of deliveries.
final class Gateways {
    private let system: SimulatedSystem
    private let traffic: Traffic
    private let story: Story
    private let command: ([String]) -> [UInt8]
    private var random: SmallRandom
    private var isOver = false
    /// What they wrote, for the judge.
    private(set) var moves: [Move] = []
    /// When they removed all connections.
    private(set) var endNanos: UInt64 = .max
    private static let second: UInt64 = 1_000_000_000
    private static let names = ["gw-1", "gw-2"]
    private var epochs: [String: Int64] = ["gw-1": 1, "gw-2": 1]
    /// Gateways that are away.
    private var away: Set<String> = []
    /// When a gateway came back, with another epoch.
    private var returnNanos: [String: UInt64] = [:]
    /// Losses of leases, for the judge.
    private(set) var leaseLosses: [LeaseLoss] = []
    /// When Redis took the lease of a gateway, for the judge.
    private(set) var renewals: [String: [UInt64]] = [:]
    private var connections: Int64 = 0

    init(
        _ traffic: Traffic, system: SimulatedSystem, story: Story, command: @escaping ([String]) -> [UInt8]
    ) {
        self.traffic = traffic
        self.system = system
        self.story = story
        self.command = command
        random = SmallRandom(seed: traffic.plan.seed ^ 0x6A7E)
    }

    func begin() {
        renewLeases()
        if random.next(in: 0...2) == 0 {
            system.after(nanos: random.next(in: 5 * Self.second...6 * Self.second + traffic.plan.trafficNanos)) {
                [weak self] in self?.fail()
            }
        }
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
        for person in traffic.people { _ = command(["DEL", "p:{\(person.tag)}"]) }
    }

    private func renewLeases() {
        guard !isOver else { return }
        for name in Self.names where !away.contains(name) { renew(name) }
        system.after(nanos: 3 * Self.second) { [weak self] in self?.renewLeases() }
    }

    private func renew(_ name: String) {
        let reply = command(["SET", "gw:{\(name)}", "\(epochs[name] ?? 1)", "EX", "10"])
        if reply.first == UInt8(ascii: "+") { renewals[name, default: []].append(system.nowNanos) }
    }

    /// A gateway ends, and comes back with another epoch. Its presence entries are void.
    private func fail() {
        guard !isOver, away.isEmpty else { return }
        let name = Self.names[Int(random.next(in: 0...1))]
        away.insert(name)
        story.tell("gateway \(name) ends")
        let loss = LeaseLoss(gateway: name, epoch: epochs[name] ?? 1, fromNanos: system.nowNanos, toNanos: .max)
        leaseLosses.append(loss)
        let place = leaseLosses.count - 1
        system.after(nanos: random.next(in: 1...14 * Self.second)) { [weak self] in
            guard let self, !isOver else { return }
            epochs[name, default: 1] += 1
            away.remove(name)
            renew(name)
            returnNanos[name] = system.nowNanos
            leaseLosses[place].toNanos = system.nowNanos
            story.tell("gateway \(name) has the epoch \(epochs[name] ?? 1)")
        }
    }

    /// A device comes to the foreground, goes to the background, or leaves.
    private func move(_ person: Person, _ device: Person.Device) {
        guard !isOver else { return }
        guard let gateway = Self.names.filter({ !away.contains($0) }).randomElement(using: &random) else { return }
        let state = ["fg", "fg", "bg", "off"][Int(random.next(in: 0...3))]
        let hasLocal = random.next(in: 0...1) == 0
        let peer = traffic.people.filter { $0.app == person.app && $0.uid != person.uid }.randomElement(using: &random)
        let opens = state == "fg" && random.next(in: 0...4) == 0
        let open = opens ? peer.map { traffic.pair(person.uid, $0.uid) } : nil
        // Near the end of the two minutes.
        let isOld = state == "bg" && random.next(in: 0...2) == 0
        let age = isOld ? random.next(in: 105 * Self.second...123 * Self.second) : 0
        let since = state == "bg" ? "\(system.wallMs - Int64(age / 1_000_000))" : "-"
        connections += 1
        let epoch = epochs[gateway] ?? 1
        let value =
            "\(state),\(device.platform),\(gateway),\(epoch),\(connections),\(system.wallMs),\(since),\(open ?? "-"),"
            + (hasLocal ? "l" : "-")
        _ = command(["HSET", "p:{\(person.tag)}", device.name, value])
        _ = command(["EXPIRE", "p:{\(person.tag)}", "180"])
        moves.append(
            Move(
                app: person.app, uid: person.uid, device: device.name, atNanos: system.nowNanos, state: state,
                isDesktop: device.isDesktop, hasLocal: hasLocal, openConversation: open, gateway: gateway, epoch: epoch,
                connection: connections, ageNanos: age,
                isOfNewLease: returnNanos[gateway].map { system.nowNanos < $0 + 2 * Self.second } ?? false))
        story.tell(
            "gateway \(gateway): \(person.uid)'s \(device.name) (\(person.app)) is \(state)"
                + (open.map { ", \($0) is open" } ?? ""))
    }

    /// Deliveries reached their devices.
    func deliver(_ delivery: JudgeJSON) {
        // Episodes have gateways of their own.
        guard let app = delivery["app"]?.text, app != Episode.app, let message = delivery["event"]?["msg_id"]?.text
        else { return }
        if let gateway = delivery["gateway"]?.text, away.contains(gateway) { return }
        for target in delivery["to"]?.list ?? [] {
            guard target["ack_by_ms"] != nil, let uid = target["uid"]?.text, let device = target["device"]?.text
            else { continue }
            // Most come soon, some late, some never.
            let draw = random.next(in: 0...19)
            if draw < 3 { continue }
            let most = draw < 13 ? Self.second : 10 * Self.second
            system.after(nanos: random.next(in: 1_000_000...most)) { [weak self] in
                self?.traffic.ack(app: app, uid: uid, device: device, messageID: message)
            }
        }
    }
}
