import EventLoop
import LocalServers
import Processes
import Worker

/// Nobody is at APNs' address: what the worker weighs with many pushes in hand, each made and with the APNs client.
///
/// After `Sender.holdNanos` (10 s) they are put off to `carillon.parked`: what counts is the moment with the most in hand.
struct MemoryPhase {
    struct Outcome: Sendable, Equatable {
        /// Messages whose pushes cannot go.
        var waiting = 0
        /// The most of them that the worker had in hand at once.
        var held = 0
        /// Its resident memory then.
        var bytes = 0
        /// With its partitions, before the first record.
        var idleBytes = 0

        /// What each one in hand added; nil: there was none.
        var bytesEach: Double? { held > 0 ? Double(bytes - idleBytes) / Double(held) : nil }
    }

    static func run(_ bench: BenchServers) async throws -> Outcome {
        let wanted = bench.settings.held
        let configuration = try bench.writeConfiguration(holding: wanted, apnsPort: try Ports.free())
        let worker = try BenchWorker(configuration: configuration)
        defer { worker.kill() }
        try await bench.wait(for: worker) { $0.sum("carillon_kafka_assigned_partitions") > 0 }
        var outcome = Outcome(waiting: wanted, idleBytes: worker.memory.now)
        let nowMs = Loop.wallMs()
        try bench.fill(Configuration.Topics().events, wanted) {
            bench.traffic.message($0, series: "m-\(nowMs)", atMs: nowMs)
        }
        // The gauge is renewed once a second. Fewer than there were: they are put off by now.
        for _ in 0..<600 where outcome.held < wanted {
            try await Task.sleep(for: .milliseconds(100), tolerance: .zero)
            let held = Int(try worker.metrics().sum("carillon_pending_recipients"))
            if held < outcome.held { break }
            (outcome.held, outcome.bytes) = (held, worker.memory.now)
        }
        return outcome
    }
}
