import Fleet
import Telemetry

/// What the process' counters grew by in the last three minutes, two seconds a step: for the page's graphs.
///
/// Bounded: the oldest step goes when a new one comes. On the operator's loop.
struct FlowRing: Sendable {
    /// What flows.
    enum Flow: Int, CaseIterable, Sendable {
        case read, settled, pushed, delivered
    }

    static let stepNanos: UInt64 = 2_000_000_000
    static let stepsMax = 90

    /// A second, oldest first, in the order of `Flow`.
    private(set) var steps: [[Double]] = []
    private var last: (totals: [Double], atNanos: UInt64)?

    /// Time for another step.
    func isDue(_ nowNanos: UInt64) -> Bool {
        guard let last else { return true }
        return nowNanos >= last.atNanos &+ Self.stepNanos
    }

    /// - Parameter totals: what has been counted since the start, in the order of `Flow`.
    mutating func take(_ totals: [Double], atNanos: UInt64) {
        defer { last = (totals, atNanos) }
        guard let last, atNanos > last.atNanos, totals.count == last.totals.count else { return }
        let seconds = Double(atNanos - last.atNanos) / 1e9
        steps.append(zip(totals, last.totals).map { max(0, $0 - $1) / seconds })
        if steps.count > Self.stepsMax { steps.removeFirst(steps.count - Self.stepsMax) }
    }

    /// A second, oldest first; empty: nothing was measured yet.
    func rates(_ flow: Flow) -> [Double] {
        steps.compactMap { $0.indices.contains(flow.rawValue) ? $0[flow.rawValue] : nil }
    }
}

extension FlowRing.Flow {
    /// What the process has counted of it.
    func total(_ registry: MetricsRegistry) -> Double {
        switch self {
        case .read: registry.total(FleetMetrics.consumed)
        case .settled: registry.total(FleetMetrics.settled)
        case .pushed: registry.total(FleetMetrics.attempts, label: ("result", "accepted"))
        case .delivered: registry.total(FleetMetrics.deliveries)
        }
    }
}
