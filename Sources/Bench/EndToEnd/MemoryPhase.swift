import EventLoop
import LocalServers
import Processes
import Simulator
import Worker

/// APNs answers nothing: what the worker weighs with many pushes in hand.
struct MemoryPhase {
    struct Outcome: Sendable {
        /// Messages that nobody answers: in flight or queued, here or in Kafka.
        var waiting = 0
        /// Of them, those that the worker has in hand; it takes no more than it can keep moving.
        var held = 0
        var bytes = 0
        /// Ready, before the first record.
        var idleBytes = 0
    }

    static func run(_ bench: BenchServers) async throws -> Outcome {
        let wanted = bench.settings.held
        let worker = try await BenchWorker.start(configuration: try bench.writeConfiguration(holding: wanted))
        let idle = worker.memory.now
        await bench.cluster.simulator.setScenario(try Scenario(json: Array(Self.frozen.utf8)))
        let nowMs = Loop.wallMs()
        try bench.fill(Configuration.Topics().events, wanted) {
            bench.traffic.message($0, series: "m-\(nowMs)", atMs: nowMs)
        }
        var held = 0
        var looks = 0
        while held < wanted, looks < 600 {
            try await Task.sleep(for: .milliseconds(100), tolerance: .zero)
            let now = try Self.held(try worker.metrics())
            looks = now == held ? looks + 1 : 0
            held = now
            // The gauge is renewed once a second; five seconds without a change are the end of it.
            if looks > 50 { break }
        }
        let memory = worker.memory
        worker.kill()
        await bench.cluster.simulator.setScenario(Scenario())
        return Outcome(waiting: wanted, held: held, bytes: memory.now, idleBytes: idle)
    }

    private static let frozen = #"{"rules": [{"fault": {"kind": "freeze", "scope": "stream"}}]}"#

    private static func held(_ metrics: MetricsText) throws -> Int {
        Int(metrics.sum("carillon_pending_recipients"))
    }
}
