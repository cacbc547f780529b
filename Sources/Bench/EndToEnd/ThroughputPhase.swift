// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc
import LocalServers
import Processes
import Simulator
import Worker

/// The worker starts with a backlog. Measures its rate and its cost per push.
struct ThroughputPhase {
    struct Outcome: Sendable {
        var pushes = 0
        /// The divisor of the costs: pushes, or members if nothing is pushed.
        var recipients = 0
        /// Acceptances by the simulator in this phase. Must be equal.
        var acceptedByServer = 0
        /// From the last sample before the first record was read to the first with all settled.
        var seconds: Double = 0
        var workerNanos: UInt64 = 0
        var workerThreads: [(name: String, nanos: UInt64)] = []
        var redisNanos: UInt64 = 0
        /// Time for which redis-server was runnable but not running.
        var redisDelayNanos: UInt64 = 0
        var simulatorNanos: UInt64 = 0
        var peakBytes = 0
        /// Nil if not requested.
        var stages: StageCosts?

        var perSecond: Double { Double(recipients) / max(seconds, 1e-9) }
        var workerMicros: Double { micros(workerNanos) }
        func micros(_ nanos: UInt64) -> Double { Double(nanos) / 1000 / Double(max(1, recipients)) }
        func threadMicros(_ name: String) -> Double {
            micros(workerThreads.first { $0.name == name }?.nanos ?? 0)
        }
    }

    static func run(_ bench: BenchServers, round: Int) async throws -> Outcome {
        let records = bench.settings.records
        let isUnsent = bench.settings.isUnsent
        // Records before the measured ones.
        let earlier = isUnsent ? records : 0
        if !isUnsent { try fill(bench, series: "t\(round)") }
        // On a busy machine the worker pushes before the first sample.
        let acceptedBefore = await bench.cluster.simulator.counters.accepted
        let worker = try BenchWorker(configuration: try configuration(bench), timesStages: bench.settings.showsStages)
        if isUnsent {
            // A first pass without measuring: the measured pass finds its memory allocated, as in a worker that has run
            // for long.
            try fill(bench, series: "w\(round)")
            try await bench.wait(for: worker) { $0.settled >= earlier }
        }
        var start = try await BenchMark(bench, [worker])
        var startCount = try Self.count(bench, worker)
        if isUnsent { try fill(bench, series: "t\(round)") }
        while true {
            let next = try await BenchMark(bench, [worker])
            let nextCount = try Self.count(bench, worker)
            if try worker.metrics().consumed > earlier { break }
            (start, startCount) = (next, nextCount)
            try Task.checkCancellation()
            usleep(10_000)
        }
        let metrics = try await bench.wait(for: worker) {
            // Binds that are read again count as settled too.
            isUnsent
                ? $0.atRest >= bench.settings.recipients
                : $0.settled >= records && $0.decided >= bench.settings.recipients
        }
        let end = try await BenchMark(bench, [worker])
        var outcome = Outcome(
            from: start, to: end, recipients: bench.settings.recipients, pushes: metrics.accepted,
            peakBytes: worker.memory.peak)
        outcome.acceptedByServer = end.accepted - acceptedBefore
        if bench.settings.showsStages {
            outcome.stages = StageCosts(
                from: startCount, to: try Self.count(bench, worker), recipients: bench.settings.recipients,
                usage: outcome.usage)
        }
        // The unsent pushes must expire first.
        try await bench.wait(for: worker) { $0.settled >= earlier + records }
        try worker.stop()
        return outcome
    }

    private static func count(_ bench: BenchServers, _ worker: BenchWorker) throws -> StageCosts.Count {
        guard bench.settings.showsStages else { return StageCosts.Count() }
        return StageCosts.Count(try worker.metrics(), info: try bench.cluster.redis.command("INFO commandstats"))
    }

    private static func fill(_ bench: BenchServers, series: String) throws {
        let nowMs = Loop.wallMs()
        let series = "\(series)-\(nowMs)"
        try bench.fill(Configuration.Topics().events, bench.settings.records) { number in
            bench.event(
                number, series: series, atMs: nowMs,
                expireAtMs: bench.settings.isUnsent ? nowMs + unsentLifeMs(bench) : nil)
        }
    }

    /// Lifetime of pushes while APNs is away: a little longer than it takes to make them all.
    private static func unsentLifeMs(_ bench: BenchServers) -> Int64 {
        max(10_000, Int64(bench.settings.recipients) / 20)
    }

    /// Nothing listens at the APNs endpoint if nothing is to be sent.
    private static func configuration(_ bench: BenchServers) throws -> String {
        guard bench.settings.isUnsent else { return try bench.cluster.writeConfiguration() }
        return try bench.writeConfiguration(holding: bench.settings.recipients, apnsPort: try Ports.free())
    }
}

extension ThroughputPhase.Outcome {
    var usage: StageCosts.Usage {
        let shards = workerThreads.reduce(0.0) { $0 + ($1.name.hasPrefix("shard-") ? Double($1.nanos) : 0) }
        return StageCosts.Usage(
            shardNanos: shards, otherNanos: max(0, Double(workerNanos) - shards), redisNanos: Double(redisNanos),
            redisDelayNanos: Double(redisDelayNanos))
    }

    init(from start: BenchMark, to end: BenchMark, recipients: Int, pushes: Int, peakBytes: Int) {
        self.recipients = recipients
        self.pushes = pushes
        self.peakBytes = peakBytes
        acceptedByServer = end.accepted - start.accepted
        seconds = Double(end.nanos - start.nanos) / 1e9
        workerNanos = end.workerNanos &- start.workerNanos
        workerThreads = zip(start.workers, end.workers).flatMap { $1.sinceByName($0) }
        redisNanos = end.redis.cpuNanos &- start.redis.cpuNanos
        redisDelayNanos = end.redis.delayNanos &- start.redis.delayNanos
        simulatorNanos = end.simulatorNanos &- start.simulatorNanos
    }
}
