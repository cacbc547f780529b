// SPDX-License-Identifier: Apache-2.0
import Crypto
import EventLoop
import Kafka
package import KafkaModel
package import LocalServers
package import Processes
package import SimulatedFleet
package import SimulatedSystem
package import Simulator
package import StageWords
import Telemetry
package import Worker

/// A world in virtual time with workers in it, and what a test does there: write records, wait for their settling, look at
/// the outcome. All on the thread of its caller: time passes only in its calls.
///
/// The workers are the product's code; Kafka, Redis and the network are models (docs/simulation.md).
///
/// Unchecked Sendable: a test has one thread at a time.
package final class Stage: @unchecked Sendable {
    package let settings: LocalCluster.Settings
    package let system: SimulatedSystem
    package let kafka: KafkaModel
    /// Of a cluster, the first node.
    package let redis: StageRedis
    let redisCluster: StageCluster?
    package let apns: APNsSeat
    package let folder: TemporaryFolder
    private let signing: SimulatedKey
    private let tester: SimulatedProcess
    private let testerLoop: Loop
    package private(set) var workers: [StageWorker] = []
    /// All that were started.
    private var seats: [WorkerSeat] = []
    private var produced = 0
    /// Of `produced`, the changes of user state.
    private var producedStates = 0
    private var output: StageOutput
    private let log = Guarded<[UInt8]>([])

    /// The stage of the test that runs.
    @TaskLocal package static var current: Stage?

    package static var here: Stage {
        get throws {
            guard let current else { throw SetupFault("the suite has no stage: it lacks the trait .onStage") }
            return current
        }
    }

    private static let group = "carillon"
    private static let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    /// The templates that are shipped.
    package static let templates = root + "/Config/templates.yaml"
    private static let millisecond: UInt64 = 1_000_000

    package init(_ settings: LocalCluster.Settings = LocalCluster.Settings()) throws {
        self.settings = settings
        folder = try TemporaryFolder()
        signing = try SimulatedKey(folder: folder.path)
        let system = SimulatedSystem(seed: 1)
        self.system = system
        redisCluster = settings.usesRedisCluster ? StageCluster(system) : nil
        redis = redisCluster?.nodes[0] ?? StageRedis(system)
        kafka = KafkaModel(system, partitions: settings.partitions)
        apns = try APNsSeat(
            system, topics: [settings.topic] + settings.moreTopics + settings.tenants.map(\.topic), key: signing.key,
            scenario: settings.scenario)
        tester = system.makeProcess("tester", host: "127.0.0.2")
        testerLoop = try tester.makeLoop("tester")
        output = StageOutput(partitions: settings.partitions)
        for tenant in settings.tenants {
            if let pem = tenant.keyPEM { try folder.write(pem, to: "key-\(tenant.id).p8") }
        }
    }

    /// Makes a stage with a ready worker, runs a closure on it and ends it, whichever way the closure ended.
    package static func with(
        _ settings: LocalCluster.Settings = LocalCluster.Settings(), _ body: (Stage) throws -> Void
    ) throws {
        try bare(settings) { stage in
            try stage.startWorker()
            try body(stage)
        }
    }

    /// The same without a worker.
    package static func bare(
        _ settings: LocalCluster.Settings = LocalCluster.Settings(), _ body: (Stage) throws -> Void
    ) throws {
        let stage = try Stage(settings)
        defer { stage.end() }
        do {
            try $current.withValue(stage) {
                try StageClock.$nowMs.withValue({ stage.system.wallMs }) { try body(stage) }
            }
        } catch {
            stage.tellState()
            throw error
        }
    }

    /// Prints how the workers stand and the end of their log: for who reads a failure later.
    package func tellState() {
        for worker in workers {
            for shard in worker.status().shards { print("shard \(shard)") }
        }
        let lines = ((try? logText()) ?? "").split(separator: "\n")
        print(lines.suffix(60).joined(separator: "\n"))
    }

    package func end() {
        for seat in seats where !seat.process.isDead { seat.crash() }
        workers = []
        apns.end()
        system.end()
    }

    // MARK: - Time

    /// Lets time pass until the condition holds, which is asked at that interval; throws what was waited for when it does not come.
    package func until(
        _ what: String, within limit: Duration = .seconds(90), every interval: Duration = .milliseconds(5),
        _ holds: () throws -> Bool
    ) throws {
        let endNanos = system.nowNanos &+ UInt64(limit / .nanoseconds(1))
        while system.nowNanos < endNanos {
            if try holds() { return }
            wait(interval)
        }
        throw SetupFault("waited \(limit) in vain until \(what)")
    }

    package func wait(_ duration: Duration) { system.run(nanos: UInt64(duration / .nanoseconds(1))) }

    package func wait(untilMs time: Int64) {
        system.run(nanos: UInt64(max(0, time - system.wallMs)) * Self.millisecond)
    }

    // MARK: - Workers

    /// - Parameters:
    ///   - clockAheadMs: the clock that it goes by is that much ahead.
    ///   - waits: until it and the others have their share of all partitions.
    @discardableResult
    package func startWorker(
        group: String? = nil, clockAheadMs: Int64 = 0, waits: Bool = true
    ) throws -> StageWorker {
        var configuration = try Configuration.read(Array(configurationText.utf8), source: "stage").get()
        if let group { configuration.kafka.group = group }
        let process = system.makeProcess("worker-\(seats.count + 1)", host: "127.0.1.\(seats.count + 1)")
        let clock = WallClock()
        let log = Log(level: .debug) { [log] line in log.withLock { $0 += line } }
        let seat = try WorkerSeat(
            process, system: system, configuration: configuration, kafka: ModelHost(process, kafka, system: system),
            log: log, wallClock: clock)
        seats.append(seat)
        let worker = try StageWorker(seat, configuration, clock: clock, log: log)
        worker.setClock(aheadMs: clockAheadMs)
        workers.append(worker)
        if waits { try awaitGroup(of: group == nil ? workers : [worker]) }
        return worker
    }

    /// The text that `carillon run` would read.
    package var configurationText: String {
        let url = redisCluster?.urls ?? (settings.redisURL.isEmpty ? "redis://\(redis.address)" : settings.redisURL)
        var places = LocalCluster.Settings.Places(
            brokers: "127.0.0.6:9092", redis: "url: \(url)",
            endpoint: APNsSeat.endpoint, caFile: signing.authorityPath, keyFile: signing.path)
        places.keyID = SimulatedKey.keyID
        places.teamID = SimulatedKey.teamID
        for tenant in settings.tenants where tenant.keyPEM != nil {
            places.tenantKeyFiles[tenant.id] = folder.file("key-\(tenant.id).p8")
        }
        return settings.configurationText(places)
    }

    /// The provider key's file.
    package var keyFile: String { signing.path }
    package var keyPEM: [UInt8] { get throws { try signing.key.pem() } }

    /// Waits until every shard of these workers has its share of all partitions, and Redis and APNs answer.
    package func awaitGroup(of workers: [StageWorker]) throws {
        // A group forms in seconds, and to ask costs a turn of every shard.
        try until("the group has formed", every: .milliseconds(50)) {
            let shares = workers.flatMap { $0.seat.status }.map(\.assignedPartitions)
            return !shares.contains(0) && shares.reduce(0, +) == 2 * settings.partitions
                && workers.allSatisfy { $0.status().isReady }
        }
    }

    /// Drains one worker. Returns true if nothing was left.
    @discardableResult
    package func stop(_ worker: StageWorker) throws -> Bool {
        var isDrained: Bool?
        beginStop(worker) { isDrained = $0 }
        try until("the worker has ended", within: .seconds(600)) { isDrained != nil }
        return isDrained ?? false
    }

    /// Lets one worker drain while time passes.
    package func beginStop(_ worker: StageWorker, _ done: @escaping (_ isDrained: Bool) -> Void) {
        worker.beginDraining()
        worker.seat.leave { [unowned self] isDrained in
            workers.removeAll { $0 === worker }
            done(isDrained)
        }
    }

    /// Waits until it has its share of all partitions, and all changes of user state are applied and committed.
    package func awaitState(_ worker: StageWorker) throws {
        try awaitGroup(of: workers)
        let topic = Configuration.Topics().userState
        try until("all user state is applied and committed") {
            (0..<settings.partitions).allSatisfy { partition in
                let end = kafka.range(topic, partition).upperBound
                return end == 0 || kafka.committed(Self.group, topic, partition)?.offset == end
            }
        }
    }

    /// The sum of what the group has committed of a topic.
    package func committedRecords(of topic: String) -> Int {
        (0..<settings.partitions).reduce(0) { $0 + Int(kafka.committed(Self.group, topic, $1)?.offset ?? 0) }
    }

    /// Ends one worker without notice.
    package func kill(_ worker: StageWorker) {
        workers.removeAll { $0 === worker }
        worker.seat.crash()
    }

    package var worker: StageWorker {
        get throws {
            guard let worker = workers.last else { throw SetupFault("no worker runs") }
            return worker
        }
    }

    /// The workers' log lines so far.
    package func logText() throws -> String { String(decoding: log.withLock { $0 }, as: UTF8.self) }

    /// What the operator sees at a path.
    package func page(_ path: String, of worker: StageWorker? = nil) throws -> HTTPClient.Answer {
        let worker = try worker ?? self.worker
        worker.status()
        var request: PageRequest?
        tester.run(on: testerLoop) { request = PageRequest(path, port: worker.port, loop: testerLoop) }
        try until("the page \(path) has come") { request?.hasEnded ?? true }
        defer { tester.run(on: testerLoop) { request = nil } }
        guard let request else { throw SetupFault("no page") }
        return try request.answer
    }

    /// Connects to the newest worker's pages without asking anything while `body` runs.
    ///
    /// - Returns: how many of these connections the worker ended.
    package func withConnectFlood(perSecond: Int, _ body: () throws -> Void) throws -> Int {
        let port = try worker.port
        var flood: ConnectFlood?
        tester.run(on: testerLoop) {
            flood = ConnectFlood(port: port, loop: testerLoop, connectsPerSecond: perSecond)
        }
        defer { tester.run(on: testerLoop) { flood = nil } }
        try body()
        return flood?.endedCount ?? 0
    }

    /// The sum of a metric's series over all workers of the stage.
    package func metric(_ name: String, _ label: String = "") throws -> Int {
        Int(workers.reduce(0) { $0 + $1.metric(name, label) })
    }

    // MARK: - Records in

    package func write(_ lines: [Line], to topic: String) throws {
        for line in lines {
            let partition =
                line.key.map { kafka.partition(of: $0, in: topic) } ?? system.choice(kafka.partitionCount(of: topic))
            let record = ModelRecord(
                key: line.key, value: line.value, createdMs: line.timestampMs ?? system.wallMs)
            kafka.append(record, to: topic, partition)
        }
        produced += lines.count
        if topic == Configuration.Topics().userState { producedStates += lines.count }
    }

    package func writeState(_ lines: [Line]) throws { try write(lines, to: Configuration.Topics().userState) }
    package func writeEvents(_ lines: [Line]) throws { try write(lines, to: Configuration.Topics().events) }

    /// Waits until everything written so far is settled.
    package func settle(within limit: Duration = .seconds(90)) throws {
        let wanted = produced
        try until("\(wanted) records are settled", within: limit, every: .milliseconds(20)) {
            let statuses = workers.flatMap { $0.seat.status }
            // What is owed to Redis is settled, and in hand still.
            if statuses.contains(where: { $0.pendingRecords > 0 }) { return false }
            if progress(of: statuses) < wanted { return false }
            // What was put off has come back, and all chunks of large groups are done.
            return try metric("carillon_chunks_total") <= metric("carillon_chunks_settled_total")
                && metric("carillon_parked_total") <= metric("carillon_parked_settled_total")
        }
    }

    /// Waits until every change of user state written so far is settled, whatever events wait meanwhile.
    package func settleState(within limit: Duration = .seconds(90)) throws {
        let wanted = producedStates
        try until("\(wanted) changes of user state are settled", within: limit) {
            progress(of: workers.flatMap { $0.seat.status }, topics: [Configuration.Topics().userState]) >= wanted
        }
    }

    /// Settled records of the input topics, by their offsets; with `isSettled` false those that were read.
    package func progress(
        of statuses: [ShardStatus], isSettled: Bool = true, topics: [String] = LocalCluster.readTopics
    ) -> Int {
        var offsets: [String: Int64] = [:]
        for partition in statuses.flatMap(\.partitions) where topics.contains(partition.topic) {
            let place = "\(partition.topic) \(partition.partition)"
            let offset = (isSettled ? partition.settledTo : partition.readTo) ?? 0
            offsets[place] = max(offsets[place] ?? 0, offset)
        }
        return Int(offsets.values.reduce(0, +))
    }

    /// Changes of user state, settled before the events are written; then the events, settled too.
    @discardableResult
    package func play(state: [Line] = [], events: [Line] = []) throws -> Seen {
        if !state.isEmpty {
            try writeState(state)
            try settle()
        }
        if !events.isEmpty {
            try writeEvents(events)
            try settle()
        }
        return try look()
    }

    // MARK: - Records out

    package func look() throws -> Seen {
        try output.read(kafka)
        var seen = output.seen
        seen.pushes = apns.requests
        return seen
    }

    /// Waits until what came out holds what is wanted, and gives it.
    package func look(
        until what: String, within limit: Duration = .seconds(90), _ holds: (Seen) throws -> Bool
    ) throws -> Seen {
        var seen = Seen()
        var looked: (records: Int, pushes: Int)?
        try until(what, within: limit) {
            seen = try look()
            // Nothing has come since.
            if let looked, looked == (output.count, seen.pushes.count) { return false }
            looked = (output.count, seen.pushes.count)
            return try holds(seen)
        }
        return seen
    }

    /// All records of a topic, partition by partition.
    package func records(of topic: String) -> [LocalCluster.Record] {
        (0..<kafka.partitionCount(of: topic)).flatMap { kafka.records(topic, $0).map { LocalCluster.Record($0) } }
    }
}

