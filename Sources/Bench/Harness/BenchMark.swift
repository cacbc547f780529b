// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc
import LocalServers
import Processes
import Simulator

/// Resources that one cluster's workers and servers have used up to one moment. A phase is the difference of two marks.
struct BenchMark {
    /// Monotonic clock.
    var nanos: UInt64
    var workers: [ProcessUsage]
    /// Usage of all redis-servers together.
    var redis: ProcessUsage
    /// Usage of this process: simulator, broker and the producer of messages.
    var own: ProcessUsage
    /// Metrics of each worker; empty if stages are not timed.
    var metrics: [MetricsText] = []
    /// Processor time of the simulator's thread.
    var simulatorNanos: UInt64 = 0
    /// Pushes that the simulator has accepted.
    var accepted = 0

    var workerNanos: UInt64 { workers.reduce(0) { $0 &+ $1.cpuNanos } }

    /// Sum over all workers' shards.
    func sum(_ name: String) -> Double { metrics.reduce(0) { $0 + $1.sum(name) } }

    func seconds(_ stage: StageClock.Stage) -> Double {
        metrics.reduce(0) { $0 + $1.sum("carillon_stage_seconds_total", "stage=\"\(stage.name)\"") }
    }
}

extension BenchMark {
    init(_ bench: BenchServers, _ workers: [BenchWorker]) async throws {
        self.init(
            nanos: Loop.monotonicNanos(), workers: workers.map(\.usage),
            redis: ProcessUsage(threads: bench.cluster.redisServers.flatMap { ProcessUsage(pid: $0.pid).threads }),
            own: ProcessUsage(pid: getpid()),
            metrics: bench.settings.showsStages ? try workers.map { try $0.metrics() } : [])
        simulatorNanos = bench.simulatorNanos(of: own)
        accepted = await bench.cluster.simulator.counters.accepted
    }
}
