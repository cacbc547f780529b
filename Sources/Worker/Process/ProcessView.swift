// SPDX-License-Identifier: Apache-2.0
package import EventLoop
import Kafka
import PushCore
package import Telemetry

/// What operators see of the process: the pages, the gauges of `carillon_ready`, and the state behind both. On the
/// operator's loop.
package final class ProcessView {
    package private(set) var snapshot = ProcessSnapshot()
    /// The last reload refused the configuration.
    var isReloadRefused = false
    private let loop: Loop
    private let registry: MetricsRegistry
    private let watch: OperatorWatch
    private var pages: OperatorPages?
    /// Seconds since the last turn of the slowest shard's loop.
    private var oldestTurn: () -> Double = { 0 }
    /// As of the start; shards read zones when they need them.
    private let lacksZones = !SystemZones().isPresent
    private var isDraining = false
    /// The process's mark, from its first note on, and the group.
    private var fleet: (this: String, group: String)?
    private var fleetToldNanos: UInt64?
    /// When somebody last read the page.
    private var readNanos: UInt64?

    private static let fleetNanos: UInt64 = 5_000_000_000
    private static let readFreshNanos: UInt64 = 15_000_000_000
    private var times = ProblemTimes()
    /// The gauges of `carillon_ready` by part; nil is the process as a whole.
    private var readiness: [ProcessPart.Name?: Gauge] = [:]

    package init(loop: Loop, configuration: Configuration, log: Log, registry: MetricsRegistry) {
        self.loop = loop
        self.registry = registry
        watch = OperatorWatch(registry)
        for link in configuration.weakLinks {
            registry.gauge(
                "carillon_weak_links",
                help: "Links without proof of the peer or in clear, by the waiver that allows them",
                labels: [("link", link.link), ("waiver", link.waiver.rawValue)]
            ).set(1)
        }
        registry.gauge(
            "carillon_build_info", help: "1; the version of the worker and of librdkafka.",
            labels: [("version", WorkerProcess.version), ("librdkafka", KafkaConfiguration.libraryVersion)],
            combine: .max
        ).set(1)
        registry.reading(
            "carillon_log_lines_dropped_total", help: "Log lines dropped because standard error was not writable.",
            kind: .counter
        ) { Double(log.dropped) }
    }

    /// Opens the pages.
    ///
    /// - Parameters:
    ///   - oldestTurn: seconds since the last turn of the slowest shard's loop.
    ///   - ask: starts to answer a question of the trace box; `didAnswer` ends it.
    ///   - askStatistics: the same of the statistics.
    package func open(
        _ http: Configuration.HTTPSection, oldestTurn: @escaping @Sendable () -> Double,
        ask: @escaping @Sendable (TraceQuestion) -> Void = { _ in },
        askStatistics: @escaping @Sendable (StatisticsQuestion) -> Void = { _ in }
    ) throws(StartFault) {
        self.oldestTurn = oldestTurn
        do throws(LoopFault) {
            pages = try OperatorPages(
                loop: loop, http: http, registry: registry,
                OperatorPages.Sources(
                    oldestTurn: oldestTurn,
                    willExpose: { [unowned self] in showTurns() },
                    snapshot: { [unowned self] in snapshotWithTurn },
                    facts: { [unowned self] in facts() },
                    ask: ask, askStatistics: askStatistics))
        } catch {
            throw StartFault(error, at: "http.listen")
        }
    }

    package func close() { pages = nil }

    /// The content of the page for somebody who reads it.
    private func facts() -> PageFacts {
        readNanos = loop.nowNanos
        var facts = watch.facts(snapshotWithTurn, nowNanos: loop.nowNanos, wallMs: loop.wallMs)
        if let fleet, let entries = snapshot.shards.first?.fleet {
            facts.fleet = FleetWorkers(entries, this: fleet.this, group: fleet.group)
        }
        return facts
    }

    /// Somebody reads the page now.
    var isRead: Bool { readNanos.map { loop.nowNanos < $0 &+ Self.readFreshNanos } ?? false }

    /// The process's note for the pages of all workers; nil: one was written in the last seconds.
    func dueFleetNote(_ mark: String, _ configuration: Configuration) -> [UInt8]? {
        let now = loop.nowNanos
        if let fleetToldNanos, now < fleetToldNanos &+ Self.fleetNanos { return nil }
        fleetToldNanos = now
        fleet = (mark, configuration.kafka.group)
        var note = watch.note(snapshot)
        note.group = configuration.kafka.group
        note.port = port
        note.url = PageAddress.url(of: configuration.http, port: port)
        return note.json
    }

    /// The snapshot as of this moment.
    private var snapshotWithTurn: ProcessSnapshot { snapshot.withTurn(secondsAgo: oldestTurn()) }

    /// The operator's port as bound; 0 before `open`.
    package var port: UInt16 { pages?.port ?? 0 }

    /// The trace question is answered.
    func didAnswer(_ answer: TraceAnswer) { pages?.didAnswer(answer) }

    /// The question about the statistics is answered.
    func didAnswer(_ statistics: StatisticsAnswer) { pages?.didAnswer(statistics) }

    /// The present state of every shard. Call a few times a second.
    package func show(_ shards: [ShardStatus]) {
        snapshot = ProcessSnapshot(
            shards: shards, isDraining: isDraining, isReloadRefused: isReloadRefused, lacksZones: lacksZones,
            notes: watch.notes)
        snapshot.date(by: &times, nowMs: loop.wallMs)
        setReady(nil, [("part", "process")], snapshot.isReady ? 1 : 0)
        for part in snapshot.parts { setReady(part.name, part.labels, part.state.number) }
        // Parts that go again.
        for name in ProcessPart.Name.temporary
        where !snapshot.parts.contains(where: { $0.name == name }) {
            readiness[name]?.set(1)
        }
        watch.tick(snapshot, nowNanos: loop.nowNanos, wallMs: loop.wallMs)
    }

    /// Effective at once, not from the next sample on. The pages continue to report open work.
    package func beginDraining() {
        isDraining = true
        show(snapshot.shards)
    }

    /// A shard that does not turn gives no status, so the last snapshot says nothing of it.
    private func showTurns() {
        let isTurning = oldestTurn() < OperatorPages.stuckSeconds
        readiness[nil]?.set(snapshot.isReady && isTurning ? 1 : 0)
        if !snapshot.parts.isEmpty { setReady(.loop, [("part", "loop")], isTurning ? 1 : 0) }
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
}
