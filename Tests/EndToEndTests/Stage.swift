// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc
import JSON
import Kafka
import LocalServers
import Processes
import Simulator
import StageWords
import Support
import Telemetry
import Worker

/// A world with a worker in it, and what a test does there: write records, wait for their settling, look at the outcome.
///
/// Cases share a stage where they can: each has users, conversations and messages of its own.
actor Stage {
    nonisolated let world: LocalCluster
    private var workers: [WorkerProcess] = []
    private var produced = 0
    /// Of `produced`, the changes of user state.
    private var producedStates = 0
    private let logFile: String
    private nonisolated let logs: Logs

    /// The stage of the suite that runs (`InWorld`).
    @TaskLocal static var current: Stage?

    static var here: Stage {
        get throws {
            guard let current else { throw SetupFault("the suite has no world: it lacks the trait .inWorld") }
            return current
        }
    }

    init(_ settings: LocalCluster.Settings = LocalCluster.Settings()) async throws {
        var settings = settings
        // A dozen worlds that ask as often as can be would leave the machine no time for those that have work.
        settings.fetchWaitMs = max(settings.fetchWaitMs, 50)
        world = try await LocalCluster(settings)
        logs = Logs(world)
        logFile = world.folder.file("worker.log")
    }

    /// Makes a stage with a ready worker, runs a closure on it and ends it, whichever way the closure ended.
    static func with(
        _ settings: LocalCluster.Settings = LocalCluster.Settings(),
        _ body: (Stage) async throws -> Void
    ) async throws {
        let stage = try await Stage(settings)
        do {
            try await stage.startWorker()
            try await body(stage)
        } catch {
            await stage.tellState()
            await stage.close()
            throw error
        }
        await stage.close()
    }

    /// Prints how the workers stand and the end of their log: for who reads a failure later.
    private func tellState() async {
        for worker in workers {
            for shard in await worker.status().shards { print("shard \(shard)") }
        }
        let lines = ((try? logText()) ?? "").split(separator: "\n")
        print(lines.suffix(60).joined(separator: "\n"))
    }

    func close() async { await world.close() }

    // MARK: - Workers

    @discardableResult
    func startWorker(
        group: String? = nil, wallClock: WallClock = WallClock(), waits: Bool = true
    ) async throws -> WorkerProcess {
        let worker = try await world.startWorker(
            log: Log(level: .debug, fd: log()), group: group, wallClock: wallClock)
        workers.append(worker)
        if waits { try await world.awaitGroup(of: group == nil ? workers : [worker]) }
        return worker
    }

    /// Drains one worker.
    @discardableResult
    func stop(_ worker: WorkerProcess) async -> Bool {
        workers.removeAll { $0 === worker }
        return await worker.stop()
    }

    /// Where every worker of the stage logs to, at level debug.
    private func log() -> Int32 { open(logFile, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600) }

    /// The workers' log lines so far.
    nonisolated func logText() throws -> String {
        String(decoding: try readFile(world.folder.file("worker.log")), as: UTF8.self)
    }

    var worker: WorkerProcess {
        get throws {
            guard let worker = workers.last else { throw SetupFault("no worker runs") }
            return worker
        }
    }

    /// What the operator sees at a path.
    func page(_ path: String) async throws -> HTTPClient.Answer {
        try await page(path, of: try worker)
    }

    func page(_ path: String, of worker: WorkerProcess) async throws -> HTTPClient.Answer {
        let port = await worker.operatorPort
        return try await offPool { try HTTPClient.get(port: port, path) }
    }

    /// The sum of a metric's series over all workers of the stage.
    func metric(_ name: String, _ label: String = "") async throws -> Int {
        var sum = 0.0
        for worker in workers { sum += MetricsText(try await page("/metrics", of: worker).text).sum(name, label) }
        return Int(sum)
    }

    // MARK: - Records in

    func write(_ lines: [Line], to topic: String) async throws {
        let records = lines.map { LocalCluster.Record(key: $0.key, value: $0.value, timestampMs: $0.timestampMs) }
        try await world.produce(records, to: topic)
        produced += lines.count
        if topic == Configuration.Topics().userState { producedStates += lines.count }
    }

    func writeState(_ lines: [Line]) async throws { try await write(lines, to: Configuration.Topics().userState) }
    func writeEvents(_ lines: [Line]) async throws { try await write(lines, to: Configuration.Topics().events) }

    /// Waits until everything written so far is settled.
    func settle() async throws {
        let wanted = produced
        try await until("\(wanted) records are settled") { [world, workers] in
            if await world.progress(of: workers, isSettled: true) < wanted { return false }
            // What is owed to Redis is settled, and in hand still.
            for worker in workers where await worker.status().shards.contains(where: { $0.pendingRecords > 0 }) {
                return false
            }
            let chunks = try await (metric("carillon_chunks_total"), metric("carillon_chunks_settled_total"))
            // What was put off has come back, and all chunks of large groups are done.
            if chunks.0 > chunks.1 { return false }
            return try await metric("carillon_parked_total") <= metric("carillon_parked_settled_total")
        }
    }

    /// Waits until every change of user state written so far is settled, whatever events wait meanwhile.
    func settleState() async throws {
        let wanted = producedStates
        try await until("\(wanted) changes of user state are settled") { [world, workers] in
            let topic = Configuration.Topics().userState
            return await world.progress(of: workers, isSettled: true, topics: [topic]) >= wanted
        }
    }

    /// Changes of user state, settled before the events are written; then the events, settled too.
    @discardableResult
    func play(state: [Line] = [], events: [Line] = []) async throws -> Seen {
        if !state.isEmpty {
            try await writeState(state)
            try await settle()
        }
        if !events.isEmpty {
            try await writeEvents(events)
            try await settle()
        }
        return try await look()
    }

    /// What gateways and the IM backend write.
    nonisolated func redis(_ commands: [String]) async throws {
        let server = world.redis
        try await offPool {
            for command in commands {
                let answer = try server.command(command)
                if answer.hasPrefix("-") { throw SetupFault("redis-server: \(answer)") }
            }
        }
    }

    // MARK: - Records out

    func look() async throws -> Seen {
        let logs = logs
        async let results = offPool { try logs.results.values() }
        async let deliveries = offPool { try logs.deliveries.values() }
        async let feedback = offPool { try logs.feedback.values() }
        async let sms = offPool { try logs.sms.values() }
        async let letters = offPool { try logs.letters.records() }
        let all = try await results
        var seen = Seen()
        seen.results = all.filter { $0["verdict"]?.string != "parked" }
        seen.parked = all.filter { $0["verdict"]?.string == "parked" }
        seen.deliveries = try await deliveries
        seen.feedback = try await feedback
        seen.sms = try await sms
        seen.letters = try await letters
        seen.pushes = await world.simulator.entries
        return seen
    }

    /// What came out on each topic.
    private struct Logs: Sendable {
        let results, deliveries, feedback, sms, letters: TopicLog

        init(_ world: LocalCluster) {
            let topics = Configuration.Topics()
            results = TopicLog(world, topic: topics.results)
            deliveries = TopicLog(world, topic: topics.deliveries)
            feedback = TopicLog(world, topic: topics.feedback)
            sms = TopicLog(world, topic: topics.sms)
            letters = TopicLog(world, topic: topics.deadLetter)
        }
    }
}

