// SPDX-License-Identifier: Apache-2.0
import EventLoop
import LocalServers
import Processes
import Worker

/// Nothing listens at APNs' address. Measures the worker's memory while it holds many pushes in its APNs client.
///
/// After `Sender.holdNanos` (10 s) pushes are parked in `carillon.parked`. The moment with the most held pushes counts.
struct MemoryPhase {
    struct Outcome: Sendable, Equatable {
        /// Messages with pushes that cannot be sent.
        var waiting = 0
        /// The largest number of pushes held at one time.
        var held = 0
        /// Resident memory at that moment.
        var bytes = 0
        /// Resident memory with partitions assigned, before the first record.
        var idleBytes = 0

        /// Added memory per held push; nil if none was held.
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
        // The gauge is updated once a second. A falling number means that pushes were parked.
        for _ in 0..<600 where outcome.held < wanted {
            try await Task.sleep(for: .milliseconds(100), tolerance: .zero)
            let held = Int(try worker.metrics().sum("carillon_pending_recipients"))
            if held < outcome.held { break }
            (outcome.held, outcome.bytes) = (held, worker.memory.now)
        }
        return outcome
    }
}
