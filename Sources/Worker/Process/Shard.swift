import EventLoop
import Kafka
import Redis
import Synchronization
import Telemetry

/// One thread with one loop, and everything of its own on it: Kafka membership, Redis link, APNs connections.
///
/// The actor's executor is the loop, so what the compiler checks is also where the code runs. Shards share nothing but
/// the metrics registry, the log, and `ProcessShared`.
public actor Shard {
    public nonisolated let index: Int
    private nonisolated let loop: Loop
    private let configuration: Configuration
    private let registry: MetricsRegistry
    private let log: Log
    private let shared: ProcessShared
    private var runtime: ShardRuntime?
    nonisolated let beat: Heartbeat

    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Makes the thread; nothing is connected before `start`.
    ///
    /// - Parameter shared: what it has in common with the process's other shards.
    init(
        index: Int, configuration: Configuration, registry: MetricsRegistry, log: Log, shared: ProcessShared
    ) throws(LoopFault) {
        self.index = index
        self.configuration = configuration
        self.registry = registry
        self.shared = shared
        self.log = log.with(["shard": .int(index)])
        beat = Heartbeat()
        loop = try Loop(name: "shard-\(index)")
        loop.start()
    }

    /// Connects to everything and begins to read.
    ///
    /// Throws what no waiting can mend: a credential that cannot be used, an option that librdkafka does not know.
    public func start(onFatal: @escaping @Sendable () -> Void) throws(StartFault) {
        runtime = try ShardRuntime(
            index: index, loop: loop, configuration: configuration, registry: registry, log: log, beat: beat,
            shared: shared, onFatal: onFatal)
        shared.occupancy?.join(shard: index, loop: loop) { [weak self] cells in
            self?.assumeIsolated { $0.runtime?.didVacate(cells) }
        }
    }

    /// Takes over what a reload may change.
    func apply(_ configuration: Configuration) throws(StartFault) { try runtime?.apply(configuration) }

    /// What the shard has and lacks just now.
    public func status() -> ShardStatus? { runtime?.status() }

    /// Reads no more, finishes what is in hand and commits it. False: `seconds` passed first, and what was not settled
    /// comes again to the next owner.
    public func settle(seconds: Double) async -> Bool {
        guard let runtime else { return true }
        return await withCheckedContinuation { continuation in
            runtime.settle(seconds: seconds) { continuation.resume(returning: $0) }
        }
    }

    /// Leaves the group and lets go of every connection; after `settle`. False: the broker did not answer in time.
    ///
    /// - Parameter endNanos: when it must be over, monotonic; nil: within seconds.
    public func leave(untilNanos endNanos: UInt64? = nil) async -> Bool {
        guard let runtime else { return true }
        let isWell = await withCheckedContinuation { continuation in
            runtime.leave(untilNanos: endNanos) { continuation.resume(returning: $0) }
        }
        shared.occupancy?.part(shard: index)
        runtime.shut()
        self.runtime = nil
        return isWell
    }
}

/// When a loop last turned, readable from any thread.
final class Heartbeat: Sendable {
    private let nanos = Atomic<UInt64>(Loop.monotonicNanos())

    func mark() { nanos.store(Loop.monotonicNanos(), ordering: .relaxed) }

    var age: Double {
        let now = Loop.monotonicNanos()
        let last = nanos.load(ordering: .relaxed)
        return now > last ? Double(now - last) / 1_000_000_000 : 0
    }
}

/// What keeps a process from starting.
public struct StartFault: Error, Sendable, CustomStringConvertible {
    public enum Kind: Sendable {
        /// No waiting can mend it: a credential that cannot be used, an option that librdkafka does not know.
        case lasting
        /// Another try may find it gone: a port that is taken, no descriptor left.
        case passing
    }

    public let kind: Kind
    public let description: String

    init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }
}

extension StartFault {
    init(_ description: String) { self.init(.lasting, description) }

    init(_ fault: LoopFault, at place: String? = nil) {
        self.init(
            fault.reason == .addressInUse || fault.reason == .resources ? .passing : .lasting,
            place.map { "\($0): \(fault.description)" } ?? fault.description)
    }
}
