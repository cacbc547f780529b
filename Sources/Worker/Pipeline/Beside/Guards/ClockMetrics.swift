// SPDX-License-Identifier: Apache-2.0
import Telemetry

/// How far the machine's clock is from others.
final class ClockMetrics {
    private let registry: MetricsRegistry
    private var gauges: [ClockWatch.Reference: Gauge] = [:]

    init(_ registry: MetricsRegistry) { self.registry = registry }

    func set(_ watch: ClockWatch, wallMs: Int64, nowNanos: UInt64) {
        for reference in ClockWatch.Reference.allCases {
            guard let skewMs = watch.skewMs(reference, wallMs: wallMs, nowNanos: nowNanos) else {
                gauges[reference]?.setUnknown()
                continue
            }
            gauge(reference).set(Double(skewMs) / 1000)
        }
    }

    private func gauge(_ reference: ClockWatch.Reference) -> Gauge {
        if let known = gauges[reference] { return known }
        let made = registry.gauge(
            "carillon_clock_skew_seconds",
            help: "How far this machine's clock is ahead of Redis' time, or behind the brokers' append times.",
            labels: [("reference", reference.rawValue)], combine: .max)
        gauges[reference] = made
        return made
    }
}
