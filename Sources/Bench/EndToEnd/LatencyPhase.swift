// SPDX-License-Identifier: Apache-2.0
import EventLoop
import JSON
import Processes
import Worker

/// Messages arrive at an even pace. Measures the time of each from Kafka's timestamp to APNs' answer.
struct LatencyPhase {
    struct Outcome: Sendable {
        var pushes = 0
        /// Messages per second that the producer reached.
        var perSecond: Double = 0
        var p50Ms: Double?
        var p99Ms: Double?
        var p999Ms: Double?
        /// CPU per push at this pace, with small batches.
        var workerMicros: Double = 0
    }

    static func run(_ bench: BenchServers) async throws -> Outcome {
        let count = bench.settings.rate * bench.settings.seconds
        let worker = try await bench.startWorker()
        // The worker applies the present user state before its first event, which would distort the latency.
        try pace(bench, 1, from: Loop.monotonicNanos())
        _ = try await bench.wait(for: worker) { $0.settled >= 1 }
        let before = worker.usage
        let start = Loop.monotonicNanos()
        try pace(bench, count, from: start)
        let paced = Double(Loop.monotonicNanos() - start) / 1e9
        let metrics = try await bench.wait(for: worker) { $0.settled > count }
        let after = worker.usage
        // The status page is sampled once per interval; wait for the next sample.
        try await Task.sleep(for: .milliseconds(600), tolerance: .zero)
        let times = try worker.status()["end_to_end_ms"]
        try worker.stop()
        return Outcome(
            pushes: metrics.accepted - 1, perSecond: Double(count) / paced, p50Ms: times?["p50"]?.double,
            p99Ms: times?["p99"]?.double, p999Ms: times?["p999"]?.double,
            workerMicros: Double(after.cpuNanos &- before.cpuNanos) / 1000 / Double(max(1, metrics.accepted)))
    }

    private static func pace(_ bench: BenchServers, _ count: Int, from start: UInt64) throws {
        let series = "l-\(Loop.wallMs())"
        try bench.pace(from: start) {
            $0 < count ? bench.traffic.message($0, series: series, atMs: Loop.wallMs()) : nil
        }
    }
}