/// Looks again and again until it holds; throws what was waited for when it does not come. On a machine so busy that a look
/// takes seconds, it looks a hundred times nevertheless. What comes soon is seen soon; the longer it takes, the seldomer it looks.
func until(_ what: String, _ holds: () async throws -> Bool) async throws {
    let clock = ContinuousClock()
    let deadline = clock.now + Patience.duration
    var looks = 0
    while clock.now < deadline || looks < 100 {
        if try await holds() { return }
        looks += 1
        try await Task.sleep(for: .milliseconds(min(20 + 2 * looks, 100)), tolerance: .zero)
    }
    throw SetupFault("waited \(Patience.duration) in vain until \(what)")
}

/// All bytes of a file.
func readFile(_ path: String) throws -> [UInt8] {
    guard let stream = fopen(path, "r") else { throw SetupFault("cannot read \(path)") }
    defer { fclose(stream) }
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = fread(&block, 1, block.count, stream), count > 0 { bytes += block[..<count] }
    return bytes
}

extension Stage {
    /// Makes a stage without a worker, runs a closure on it and ends it, whichever way the closure ended.
    static func bare(
        _ settings: LocalCluster.Settings = LocalCluster.Settings(), _ body: (Stage) async throws -> Void
    ) async throws {
        let stage = try await Stage(settings)
        do {
            try await body(stage)
        } catch {
            stage.world.redis.thaw()
            await stage.close()
            throw error
        }
        await stage.close()
    }

    /// Waits for the wanted records, and returns them.
    nonisolated func look(until what: String, _ holds: (Seen) throws -> Bool) async throws -> Seen {
        var seen = Seen()
        try await until(what) {
            seen = try await look()
            return try holds(seen)
        }
        return seen
    }
}
