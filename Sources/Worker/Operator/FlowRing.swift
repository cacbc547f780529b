// SPDX-License-Identifier: Apache-2.0
import Fleet
import Telemetry

/// The growth of the process's counters in the last three minutes, in steps of two seconds, for the page's graphs.
///
/// Bounded: a new step replaces the oldest. On the operator's loop.
struct FlowRing: Sendable {
    /// The flows.
    enum Flow: Int, CaseIterable, Sendable {
        case read, settled, pushed, delivered
    }

    static let stepNanos: UInt64 = 2_000_000_000
    static let stepsMax = 90
    static let stepSeconds = Double(stepNanos) / 1e9
    /// The whole time that it covers.
    static let seconds = stepSeconds * Double(stepsMax)

    /// Per second, oldest first, in the order of `Flow`.
    private(set) var steps: [[Double]] = []
    private var last: (totals: [Double], atNanos: UInt64)?

    /// Whether the next step is due.
    func isDue(_ nowNanos: UInt64) -> Bool {
        guard let last else { return true }
        return nowNanos >= last.atNanos &+ Self.stepNanos
    }

    /// - Parameter totals: the counts since the start, in the order of `Flow`.
    mutating func take(_ totals: [Double], atNanos: UInt64) {
        defer { last = (totals, atNanos) }
        guard let last, atNanos > last.atNanos, totals.count == last.totals.count else { return }
        let seconds = Double(atNanos - last.atNanos) / 1e9
        steps.append(zip(totals, last.totals).map { max(0, $0 - $1) / seconds })
        if steps.count > Self.stepsMax { steps.removeFirst(steps.count - Self.stepsMax) }
    }

    /// Whether there was anything of it since the start.
    func hasEver(_ flow: Flow) -> Bool { last.map { $0.totals[flow.rawValue] > 0 } ?? false }

    /// Per second, oldest first; empty before the first measurement.
    func rates(_ flow: Flow) -> [Double] {
        steps.compactMap { $0.indices.contains(flow.rawValue) ? $0[flow.rawValue] : nil }
    }
}

extension FlowRing.Flow {
    /// The process's total.
    func total(_ registry: MetricsRegistry) -> Double {
        switch self {
        case .read: registry.total(FleetMetrics.consumed)
        case .settled: registry.total(FleetMetrics.settled)
        case .pushed: registry.total(FleetMetrics.attempts, label: ("result", "accepted"))
        case .delivered: registry.total(FleetMetrics.deliveries)
        }
    }
}
