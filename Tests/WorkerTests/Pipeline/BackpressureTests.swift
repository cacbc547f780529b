// SPDX-License-Identifier: Apache-2.0
import Telemetry
import Testing

@testable import Worker

@Suite struct BackpressureTests {
    private static let second: UInt64 = 1_000_000_000

    @Test func eachCauseIsGivenTheTimeForWhichItHeld() {
        let registry = MetricsRegistry()
        var pressure = Backpressure(registry)
        // The first look begins the count.
        pressure.sample(nowNanos: 5 * Self.second) { _ in true }
        pressure.sample(nowNanos: 6 * Self.second) { $0 == .redis || $0 == .window }
        pressure.sample(nowNanos: 7 * Self.second + Self.second / 2) { $0 == .window }
        pressure.sample(nowNanos: 9 * Self.second) { _ in false }
        // A machine that slept.
        pressure.sample(nowNanos: 900 * Self.second) { $0 == .breaker }
        let text = String(decoding: registry.exposition(), as: UTF8.self)
        let wanted = [("inflight", "0"), ("limiter", "0"), ("redis", "1"), ("window", "2.5"), ("breaker", "5")]
        for (cause, seconds) in wanted {
            #expect(text.contains("carillon_backpressure_seconds_total{cause=\"\(cause)\"} \(seconds)\n"), "\(text)")
        }
    }
}
