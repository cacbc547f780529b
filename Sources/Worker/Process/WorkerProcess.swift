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
    private let kafkaSecrets: KafkaSecrets
    let log: Log
    private let registry: MetricsRegistry
    private(set) var shards: [Shard] = []
    let view: ProcessView
    /// Names the process among all workers (`ProcessShared.mark`); nil before the shards start.
    private var mark: String?
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
        mark = shared.mark
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
        guard let mark, let note = view.dueFleetNote(mark, configuration) else { return }
        await shards.first?.tellFleet(mark, note, readsAll: view.isRead)
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
        if let mark { await shards.first?.tellFleet(mark, nil, readsAll: false) }
        let isLeft = await ofEach { await $0.leave(untilNanos: endNanos) }
        let isDrained = isSettled && isLeft
        view.close()
        log.info("stopped", ["drained": .bool(isDrained)])
        return isDrained
    }

    private func ofEach(_ step: @escaping @Sendable (Shard) async -> Bool) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            for shard in shards { group.addTask { await step(shard) } }
            var areAllDone = true
            for await done in group where !done { areAllDone = false }
            return areAllDone
        }
    }

    // MARK: Reload

    /// Reads the configuration again and applies the changes that are possible while the worker runs
    /// (`ConfigurationChange`). The log names the applied keys, and those that take effect at the next start. An
    /// invalid configuration changes nothing.
    ///
    /// Credential files are also checked, changed or not.
    public func reload(path: String, environment: [String: String]) async {
        let known = Set(view.snapshot.apps.map(\.id))
        // Not on this loop: the operator's pages go on while a disk does not answer.
        let read = await onOwnThread { Self.read(path, environment, known: known) }
        switch read {
        case .success(let fresh): await apply(fresh.configuration, fresh.effective, fresh.secrets)
        case .failure(let fault): refuse(fault)
        }
    }

    private struct Fresh: Sendable {
        var configuration: Configuration
        var effective: EffectiveConfiguration
        var secrets: KafkaSecrets
    }

    private static func read(
        _ path: String, _ environment: [String: String], known: Set<String>
    ) -> Result<Fresh, ConfigurationProblems> {
        let effective = Configuration.effective(path: path, environment: environment)
        return Configuration.load(path: path, environment: environment).flatMap { configuration in
            let problems = unreadable(configuration, known: known)
            if !problems.isEmpty { return .failure(ConfigurationProblems(problems: problems)) }
            return effective.map {
                Fresh(configuration: configuration, effective: $0, secrets: KafkaSecrets(configuration.kafka))
            }
        }
    }

    /// Problems with the credentials of new apps. The files of known apps are checked all the time; if a new file is unusable, the
    /// old credential stays in use.
    private static func unreadable(_ configuration: Configuration, known: Set<String>) -> [Problem] {
        var added = configuration
        added.apps.removeAll { known.contains($0.policy.id) }
        return added.credentialProblems()
    }

    private func refuse(_ fault: ConfigurationProblems) {
        reloads.refused.add()
        view.isReloadRefused = true
        for problem in fault.problems.prefix(20) {
            log.error("the configuration cannot be used", ["problem": .string("\(problem)")])
        }
        log.error(
            "reload refused: the previous configuration stays in effect",
            ["problems": .int(fault.problems.count)])
    }

    private func apply(
        _ configuration: Configuration, _ fresh: EffectiveConfiguration, _ freshSecrets: KafkaSecrets
    ) async {
        let change = ConfigurationChange(from: running, to: fresh.values)
        // The result of a reload is logged at the earlier level too.
        log.level = min(log.level, configuration.logLevel)
        drainTime.set(seconds: configuration.drainSeconds)
        for shard in shards {
            do throws(StartFault) {
                try await shard.apply(configuration)
            } catch {
                log.error("a new app cannot be added", ["why": .string(error.description)])
            }
        }
        for key in change.applied { running[key] = fresh.values[key] }
        // The trace box's data: new apps, and each app's rules.
        self.configuration.apps = configuration.apps
        reloads.applied.add()
        view.isReloadRefused = false
        let secrets = kafkaSecrets.changes(to: freshSecrets)
        reloads.pendingKeys.set(change.pending.count + secrets.count)
        reloads.running(running.hash)
        if !secrets.isEmpty {
            log.warning(
                "secrets of Kafka have changed: a restart is needed, until then the old ones are in use",
                ["keys": .string(secrets.joined(separator: ", "))])
        }
        log.info("configuration reloaded", ["changed": .string(Self.list(change.applied))])
        if !change.pending.isEmpty {
            log.warning(
                "these keys take effect at the next start", ["keys": .string(Self.list(change.pending))])
        }
        Self.report(configuration.warnings, to: log)
        log.level = configuration.logLevel
    }

    static func report(_ warnings: [Problem], to log: Log) {
        for warning in warnings { log.warning("the configuration", ["warning": .string("\(warning)")]) }
    }

    private static func list(_ keys: [EffectiveConfiguration.Key]) -> String {
        keys.map(\.description).joined(separator: ", ")
    }

    // MARK: Version

    /// This program's version: the topmost in CHANGELOG.md.
    public static let version = "1.0.0"
}

extension Configuration {
    /// `shards: 0` means one per processor that this process may use.
    public var shardCount: Int { shards > 0 ? shards : ProcessorCount.present.available }
}

/// Metrics of reloads.
final class ReloadMetrics {
    let applied: Counter
    let refused: Counter
    /// Keys that take effect at the next start.
    fileprivate let pendingKeys: Gauge
    private let registry: MetricsRegistry
    private var infos: [String: Gauge] = [:]
    private static let infosMax = 32

    init(_ registry: MetricsRegistry) {
        self.registry = registry
        func reloads(_ result: String) -> Counter {
            registry.counter(
                "carillon_config_reloads_total", help: "Reloads of the configuration (SIGHUP) by outcome.",
                labels: [("result", result)])
        }
        applied = reloads("applied")
        refused = reloads("refused")
        pendingKeys = registry.gauge(
            "carillon_config_pending_keys",
            help: "Keys of the last reload that take effect at the next start.")
    }

    /// - Parameter hash: of the effective values. There are few; those beyond a bound have no series.
    func running(_ hash: String) {
        for gauge in infos.values { gauge.set(0) }
        guard infos[hash] != nil || infos.count < Self.infosMax else { return }
        let gauge =
            infos[hash]
            ?? registry.gauge(
                "carillon_config_info",
                help: "1: the worker runs with the configuration of this hash (see check --print).",
                labels: [("hash", hash)])
        infos[hash] = gauge
        gauge.set(1)
    }
}
