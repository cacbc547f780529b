// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc
import Kafka
import LocalServers
import Processes
import Simulator
import Telemetry
import Worker

/// The parts that all phases share: servers, users, and the writers of records.
struct BenchServers: Sendable {
    let cluster: LocalCluster
    let traffic: BenchTraffic
    let settings: BenchSettings

    /// Partitions of each input topic.
    let partitions: Int

    /// The executable that runs as the worker; nil for this program.
    let program: String?
    private let simulatorThread: String

    /// - Parameters:
    ///   - program: a carillon executable that runs as the worker in place of this program.
    ///   - backlog: the number of unread records in Kafka at one time; nil for all.
    ///   - simulatorThread: must differ between two clusters in one process.
    init(
        _ settings: BenchSettings, program: String? = nil, backlog: Int? = nil, simulatorThread: String = "simulator"
    ) async throws {
        self.settings = settings
        self.program = program
        self.simulatorThread = simulatorThread
        var own = LocalCluster.Settings()
        own.topic = BenchPushes.topic
        own.simulatorThread = simulatorThread
        // The mock broker keeps 5 MiB per partition. A record takes about 600 bytes there.
        let records = backlog.map { max($0, settings.users) } ?? settings.records
        let least = settings.group != nil ? 16 : backlog != nil ? 32 : 128
        own.partitions = max(least, 2 * records * 600 / (5 << 20))
        partitions = own.partitions
        own.shards = settings.shards
        // Each phase starts new workers. The mock broker waits this long for the previous members.
        own.sessionMs = 6_000
        own.ledger = .off
        own.logLevel = .info
        own.usesRedisSocket = !settings.usesRedisTCP
        own.usesRedisCluster = settings.usesCluster && program == nil
        own.redisClusterHasReplicas = false
        own.appLines = "    limits:\n      in_flight: \(settings.inFlight)\n"
        own.lines = "results: \(settings.results)\n"
        cluster = try await LocalCluster(own)
        traffic = BenchTraffic(users: settings.users, app: own.app, topic: own.topic)
    }

    func startWorker(timesStages: Bool = false) async throws -> BenchWorker {
        try await BenchWorker.start(
            program, configuration: try cluster.writeConfiguration(), timesStages: timesStages)
    }

    /// Writes the configuration of a worker that can hold `count` unanswered pushes for a long time.
    ///
    /// - Parameter apnsPort: a local port in place of the simulator's.
    func writeConfiguration(holding count: Int, apnsPort: UInt16? = nil) throws -> String {
        var lines: [String] = []
        for line in cluster.configurationText.split(separator: "\n") {
            switch true {
            case line.hasPrefix("      in_flight:"):
                lines += ["      in_flight: \(count + 1_024)", "      answer_s: 300"]
            case line.hasPrefix("    endpoint:"):
                lines.append("    endpoint: https://localhost:\(apnsPort ?? cluster.simulatorPort)")
            case line.hasPrefix("drain_s:"): lines.append("drain_s: 300")
            default: lines.append(String(line))
            }
        }
        lines += ["window:", "  records: \(count + 1_024)", ""]
        return try cluster.folder.write(Array(lines.joined(separator: "\n").utf8), to: "holding.yaml")
    }

    /// Writes `count` records as fast as possible. The broker must confirm each.
    func fill(_ topic: String, _ count: Int, _ record: (Int) -> (key: String, value: String)) throws {
        let writer = try KafkaTopicWriter(cluster.kafka, topic: topic)
        for number in 0..<count {
            if number & 1023 == 0 { try Task.checkCancellation() }
            try write(record(number), to: writer)
        }
        try finish(writer, count)
    }

