// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import JSON
import Processes
import Worker

/// Measures one-to-one messages at an even pace, first alone, then while one message to a giant group drains: the added
/// latency, and the memory that the group takes.
struct BesideBench {
    /// Receivers of the one-to-one messages. None is a member of the group.
    static let others = 10_000
    /// Time for which one-to-one messages flow before the group's message arrives.
    private static let leadSeconds = 1.0
    /// Messages that open the connections. They are too few to affect any percentile up to 99.9.
    private static let warmUp = 2

    let bench: BenchServers
    let members: Int

    init(_ bench: BenchServers, members: Int) {
        self.bench = bench
        self.members = members
    }

    func run(_ say: (TerminalText) -> Void) async throws -> BesideReport {
        let settings = bench.settings
        say("binding \(settings.users) users …\n")
        _ = try await bench.bindUsers()
        try bench.makeGroups()
        var report = BesideReport(members: members, rate: settings.rate)
        for round in 1...settings.rounds {
            for workers in settings.workers {
                let head = "round \(round) of \(settings.rounds), \(counted(workers, "worker"))"
                say("\(head): \(settings.rate) a second alone …\n")
                let alone = try await play(series: "a\(round)", workers, withGroup: false)
                say("\(head): during a group of \(members) …\n")
                let beside = try await play(series: "b\(round)", workers, withGroup: true)
                report.rounds.append(BesideReport.Round(workers: workers, alone: alone, beside: beside))
            }
        }
        return report
    }

    // MARK: A phase

    /// Starts new workers, so that their lane figures cover this phase only.
    private func play(series: String, _ count: Int, withGroup: Bool) async throws -> BesideReport.Phase {
        var workers: [BenchWorker] = []
        for _ in 0..<count { workers.append(try await bench.startWorker(timesStages: bench.settings.showsStages)) }
        try await awaitShares(workers)
        let idleShare = try await idleShare(workers)
        var watch = Watch(workers, members: withGroup ? members : 0)
        let idle = workers.map(\.memory.now)
        try bench.fill(Configuration.Topics().events, Self.warmUp) { message($0, "w-\(series)-\(Loop.wallMs())") }
        try await watch.awaitAccepted(Self.warmUp)
        let before = try await BenchMark(bench, workers)
        let start = Loop.monotonicNanos()
        let written = try pace(series, withGroup, from: start, until: &watch) + Self.warmUp
        try await watch.awaitAccepted(written + (withGroup ? members : 0))
        let seconds = Double((watch.drainedNanos ?? Loop.monotonicNanos()) - start) / 1e9
        let end = try await BenchMark(bench, workers)
        // The status page is sampled once per interval; wait for the next sample.
        try await Task.sleep(for: .milliseconds(600), tolerance: .zero)
        var phase = BesideReport.Phase(pushes: try watch.accepted(), seconds: seconds)
        phase.idleShare = idleShare
        phase.drainSeconds = withGroup ? seconds - Self.leadSeconds : nil
        phase.workerMicros = Double(end.workerNanos &- before.workerNanos) / 1000 / Double(max(1, phase.pushes))
        if bench.settings.showsStages { phase.stages = BesideStages(from: before, to: end, pushes: phase.pushes) }
        phase.growth = zip(workers, idle).map { $0.memory.peak - $1 }.max() ?? 0
        for worker in workers { try phase.take(worker.status()["end_to_end_ms"]?["lanes"]) }
        phase.isComplete = phase.pushes == written + (withGroup ? members : 0)
        for worker in workers { try worker.stop() }
        return phase
    }

    /// The part of a processor that all workers use while idle: each Kafka client polls a hundred times a second
    /// (`fetch.wait.max.ms` of this cluster).
    private func idleShare(_ workers: [BenchWorker]) async throws -> Double {
        let start = try await BenchMark(bench, workers)
        try await Task.sleep(for: .seconds(1), tolerance: .zero)
        let end = try await BenchMark(bench, workers)
        return Double(end.workerNanos &- start.workerNanos) / Double(end.nanos &- start.nanos)
    }

    /// Waits until every worker reads some partitions of events and of user state. A worker is ready with its first
    /// partition.
    private func awaitShares(_ workers: [BenchWorker]) async throws {
        for _ in 0..<1200 {
            let shares = try workers.map { Int(try $0.metrics().sum("carillon_kafka_assigned_partitions")) }
            if !shares.contains(0), shares.reduce(0, +) == 2 * bench.partitions { return }
            try await Task.sleep(for: .milliseconds(100), tolerance: .zero)
        }
        throw SetupFault("the workers did not share the partitions")
    }

    /// Writes messages until the phase ends.
    ///
    /// - Returns: the number of one-to-one messages.
    private func pace(
        _ series: String, _ withGroup: Bool, from start: UInt64, until watch: inout Watch
    ) throws -> Int {
        let series = "\(series)-\(Loop.wallMs())"
        // The number of the group's message among the records.
        var groups: Int?
        let written = try bench.pace(from: start) { number in
            let now = Loop.monotonicNanos()
            let elapsed = Double(now - start) / 1e9
            guard withGroup ? !(try watch.isDrained(now)) : elapsed < Double(bench.settings.seconds) else { return nil }
            if withGroup, groups == nil, elapsed >= Self.leadSeconds { groups = number }
            return number == groups ? groupMessage(series) : message(number, series)
        }
        return written - (groups == nil ? 0 : 1)
    }

    private func message(_ number: Int, _ series: String) -> (key: String, value: String) {
        bench.traffic.message(number, series: series, atMs: Loop.wallMs(), receivers: members..<bench.traffic.users)
    }

    private func groupMessage(_ series: String) -> (key: String, value: String) {
        bench.traffic.groupMessage(0, group: members, series: series + "-g", atMs: Loop.wallMs())
    }

    /// The workers' progress in a phase.
    private struct Watch {
        private let workers: [BenchWorker]
        private let members: Int
        private var lookedNanos: UInt64 = 0
        private(set) var drainedNanos: UInt64?
        private static let everyNanos: UInt64 = 100_000_000

        init(_ workers: [BenchWorker], members: Int) {
            self.workers = workers
            self.members = members
        }

        /// - Returns: whether all pushes of the group were sent at the last look.
        mutating func isDrained(_ now: UInt64) throws -> Bool {
            guard drainedNanos == nil, now - lookedNanos >= Self.everyNanos else { return drainedNanos != nil }
            lookedNanos = now
            let done = try workers.reduce(0.0) { sum, worker in
                sum + (try worker.metrics().sum("carillon_event_end_to_end_seconds_count", "lane=\"bulk\""))
                    + (try worker.metrics().sum("carillon_event_end_to_end_seconds_count", "lane=\"group\""))
            }
            if Int(done) >= members { drainedNanos = Loop.monotonicNanos() }
            return drainedNanos != nil
        }

        func accepted() throws -> Int { try workers.reduce(0) { $0 + (try $1.metrics().accepted) } }

        /// Waits until `wanted` pushes were accepted.
        func awaitAccepted(_ wanted: Int) async throws {
            var progress = BenchProgress()
            while true {
                let now = try accepted()
                if now >= wanted { return }
                try progress.note(now)
                try await Task.sleep(for: .milliseconds(100), tolerance: .zero)
            }
        }
    }
}
