// SPDX-License-Identifier: Apache-2.0
public import EventLoop
import Kafka
import PushCore
public import Telemetry

/// The whole worker: its shards, the operator's pages, and an orderly end.
///
/// It has its own loop, so that a busy shard never delays an operator: pages use a snapshot taken a few times a second.
public actor WorkerProcess {
    private nonisolated let loop: Loop
    /// As started, plus the changes applied by reloads.
    var configuration: Configuration
    private let timesStages: Bool
    private let wallClock: WallClock
    /// `drain_s`, which a reload may change; any thread reads it.
    public nonisolated let drainTime: DrainTime
    /// The effective values, with which a reload compares.
    var running: EffectiveConfiguration.Values
    let reloads: ReloadMetrics
    /// As the Kafka clients have them.
    let kafkaSecrets: KafkaSecrets
    let log: Log
    private let registry: MetricsRegistry
    private(set) var shards: [Shard] = []
    let view: ProcessView
    private var sampler: Task<Void, Never>?

    private static let sampleInterval = Duration.milliseconds(250)

    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - effective: the configuration's values, if `reload` may be called.
    ///   - wallClock: a test moves it.
    ///   - timesStages: shards measure the time of each stage, and the allocator counts its calls.
    public init(
        configuration: Configuration, effective: EffectiveConfiguration? = nil, log: Log,
        registry: MetricsRegistry = MetricsRegistry(), timesStages: Bool = false, wallClock: WallClock = WallClock()
    ) throws(LoopFault) {
        self.configuration = configuration
        self.timesStages = timesStages
        self.wallClock = wallClock
        running = effective?.values ?? EffectiveConfiguration.Values()
        drainTime = DrainTime(seconds: configuration.drainSeconds)
        reloads = ReloadMetrics(registry)
        kafkaSecrets = KafkaSecrets(configuration.kafka)
        if effective != nil { reloads.running(running.hash) }
        Self.report(configuration.warnings, to: log)
        self.log = log
        self.registry = registry
        loop = try Loop(name: "operator")
        view = ProcessView(loop: loop, configuration: configuration, log: log, registry: registry)
        if timesStages, Allocator.requests != nil {
            registry.reading(
                "carillon_allocations_total", help: "Memory allocations of the process.", kind: .counter
            ) { Double(Allocator.requests ?? 0) }
        }
        loop.start()
    }

    /// Starts everything. Absent servers (Redis, Kafka, APNs) are waited for and reported in `/readyz`. A fault that
    /// prevents the start is thrown, after everything was closed.
    ///
    /// - Parameter onFatal: the process should exit: with 70 if the Kafka client has failed permanently, with 78 if workers of another
    ///   group use the same Redis.
    public func start(onFatal: @escaping @Sendable (FatalCause) -> Void = { _ in }) async throws(StartFault) {
        // First, so that a taken port is reported before anything connects.
        try openPages()
        do throws(StartFault) {
            try await startShards(onFatal: onFatal)
        } catch {
            // Objects of a loop are released on it, before the process ends.
            _ = await ofEach { await $0.leave() }
            view.close()
            throw error
        }
        sampler = Task { [weak self] in
            while !Task.isCancelled {
                await self?.sample()
                try? await Task.sleep(for: Self.sampleInterval, tolerance: .zero)
            }
        }
        log.info(
            "started",
            [
                "shards": .int(configuration.shardCount),
                "http": .string("http://\(configuration.http.host):\(operatorPort)/"),
            ])
    }

    private func openPages() throws(StartFault) {
        try view.open(
            configuration.http, oldestTurn: { [unowned self] in assumeIsolated { $0.oldestTurn } },
            ask: { [unowned self] question in assumeIsolated { $0.ask(question) } },
            askStatistics: { [unowned self] question in assumeIsolated { $0.askStatistics(question) } })
    }

    /// On a separate thread, next to the shards.
    private func ask(_ question: TraceQuestion) {
        let desk = TraceDesk(configuration: configuration)
        Task {
            let found = await Task.detached { await desk.answer(question) }.value
            view.didAnswer(found)
        }
    }

    private func askStatistics(_ question: StatisticsQuestion) {
        let desk = StatisticsDesk(configuration: configuration)
        Task {
            let found = await Task.detached { await desk.answer(question) }.value
            view.didAnswer(found)
        }
    }

    private func startShards(onFatal: @escaping @Sendable (FatalCause) -> Void) async throws(StartFault) {
        let count = configuration.shardCount
        let shared = ProcessShared(shardCount: count, timesStages: timesStages, wallClock: wallClock)
        for index in 0..<count {
            let shard: Shard
            do throws(LoopFault) {
                shard = try Shard(
                    index: index, configuration: configuration, registry: registry, log: log, shared: shared)
            } catch {
                throw StartFault(error)
            }
            shards.append(shard)
            try await shard.start(onFatal: onFatal)
        }
    }

    /// Whether every shard's loop has turned recently. Absent servers do not matter.
    public var isAlive: Bool { oldestTurn < OperatorPages.deadSeconds }

    /// Seconds since the last turn of the slowest shard's loop.
    var oldestTurn: Double { shards.map(\.beat.age).max() ?? 0 }

    /// The operator's port as bound; 0 before `start`.
    public var operatorPort: UInt16 { view.port }

    /// The present state of the process, from every shard.
    public func status() async -> ProcessSnapshot {
        await sample()
        return view.snapshot
    }

    private func sample() async {
        var statuses: [ShardStatus] = []
        for shard in shards {
            if let status = await shard.status() { statuses.append(status) }
        }
        view.show(statuses)
    }

    /// Stops reading, finishes open work within `drain_s`, commits and leaves the group. Returns true if nothing was
    /// left.
    public func stop() async -> Bool {
        log.info("draining")
        view.beginDraining()
        let seconds = drainTime.seconds
        let endNanos = Loop.monotonicNanos() &+ UInt64(max(0, seconds) * 1_000_000_000)
        // With brokers that answer, leaving takes some milliseconds; without, it must end all the same.
        let isSettled = await ofEach { await $0.settle(seconds: seconds - min(2.5, seconds / 2)) }
        sampler?.cancel()
        let isLeft = await ofEach { await $0.leave(untilNanos: endNanos) }
        let isDrained = isSettled && isLeft
        view.close()
        log.info("stopped", ["drained": .bool(isDrained)])
        return isDrained
    }

    private func ofEach(_ step: @escaping @Sendable (Shard) async -> Bool) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            for shard in shards { group.addTask { await step(shard) } }
            var isWell = true
            for await done in group where !done { isWell = false }
            return isWell
        }
    }
}

extension Configuration {
    /// `shards: 0` means one per processor that this process may use.
    public var shardCount: Int { shards > 0 ? shards : ProcessorCount.present.available }
}