    /// Writes records at the rate of the settings, each at its own time or as soon as possible after it, until there is no next
    /// one.
    ///
    /// - Parameter next: is asked again while a record waits for its time.
    /// - Returns: the number of records.
    @discardableResult
    func pace(
        from start: UInt64, _ next: (Int) throws -> (key: String, value: String)?
    ) throws -> Int {
        var kafka = cluster.kafka
        kafka.options["linger.ms"] = "0"
        let writer = try KafkaTopicWriter(kafka, topic: Configuration.Topics().events)
        let gap = 1e9 / Double(settings.rate)
        var number = 0
        while let record = try next(number) {
            try Task.checkCancellation()
            let (due, now) = (start &+ UInt64(Double(number) * gap), Loop.monotonicNanos())
            if now < due {
                usleep(useconds_t(min(20_000, (due - now) / 1000 + 1)))
                continue
            }
            try write(record, to: writer)
            number += 1
        }
        try finish(writer, number)
        return number
    }

    func finish(_ writer: KafkaTopicWriter, _ count: Int) throws(SetupFault) {
        guard writer.finish(timeoutMs: 60_000), writer.written == count else {
            throw SetupFault("the broker confirmed \(writer.written) of \(count) records")
        }
    }

    /// Event `number` of a series, 1:1 or to a group according to the settings.
    ///
    /// - Parameter expireAtMs: the expiry of a group's event; nil for a day later.
    func event(_ number: Int, series: String, atMs: Int64, expireAtMs: Int64? = nil) -> (key: String, value: String) {
        guard let group = settings.group else { return traffic.message(number, series: series, atMs: atMs) }
        return traffic.groupMessage(number, group: group, series: series, atMs: atMs, expireAtMs: expireAtMs)
    }

    func write(_ record: (key: String, value: String), to writer: KafkaTopicWriter) throws(SetupFault) {
        var (key, value) = record
        let error = key.withUTF8 { key in
            value.withUTF8 { value in
                writer.write(key: UnsafeRawBufferPointer(key), value: UnsafeRawBufferPointer(value))
            }
        }
        if let error { throw SetupFault("the broker takes no records: \(error)") }
    }

    /// Binds every user's token by real records, then sends each user one message: the first push of a user asks Redis for
    /// more than the later ones do, which are what the phases measure.
    ///
    /// - Returns: binds per second.
    func bindUsers() async throws -> Double {
        let nowMs = Loop.wallMs() - 60_000
        try fill(Configuration.Topics().userState, traffic.users) { traffic.bind($0, atMs: nowMs) }
        let worker = try await startWorker()
        let start = Loop.monotonicNanos()
        let first = try worker.metrics().settled
        try await wait(for: worker) { $0.settled >= traffic.users }
        let seconds = Double(Loop.monotonicNanos() - start) / 1e9
        try fill(Configuration.Topics().events, traffic.users) { traffic.message($0, series: "first", atMs: nowMs) }
        try await wait(for: worker) { $0.settled >= 2 * traffic.users }
        try worker.stop()
        return Double(traffic.users - first) / seconds
    }

    /// Writes the members of the groups as the IM backend does.
    func makeGroups() throws {
        guard let size = settings.group ?? settings.beside else { return }
        for command in traffic.groupCommands(
            size: size, level: settings.isMuted ? 5 : 0, count: settings.beside.map { _ in 1 })
        {
            let answer = try cluster.redis.command(command)
            if answer.hasPrefix("-") { throw SetupFault("redis-server: \(answer)") }
        }
    }

    /// Polls the worker's metrics until they meet the condition.
    @discardableResult
    func wait(
        for worker: BenchWorker, everyMs: Int = 200, until isReached: (MetricsText) -> Bool
    ) async throws -> MetricsText {
        var progress = BenchProgress()
        while true {
            let metrics = try worker.metrics()
            if isReached(metrics) { return metrics }
            try progress.note(metrics.settled + metrics.consumed)
            try await Task.sleep(for: .milliseconds(everyMs), tolerance: .zero)
        }
    }

    /// CPU time of this cluster's simulator, which is a thread of this process.
    func simulatorNanos(of own: ProcessUsage = ProcessUsage(pid: getpid())) -> UInt64 {
        own.threads.reduce(0) { $0 &+ ($1.name == simulatorThread ? $1.cpuNanos : 0) }
    }
}
