// SPDX-License-Identifier: Apache-2.0
import Fleet
import Glibc
import JSON
import Kafka
import Telemetry

/// Keeps the past values that the operator's page needs for rates. On the operator's loop.
///
/// It records flow counters every two seconds and everything on the page every ten seconds, and again for a request if
/// the last look is older than two seconds. So the work does not depend on the number of viewers.
final class OperatorWatch {
    private let registry: MetricsRegistry
    private var flow = FlowRing()
    /// The last look, and its view with rates since the previous one.
    private var last: (look: WorkerLook, view: FleetView)?
    /// Looks with outcomes and the metrics of the health rules, one every ten seconds, oldest first.
    private var outcomes: [WorkerLook] = []
    /// The health rules that hold, as of the last of them.
    private(set) var notes: [HealthNote] = []

    private static let idleNanos: UInt64 = 10_000_000_000
    private static let freshNanos: UInt64 = 1_500_000_000
    /// The oldest is three minutes older than the newest. Health and the page have this one window.
    private static let outcomesMax = 19
    private static let recentMax = 3
    private static let address = "this worker"
    private static let families = Set(FleetMetrics.all).union(HealthLook.metrics)
    private static let names = FleetMetrics.names.union(HealthLook.metrics)

    private static let kept = HealthLook.metrics.union([FleetMetrics.endToEnd])
    private static let keptNames = kept.union(
        FleetMetrics.names.filter { name in
            [FleetMetrics.redisSeconds, FleetMetrics.endToEnd].contains { name.hasPrefix($0) }
        })

    private static let host = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { name in
        guard let start = name.baseAddress, gethostname(start, name.count - 1) == 0 else { return "" }
        name[name.count - 1] = 0
        return String(cString: start)
    }

    init(_ registry: MetricsRegistry) { self.registry = registry }

    /// Call a few times a second.
    func tick(_ snapshot: ProcessSnapshot, nowNanos: UInt64, wallMs: Int64) {
        if flow.isDue(nowNanos) { flow.take(FlowRing.Flow.allCases.map { $0.total(registry) }, atNanos: nowNanos) }
        if isOlder(Self.idleNanos, nowNanos) { sample(snapshot, nowNanos, wallMs) }
    }

    func facts(_ snapshot: ProcessSnapshot, nowNanos: UInt64, wallMs: Int64) -> PageFacts {
        if isOlder(Self.freshNanos, nowNanos) { sample(snapshot, nowNanos, wallMs) }
        var facts = PageFacts()
        facts.snapshot = snapshot
        facts.view = last?.view ?? facts.view
        facts.flow = flow
        facts.host = Self.host
        facts.version = WorkerProcess.version
        facts.library = KafkaConfiguration.libraryVersion
        facts.atMs = wallMs
        let now = last?.look
        facts.uptimeSeconds = now?.metrics?.sum(FleetMetrics.started).map { Double(wallMs) / 1000 - $0 }
        if let last = outcomes.last, let first = outcomes.first, first.atNanos < last.atNanos {
            let view = FleetView([last], after: [first], wallSeconds: Double(wallMs) / 1000)
            facts.recent = view.outcomes
            facts.verdicts = view.verdictRates
            facts.endToEnd = view.endToEnd
            facts.lanes = view.lanes
            facts.recentSeconds = view.intervalSeconds
        } else {
            facts.recent = facts.view.outcomes
        }
        return facts
    }

    /// The facts of this worker for the pages of the others.
    func note(_ snapshot: ProcessSnapshot) -> FleetNote {
        let view = last?.view
        var note = FleetNote()
        note.host = Self.host
        note.health = snapshot.health.rawValue
        note.version = WorkerProcess.version
        if view?.intervalSeconds != nil {
            note.pushRate = view?.attemptRates.first { $0.result == "accepted" }?.rate ?? 0
        }
        // Without a partition the end offsets are unknown.
        if let view, view.assigned != 0 { note.lagRecords = view.lags.compactMap(\.records).reduce(0, +) }
        note.oldestSeconds = view?.oldestSeconds
        return note
    }

    private func isOlder(_ nanos: UInt64, _ nowNanos: UInt64) -> Bool {
        last.map { nowNanos >= $0.look.atNanos &+ nanos } ?? true
    }

    private func sample(_ snapshot: ProcessSnapshot, _ nowNanos: UInt64, _ wallMs: Int64) {
        let page = MetricsPage(registry.exposition(of: Self.families), names: Self.names)
        let status = (try? JSONTree(parsing: snapshot.json)).map { StatusFacts($0) } ?? StatusFacts()
        let look = WorkerLook(address: Self.address, atNanos: nowNanos, answer: .facts(page, status))
        let before = last.map { [$0.look] } ?? []
        last = (look, FleetView([look], after: before, wallSeconds: Double(wallMs) / 1000))
        if outcomes.last.map({ nowNanos >= $0.atNanos &+ Self.idleNanos }) ?? true {
            let kept = MetricsPage(registry.exposition(of: Self.kept), names: Self.keptNames)
            let look = WorkerLook(address: Self.address, atNanos: nowNanos, answer: .facts(kept, StatusFacts()))
            let recent = outcomes.suffix(Self.recentMax).first
            let health = HealthLook(look, after: outcomes.first, recent: recent, wallSeconds: Double(wallMs) / 1000)
            let calmMs = recent.map { Int64(clamping: (nowNanos &- $0.atNanos) / 1_000_000) } ?? 0
            notes = health.notes.map { note in
                var note = note
                let before = notes.first { $0.isSameCondition(as: note) }
                switch health.isLive(note) {
                case true: note.endedMs = nil
                // The half minute without it is over now.
                case false: note.endedMs = before?.endedMs ?? wallMs &- calmMs
                case nil: note.endedMs = before?.endedMs
                }
                return note
            }
            outcomes.append(look)
            if outcomes.count > Self.outcomesMax { outcomes.removeFirst() }
        }
    }
}
