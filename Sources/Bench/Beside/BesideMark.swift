// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc
import LocalServers
import Processes

/// Resources that workers and servers have used up to one moment. A phase is the difference of two marks.
struct BesideMark {
    /// Monotonic clock.
    let nanos: UInt64
    let workers: [ProcessUsage]
    let redis: ProcessUsage
    /// Usage of this process: simulator, broker and the producer of messages.
    let own: ProcessUsage
    let metrics: [MetricsText]
    /// Time per stage, summed over all workers' shards.
    private(set) var stageSeconds: [StageClock.Stage: Double] = [:]
    private(set) var turns = 0.0

    init(_ bench: BenchServers, _ workers: [BenchWorker]) throws {
        self.init(
            nanos: Loop.monotonicNanos(), workers: workers.map(\.usage),
            redis: ProcessUsage(pid: bench.cluster.redis.pid), own: ProcessUsage(pid: getpid()),
            metrics: bench.settings.showsStages ? try workers.map { try $0.metrics() } : [])
    }

    /// - Parameter metrics: the metrics of each worker; empty if stages are not timed.
    init(nanos: UInt64, workers: [ProcessUsage], redis: ProcessUsage, own: ProcessUsage, metrics: [MetricsText]) {
        self.nanos = nanos
        self.workers = workers
        self.redis = redis
        self.own = own
        self.metrics = metrics
        for text in metrics {
            turns += text.sum("carillon_turns_total")
            for stage in StageClock.Stage.work {
                stageSeconds[stage, default: 0] += text.sum(
                    "carillon_stage_seconds_total", "stage=\"\(stage.name)\"")
            }
        }
    }

    var workerNanos: UInt64 { workers.reduce(0) { $0 &+ $1.cpuNanos } }
}
