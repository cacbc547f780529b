// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Kafka
import Redis
import Synchronization
import Telemetry

/// One thread with one loop and its own resources: Kafka membership, Redis link, APNs connections.
///
/// The actor's executor is the loop, so the compiler's checks match the threads. Shards share only the metrics
/// registry, the log, and `ProcessShared`.
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

    /// Creates the thread. Nothing is connected before `start`.
    ///
    /// - Parameter shared: data shared with the process's other shards.
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

    /// Connects and begins to read.
    ///
    /// Throws for permanent faults: an unusable credential, an option that librdkafka does not know.
    public func start(onFatal: @escaping @Sendable (FatalCause) -> Void) throws(StartFault) {
        runtime = try ShardRuntime(
            index: index, loop: loop, configuration: configuration, registry: registry, log: log, beat: beat,
            shared: shared, onFatal: onFatal)
        shared.occupancy?.join(
            shard: index, loop: loop,
            didVacate: { [weak self] cells in self?.assumeIsolated { $0.runtime?.didVacate(cells) } },
            didRelease: { [weak self] device in self?.assumeIsolated { $0.runtime?.didRelease(device) } })
    }

    /// Applies a reload's changes.
    func apply(_ configuration: Configuration) throws(StartFault) { try runtime?.apply(configuration) }

    /// The present state of the shard.
    public func status() -> ShardStatus? { runtime?.status() }

    /// Writes the process's note for the operator's pages of all workers; nil: it ends.
    func tellFleet(_ id: String, _ note: [UInt8]?, readsAll: Bool) {
        runtime?.tellFleet(id, note, readsAll: readsAll)
    }

    /// Stops reading, finishes open work and commits it. Returns false if `seconds` passed first; the next owner then
    /// reads unsettled records again.
    public func settle(seconds: Double) async -> Bool {
        guard let runtime else { return true }
        return await withCheckedContinuation { continuation in
            runtime.settle(seconds: seconds) { continuation.resume(returning: $0) }
        }
    }

    /// Leaves the group and closes every connection, after `settle`. Returns false if the broker did not answer in
    /// time.
    ///
    /// - Parameter endNanos: when it must be over, monotonic; nil: within seconds.
    public func leave(untilNanos endNanos: UInt64? = nil) async -> Bool {
        guard let runtime else { return true }
        let isDone = await withCheckedContinuation { continuation in
            runtime.leave(untilNanos: endNanos) { continuation.resume(returning: $0) }
        }
        shared.occupancy?.part(shard: index)
        runtime.shut()
        self.runtime = nil
        return isDone
    }
}

/// The time of a loop's last turn, readable from any thread.
package final class Heartbeat: Sendable {
    private let nowNanos: @Sendable () -> UInt64
    private let nanos: Atomic<UInt64>

    /// - Parameter nowNanos: the monotonic clock.
    package init(nowNanos: @escaping @Sendable () -> UInt64 = Loop.monotonicNanos) {
        self.nowNanos = nowNanos
        nanos = Atomic(nowNanos())
    }

    func mark() { nanos.store(nowNanos(), ordering: .relaxed) }

    var age: Double {
        let now = nowNanos()
        let last = nanos.load(ordering: .relaxed)
        return now > last ? Double(now - last) / 1_000_000_000 : 0
    }
}

/// The reason why a process cannot start.
public struct StartFault: Error, Sendable, CustomStringConvertible {
    public enum Kind: Sendable {
        /// Permanent: an unusable credential, an option that librdkafka does not know.
        case lasting
        /// Temporary: a port is taken, no descriptor is free.
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
