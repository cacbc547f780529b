import EventLoop
import LocalServers
import Processes
import Simulator

/// What a cluster's worker and servers have used up to one moment; a phase is the difference of two.
struct BenchMark {
    /// Monotonic clock.
    let nanos: UInt64
    let worker: ProcessUsage
    /// Of all servers together.
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
