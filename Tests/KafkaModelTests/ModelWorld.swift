// SPDX-License-Identifier: Apache-2.0
import Kafka
import KafkaModel

/// A cluster of the model with members, in virtual time.
final class ModelWorld {
    private final class Wake: KafkaModelWake {
        let descriptor: Int32
        var isReadable = true

        init(_ descriptor: Int32) { self.descriptor = descriptor }

        func signal() { isReadable = true }
        func drain() { isReadable = false }
    }

    var nowNanos: UInt64 = 1_000_000_000
    private var state: UInt64
    private(set) var model: KafkaModel
    var members: [GroupMember] = []
    private var wakes: [Wake] = []
    private var hosts: [String: ModelHost] = [:]
    private var paused: Set<String> = []
    private var nextTick: UInt64 = 0
    private var lines: [String] = []
    /// What happened at the brokers.
    var log: [String] { lines }

    init(seed: UInt64 = 1, _ settings: KafkaModelSettings = KafkaModelSettings()) {
        state = seed
        model = KafkaModel(nowNanos: { 0 }, random: { 0 })
        model = KafkaModel(settings, nowNanos: { [unowned self] in nowNanos }, random: { [unowned self] in random() })
        model.log = { [unowned self] line in lines.append("\(nowNanos / 1_000_000) \(line)") }
    }

    func host(_ name: String) -> ModelHost {
        if let known = hosts[name] { return known }
        let host = ModelHost(
            name, model, steadyNanos: { [unowned self] in nowNanos },
            wallMs: { [unowned self] in 1_700_000_000_000 + Int64(nowNanos / 1_000_000) },
            makeWake: { [unowned self] in
                wakes.append(Wake(Int32(wakes.count)))
                return wakes[wakes.count - 1]
            })
        hosts[name] = host
        return host
    }

    /// A member in a process of the same name.
    func member(
        _ name: String, topics: [String] = ["events"], group: String = "g", options: [String: String] = [:],
        reset: KafkaConfiguration.OffsetReset = .earliest
    ) throws -> GroupMember {
        var all = ["session.timeout.ms": "6000", "heartbeat.interval.ms": "500"]
        all.merge(options) { $1 }
        let configuration = KafkaConfiguration(brokers: "model", group: group, options: all, offsetReset: reset)
        let client = try ModelClients(host(name)).group(configuration, topics: topics, reportsEnds: true)
        let member = GroupMember(name, KafkaConsumer(client))
        members.append(member)
        return member
    }

    func producer(_ name: String = "producer", options: [String: String] = [:]) throws -> KafkaProducer {
        KafkaProducer(
            try ModelClients(host(name)).producer(KafkaConfiguration(brokers: "model", options: options)))
    }

    func write(_ topic: String, _ partition: Int, _ values: [String]) {
        for value in values {
            model.append(ModelRecord(key: nil, value: Array(value.utf8)), to: topic, partition)
        }
    }

    /// SplitMix64.
    private func random() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var bits = state
        bits = (bits ^ (bits >> 30)) &* 0xbf58_476d_1ce4_e5b9
        bits = (bits ^ (bits >> 27)) &* 0x94d0_49bb_1331_11eb
        return bits ^ (bits >> 31)
    }

    // MARK: - Faults

    func crash(_ name: String) {
        hosts[name]?.crash()
        hosts[name] = nil
        members.removeAll { $0.name == name }
    }

    func pause(_ name: String) {
        hosts[name]?.pause()
        paused.insert(name)
    }

    func goOn(_ name: String) {
        paused.remove(name)
        hosts[name]?.goOn()
    }

    func isPaused(_ name: String) -> Bool { paused.contains(name) }

    /// A member that has left.
    func remove(_ member: GroupMember) { members.removeAll { $0 === member } }

    // MARK: - Chance

    func pick(_ range: ClosedRange<Int>) -> Int {
        range.lowerBound + Int(random() % UInt64(range.upperBound - range.lowerBound + 1))
    }

    func chance(_ share: Double) -> Bool { Double(random() >> 11) / Double(1 << 53) < share }

    // MARK: - Time

    /// Lets time pass until the condition holds. Returns false if `seconds` passed first.
    @discardableResult
    func run(_ seconds: Double = 60, until condition: () -> Bool = { false }) -> Bool {
        let end = nowNanos + UInt64(seconds * 1e9)
        while true {
            pollAll()
            if condition() { return true }
            let next = min(model.nextNanos ?? .max, nextTick)
            if next > end {
                nowNanos = end
                return false
            }
            nowNanos = max(nowNanos, next)
            if nowNanos >= nextTick { tick() } else { model.runNext() }
        }
    }

    private func pollAll() {
        // Only those that asked: a missed wake-up shows as a test that times out.
        for member in members where !paused.contains(member.name) && wakes[Int(member.consumer.wakeFD)].isReadable {
            member.consumer.poll(max: 100)
        }
    }

    private func tick() {
        nextTick = nowNanos + 1_000_000_000
        for member in members where !paused.contains(member.name) {
            member.consumer.passEmptyOffsets()
            member.consumer.commitChanges()
            member.consumer.watchLag()
        }
    }
}
