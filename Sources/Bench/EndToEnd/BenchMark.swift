// SPDX-License-Identifier: Apache-2.0
import EventLoop
import LocalServers
import Processes
import Simulator

/// Resources that one cluster's worker and servers have used up to one moment. A phase is the difference of two marks.
struct BenchMark {
    /// Monotonic clock.
    let nanos: UInt64
    let worker: ProcessUsage
    /// Usage of all redis-servers together.
    let redis: ProcessUsage
    /// Processor time of the simulator's thread.
    let simulator: UInt64
    /// Pushes that the simulator has accepted.
    let accepted: Int

    init(_ bench: BenchServers, _ worker: BenchWorker) async {
        nanos = Loop.monotonicNanos()
        self.worker = worker.usage
        redis = ProcessUsage(threads: bench.cluster.redisServers.flatMap { ProcessUsage(pid: $0.pid).threads })
        simulator = bench.simulatorNanos
        accepted = await bench.cluster.simulator.counters.accepted
    }
}