/// `Stage.until`, of the stage that plays.
package func until(_ what: String, within limit: Duration = .seconds(90), _ holds: () throws -> Bool) throws {
    try Stage.here.until(what, within: limit, holds)
}

/// The calls of a test to Kafka, Redis and APNs.
extension Stage {
    // MARK: - Brokers

    /// The brokers take no records of workers until this ends.
    package func refuseRecords(_ isRefusing: Bool) {
        let topics = Configuration.Topics()
        for topic in topics.all where topic.name != topics.events && topic.name != topics.userState {
            for partition in 0..<settings.partitions { kafka.setLeaderless(topic.name, partition, isRefusing) }
        }
    }

    // MARK: - Redis

    /// What gateways and the IM backend write.
    package func redis(_ commands: [String]) throws {
        for command in commands {
            let answer = try redisText(command)
            if answer.hasPrefix("-") { throw SetupFault("redis-server: \(answer)") }
        }
    }

    /// The cluster of a stage with `usesRedisCluster`.
    package var cluster: StageCluster {
        get throws {
            guard let redisCluster else { throw SetupFault("there is no cluster") }
            return redisCluster
        }
    }

    /// The server's answer as it came, line ends as blanks.
    package func redisText(_ command: String) throws -> String {
        String(decoding: redisCluster?.inline(command) ?? redis.inline(command), as: UTF8.self)
            .split(whereSeparator: \.isNewline).joined(separator: " ")
    }

    // MARK: - APNs

    /// From now on APNs answers every push with this; nil: as usual.
    package func answerPushes(_ answer: ScenarioAnswer?) {
        let rules = answer.map { [ScenarioRule(ScenarioRule.Match(), .answer($0))] } ?? []
        apns.set(Scenario(rules: rules))
    }

    /// The simulator refuses every connection until `bringAPNsUp`. Returns its ledger so far, which ends here.
    package func takeAPNsDown() -> [LedgerEntry] {
        defer { apns.end() }
        return apns.takeRequests()
    }

    /// Listens again, with the first scenario and an empty ledger.
    package func bringAPNsUp() { apns.listen() }
}
