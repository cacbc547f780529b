// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import Glibc
import JSON
import Kafka
import LocalServers
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
    private let group = "g-giant"

    init(_ bench: BenchServers, members: Int) {
        self.bench = bench
        self.members = members
    }

    func run(_ say: (String) -> Void) async throws -> BesideReport {
        let settings = bench.settings
        say("binding \(settings.users) users …\n")
        _ = try await bench.bindUsers()
        try makeGroup()
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

    private func makeGroup() throws {
        for first in stride(from: 0, to: members, by: 500) {
            let uids = (first..<min(members, first + 500)).map { "\(bench.traffic.uid($0)) 0" }
            let answer = try bench.cluster.redis.command("HSET g:{im:\(group)} " + uids.joined(separator: " "))
            if answer.hasPrefix("-") { throw SetupFault("redis-server: \(answer)") }
        }
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
        let before = try BesideMark(bench, workers)
        let start = Loop.monotonicNanos()
        let written = try await pace(series, withGroup, from: start, until: &watch) + Self.warmUp
        try await watch.awaitAccepted(written + (withGroup ? members : 0))
        let seconds = Double((watch.drainedNanos ?? Loop.monotonicNanos()) - start) / 1e9
        let end = try BesideMark(bench, workers)
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
        let start = try BesideMark(bench, workers)
        try await Task.sleep(for: .seconds(1), tolerance: .zero)
        let end = try BesideMark(bench, workers)
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

    /// Writes each message at its own time until the phase ends.
    private func pace(
        _ series: String, _ withGroup: Bool, from start: UInt64, until watch: inout Watch
    ) async throws -> Int {
        let settings = bench.settings
        var kafka = bench.cluster.kafka
        kafka.options["linger.ms"] = "0"
        let writer = try KafkaTopicWriter(kafka, topic: Configuration.Topics().events)
        let series = "\(series)-\(Loop.wallMs())"
        let gap = 1e9 / Double(settings.rate)
        var number = 0
        var isGroupSent = false
        while true {
            try Task.checkCancellation()
            let now = Loop.monotonicNanos()
            let elapsed = Double(now - start) / 1e9
            if withGroup, !isGroupSent, elapsed >= Self.leadSeconds {
                isGroupSent = true
                try bench.write(groupMessage(series), to: writer)
            }
            if withGroup ? try watch.isDrained(now) : elapsed >= Double(settings.seconds) { break }
            let due = start &+ UInt64(Double(number) * gap)
            if now < due {
                usleep(useconds_t(min(20_000, (due - now) / 1000 + 1)))
                continue
            }
            try bench.write(message(number, series), to: writer)
            number += 1
        }
        guard writer.finish(), writer.written == number + (isGroupSent ? 1 : 0) else {
            throw SetupFault("the broker confirmed \(writer.written) records of \(number)")
        }
        return number
    }

    private func message(_ number: Int, _ series: String) -> (key: String, value: String) {
        bench.traffic.message(number, series: series, atMs: Loop.wallMs(), receivers: members..<bench.traffic.users)
    }

    private func groupMessage(_ series: String) -> (key: String, value: String) {
        let value = """
            {"v":1,"kind":"message","app":"im","event_id":"e-\(series)-g","sent_ms":\(Loop.wallMs()),\
            "msg_id":"m-\(series)-g","conv":{"id":"\(group)","type":"group"},"from":{"uid":"speaker","nick":"Ada"},\
            "push":{"content":"Tomorrow at nine the office opens later, by the side door."}}
            """
        return (group, value)
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

        /// Waits until `wanted` pushes were accepted. A minute without any change is a fault.
        func awaitAccepted(_ wanted: Int) async throws {
            var last = -1
            var idle = 0
            while true {
                let now = try accepted()
                if now >= wanted { return }
                idle = now == last ? idle + 1 : 0
                last = now
                if idle > 600 { throw SetupFault("the workers make no progress at \(now) pushes") }
                try await Task.sleep(for: .milliseconds(100), tolerance: .zero)
            }
        }
    }
}
