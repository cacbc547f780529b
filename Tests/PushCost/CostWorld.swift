// SPDX-License-Identifier: Apache-2.0
import Bench
import CostCounting
import EventLoop
import Kafka
import KafkaModel
import LocalServers
import SimulatedFleet
import SimulatedSystem
import Simulator
import Telemetry
import Worker

/// A world in virtual time with one worker of one shard, and the traffic of `carillon bench` in fixed amounts. Each event of a
/// run is the same as in the run before.
final class CostWorld {
    private let system = SimulatedSystem(seed: 1)
    private let kafka: KafkaModel
    private let redis: RedisSeat
    private let apns: APNsSeat
    private let worker: WorkerSeat
    private let traffic: BenchTraffic
    private let shape: CostShape
    private var isCounting = false
    private var written = 0
    /// Turns of the worker that are counted.
    private(set) var turns = 0

    private static let partitions = 16
    private static let host = "127.0.1.1"
    private static let millisecond: UInt64 = 1_000_000
    /// Records that arrive in each of them. A turn then has as many as on a machine whose worker is busy.
    private static let recordsPerMillisecond = 27

    init(_ shape: CostShape, folder: String) throws {
        self.shape = shape
        let settings = LocalCluster.Settings()
        traffic = BenchTraffic(users: shape.users, app: settings.app, topic: settings.topic)
        let (signing, system) = (try SimulatedKey(folder: folder), system)
        // Turns as long as those of a busy worker, and reads of all that has arrived.
        system.turnDelayMaxNanos = 2 * Self.millisecond
        for address in [RedisSeat.address, APNsSeat.address] {
            system.network.path(from: Self.host, to: address).shortReadsPerMille = 0
        }
        redis = RedisSeat(system, seed: 1)
        kafka = KafkaModel(system, partitions: Self.partitions)
        apns = try APNsSeat(system, topics: [settings.topic], key: signing.key)
        let configuration = try Self.configuration(settings, signing)
        let process = system.makeProcess("worker", host: Self.host)
        worker = try WorkerSeat(
            process, system: system, configuration: configuration,
            kafka: ModelHost(process, kafka, system: system), log: Log(level: .error))
        process.aroundTurn = { [unowned self] turn in
            guard isCounting else { return turn() }
            turns += 1
            Counting.turn(turn)
        }
    }

    private static func configuration(
        _ settings: LocalCluster.Settings, _ signing: SimulatedKey
    ) throws -> Configuration {
        var settings = settings
        settings.shards = 1
        var places = LocalCluster.Settings.Places(
            brokers: "127.0.0.6:9092", redis: "url: redis://\(RedisSeat.address)", endpoint: APNsSeat.endpoint,
            caFile: signing.authorityPath, keyFile: signing.path)
        places.keyID = SimulatedKey.keyID
        places.teamID = SimulatedKey.teamID
        return try Configuration.read(Array(settings.configurationText(places).utf8), source: "cost").get()
    }

    /// Binds the users, sends each of them a message that is not counted, as the first one after a bind costs more, and counts
    /// the next ones.
    ///
    /// - Returns: pushes, or recipients without one, that were counted.
    func run() throws -> Int {
        try write(shape.users, to: Configuration.Topics().userState) { [self] in traffic.bind($0, atMs: system.wallMs) }
        if let group = shape.group {
            for command in traffic.groupCommands(size: group, level: shape.isMuted ? 5 : 0) {
                redis.command(command.split(separator: " ").map(String.init))
            }
        }
        try play(shape.group.map { traffic.groups(of: $0) } ?? shape.users, series: "first")
        let first = apns.counters.accepted
        isCounting = true
        try play(shape.events, series: "counted")
        let recipients = shape.events * (shape.group ?? 1)
        let accepted = apns.counters.accepted - first
        guard accepted == (shape.isMuted ? 0 : recipients) else {
            throw SimulationFault("\(accepted) pushes of \(recipients)")
        }
        return recipients
    }

    private func play(_ events: Int, series: String) throws {
        try write(events, to: Configuration.Topics().events) { [self] number in
            shape.group.map { traffic.groupMessage(number, group: $0, series: series, atMs: system.wallMs) }
                ?? traffic.message(number, series: series, atMs: system.wallMs)
        }
    }

    /// Writes records at an even pace, and lets time pass until all is settled and committed.
    private func write(_ count: Int, to topic: String, _ record: (Int) -> (key: String, value: String)) throws {
        for number in 0..<count {
            let (key, value) = record(number)
            let bytes = Array(key.utf8)
            kafka.append(
                ModelRecord(key: bytes, value: Array(value.utf8), createdMs: system.wallMs), to: topic,
                kafka.partition(of: bytes, in: topic))
            if (number + 1).isMultiple(of: Self.recordsPerMillisecond) { system.run(nanos: Self.millisecond) }
        }
        for _ in 0..<6_000 {
            system.run(nanos: 10 * Self.millisecond)
            if isAtRest { return }
        }
        throw SimulationFault("the worker has not settled \(topic)")
    }

    private var isAtRest: Bool {
        let topics = Configuration.Topics()
        for topic in [topics.userState, topics.events, topics.chunks] {
            for partition in 0..<Self.partitions {
                let end = kafka.range(topic, partition).upperBound
                guard (kafka.committed("carillon", topic, partition)?.offset ?? 0) == end else { return false }
            }
        }
        return true
    }

    func end() {
        worker.crash()
        apns.end()
        kafka.end()
        system.end()
    }
}
