import APNs
import EventLoop
import Kafka
import PushCore
import Redis
import Telemetry

/// A running shard: the pipeline with the parts it is made of. Loop-bound.
final class ShardRuntime: PipelineOwner {
    private let index: Int
    private let loop: Loop
    private let configuration: Configuration
    private let beat: Heartbeat
    private let onFatal: @Sendable () -> Void
    private let pipeline: Pipeline
    private var drainTimer: LoopTimer?
    private var drainDeadline: UInt64 = 0
    private var whenDrained: ((Bool) -> Void)?
    private var isClosing = false

    private static let drainLookNanos: UInt64 = 20_000_000
    private static let closeNanos: UInt64 = 5_000_000_000

    init(
        index: Int, loop: Loop, configuration: Configuration, registry: MetricsRegistry, log: Log, beat: Heartbeat,
        onFatal: @escaping @Sendable () -> Void
    ) throws(StartFault) {
        self.index = index
        self.loop = loop
        self.configuration = configuration
        self.beat = beat
        self.onFatal = onFatal
        let parts = ShardParts(
            index: index, loop: loop, configuration: configuration, registry: registry, log: log)
        pipeline = Pipeline(try parts.make())
        pipeline.owner = self
        do throws(LoopFault) {
            try pipeline.start()
        } catch {
            throw StartFault(error.description)
        }
        drainTimer = LoopTimer(loop: loop) { [unowned self] in lookWhetherDrained() }
    }

    func status() -> ShardStatus {
        var clients: [ShardStatus.Client] = []
        for app in pipeline.apps.values.sorted(by: { $0.policy.id < $1.policy.id }) {
            for client in app.clients {
                let counts = client.apns.connectionCounts
                clients.append(
                    ShardStatus.Client(
                        app: app.policy.id, host: client.apns.endpoint.host, isUsable: client.apns.isUsable,
                        pausedBecause: client.apns.credentialPause?.label, connections: counts.ready,
                        inFlight: client.apns.inFlight, queued: client.apns.queued))
            }
        }
        return ShardStatus(
            index: index, assignedPartitions: pipeline.consumer.assignment.count,
            pausedPartitions: pipeline.consumer.paused.count, isRedisReady: pipeline.store.client.isReady,
            pendingRecords: pipeline.pendingCount, pendingRecipients: pipeline.recipients.count,
            settledRecords: pipeline.metrics.recordsSettled.value, clients: clients,
            endToEnd: pipeline.metrics.endToEnd)
    }

    // MARK: - The end

    /// Finishes what is in hand and leaves the group; `done(false)` when `seconds` passed first.
    func drain(seconds: Double, _ done: @escaping (Bool) -> Void) {
        whenDrained = done
        drainDeadline = loop.nowNanos &+ UInt64(max(0, seconds) * 1_000_000_000)
        pipeline.stopIntake()
        lookWhetherDrained()
    }

    private func lookWhetherDrained() {
        let isOver = loop.nowNanos >= drainDeadline
        if isClosing {
            if isOver { finishDrain(false) } else { drainTimer?.arm(afterNanos: Self.drainLookNanos) }
            return
        }
        if pipeline.pendingCount == 0 || isOver {
            isClosing = true
            drainDeadline = loop.nowNanos &+ Self.closeNanos
            drainTimer?.arm(afterNanos: Self.drainLookNanos)
            pipeline.close()
        } else {
            drainTimer?.arm(afterNanos: Self.drainLookNanos)
        }
    }

    private func finishDrain(_ isClosed: Bool) {
        guard let done = whenDrained else { return }
        whenDrained = nil
        drainTimer?.cancel()
        let isSettled = pipeline.pendingCount == 0
        let isFlushed = pipeline.outbox?.flush(timeoutMs: 2_000) ?? true
        done(isClosed && isSettled && isFlushed)
    }

    /// Lets go of every connection.
    func shut() {
        pipeline.shut()
    }

    // MARK: - What the pipeline tells

    func pipelineDidTick() { beat.mark() }

    func pipelineDidClose() { finishDrain(true) }

    func pipelineDidMeetFatalError() { onFatal() }
}
