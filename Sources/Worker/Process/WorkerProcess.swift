public import EventLoop
import Kafka
import PushCore
public import Telemetry

/// The whole worker: its shards, the operator's pages, and an orderly end.
///
/// Lives on a loop of its own, so that a busy shard never keeps an operator waiting: pages answer from a snapshot that
/// is taken a few times a second.
public actor WorkerProcess {
    private nonisolated let loop: Loop
    /// As it was started, but for what a reload took over.
    var configuration: Configuration
    private let timesStages: Bool
    private let wallClock: WallClock
    /// `drain_s`, which a reload may change; any thread reads it.
    public nonisolated let drainTime: DrainTime
    /// What it runs with, for what a reload finds changed.
    var running: EffectiveConfiguration.Values
    let reloads: ReloadMetrics
    /// As the Kafka clients have them.
    let kafkaSecrets: KafkaSecrets
    let log: Log
    private let registry: MetricsRegistry
    /// By app: a ratio of sums, so it is no shard's to tell.
    private(set) var shards: [Shard] = []
    private var pages: OperatorPages?
    private let watch: OperatorWatch
    private(set) var snapshot = ProcessSnapshot()
    /// What the last reload read could not be used.
    var isReloadRefused = false
    /// As of the start; shards read zones when they need them.
    private let lacksZones = !SystemZones().isPresent
    private var isDraining = false
    /// Of `carillon_ready`, by part; nil is the process as a whole.
    private var readiness: [ProcessPart.Name?: Gauge] = [:]
    private var sampler: Task<Void, Never>?

    private static let sampleInterval = Duration.milliseconds(250)

    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - effective: the configuration's values, where `reload` may come.
    ///   - wallClock: a test moves it.
    ///   - timesStages: shards tell how long each stage takes, and the allocator how often it was asked.
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
        watch = OperatorWatch(registry)
        if effective != nil { reloads.running(running.hash) }
        self.log = log
        self.registry = registry
        for link in configuration.weakLinks {
            registry.gauge(
                "carillon_weak_links",
                help: "Links without proof of the peer or in clear, by the waiver that allows them",
                labels: [("link", link.link), ("waiver", link.waiver.rawValue)]
            ).set(1)
        }
        registry.gauge(
            "carillon_build_info", help: "1; the version of the worker and of librdkafka.",
            labels: [("version", Self.version), ("librdkafka", KafkaConfiguration.libraryVersion)], combine: .max
        ).set(1)
        registry.reading(
            "carillon_log_lines_dropped_total", help: "Log lines that standard error did not take at once.",
            kind: .counter
        ) { Double(log.dropped) }
        if timesStages, Allocator.requests != nil {
            registry.reading(
                "carillon_allocations_total", help: "Pieces of memory that the process asked for.", kind: .counter
            ) { Double(Allocator.requests ?? 0) }
        }
        loop = try Loop(name: "operator")
        loop.start()
    }

    /// Starts everything. What is away (Redis, Kafka, APNs) is waited for and told by `/readyz`; what keeps the process
    /// from starting is thrown, and nothing of it is left then.
    ///
    /// - Parameter onFatal: the Kafka client died for good; the process is expected to exit with 70.
    public func start(onFatal: @escaping @Sendable () -> Void = {}) async throws(StartFault) {
        // First, since a port that is taken is told before anything connects.
        try openPages()
        do throws(StartFault) {
            try await startShards(onFatal: onFatal)
        } catch {
            // What lives on a loop is let go there, before the process goes on to its end.
            _ = await ofEach { await $0.leave() }
            pages = nil
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
        do throws(LoopFault) {
            pages = try OperatorPages(
                loop: loop, http: configuration.http, registry: registry,
                OperatorPages.Sources(
                    oldestTurn: { [unowned self] in assumeIsolated { $0.oldestTurn } },
                    snapshot: { [unowned self] in assumeIsolated { $0.snapshot } },
                    facts: { [unowned self] in assumeIsolated { $0.facts() } },
                    ask: { [unowned self] question in assumeIsolated { $0.ask(question) } }))
        } catch {
            throw StartFault(error, at: "http.listen")
        }
    }

    /// On a thread of its own, beside the shards.
    private func ask(_ question: TraceQuestion) {
        let desk = TraceDesk(configuration: configuration)
        Task {
            let found = await Task.detached { await desk.answer(question) }.value
            pages?.didAnswer(found)
        }
    }

    private func startShards(onFatal: @escaping @Sendable () -> Void) async throws(StartFault) {
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

    /// Whether every shard's loop turned lately; what is away has no say in it.
    public var isAlive: Bool { oldestTurn < OperatorPages.deadSeconds }

    /// Seconds since the loop of some shard last turned.
    var oldestTurn: Double { shards.map(\.beat.age).max() ?? 0 }

    /// The operator's port, as bound; 0 before `start`.
    public var operatorPort: UInt16 { pages?.port ?? 0 }

    /// What the process has and lacks, from every shard, as of now.
    public func status() async -> ProcessSnapshot {
        await sample()
        return snapshot
    }

    private func sample() async {
        var statuses: [ShardStatus] = []
        for shard in shards {
            if let status = await shard.status() { statuses.append(status) }
        }
        show(
            ProcessSnapshot(
                shards: statuses, isDraining: isDraining, isReloadRefused: isReloadRefused, lacksZones: lacksZones))
        watch.tick(snapshot, nowNanos: Loop.monotonicNanos(), wallMs: Loop.wallMs())
    }

    /// What the page shows now.
    private func facts() -> PageFacts {
        watch.facts(snapshot, nowNanos: Loop.monotonicNanos(), wallMs: Loop.wallMs())
    }

    private func show(_ fresh: ProcessSnapshot) {
        snapshot = fresh
        setReady(nil, [("part", "process")], fresh.isReady ? 1 : 0)
        for part in fresh.parts { setReady(part.name, part.labels, part.state.number) }
        // Parts that go again.
        for name in [ProcessPart.Name.configuration, .clock] where !fresh.parts.contains(where: { $0.name == name }) {
            readiness[name]?.set(1)
        }
    }

    private func setReady(_ name: ProcessPart.Name?, _ labels: [(String, String)], _ value: Double) {
        let gauge =
            readiness[name]
            ?? registry.gauge(
                "carillon_ready", help: "1 ok, 0.5 degraded, 0 down; the process as a whole: 1 where /readyz is 200.",
                labels: labels)
        readiness[name] = gauge
        gauge.set(value)
    }

    /// Reads no more, finishes what is in hand within `drain_s`, commits, leaves the group. True: nothing was left.
    public func stop() async -> Bool {
        log.info("draining")
        // From now on, not from the next sample on; and the pages go on telling what is left in hand.
        isDraining = true
        show(
            ProcessSnapshot(
                shards: snapshot.shards, isDraining: true, isReloadRefused: isReloadRefused, lacksZones: lacksZones))
        let seconds = drainTime.seconds
        let endNanos = Loop.monotonicNanos() &+ UInt64(max(0, seconds) * 1_000_000_000)
        // With brokers that answer, leaving takes some milliseconds; without, it must end all the same.
        let isSettled = await ofEach { await $0.settle(seconds: seconds - min(2.5, seconds / 2)) }
        sampler?.cancel()
        let isLeft = await ofEach { await $0.leave(untilNanos: endNanos) }
        let isDrained = isSettled && isLeft
        pages = nil
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
    /// `shards: 0` is one per core.
    public var shardCount: Int { shards > 0 ? shards : max(1, ProcessorCount.available) }
}
