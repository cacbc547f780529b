// SPDX-License-Identifier: Apache-2.0
import APNs
import Telemetry

/// How long each bound delayed work: `carillon_backpressure_seconds_total{cause}`.
///
/// Sampled once a second, so that it costs nothing per record. A cause that applies for a part of each second is seen
/// in that part of the samples.
struct Backpressure {
    enum Cause: String, CaseIterable {
        /// Recipients, events or members are at their bound; reading stops.
        case inflight
        /// Pushes wait for streams or for the limiter; reading stops.
        case limiter
        /// Commands wait for Redis; reading stops.
        case redis
        /// A partition's unsettled records or bytes are at their bound; it is paused.
        case window
        /// Members of large groups start only as fast as their lane's share allows, because other messages come.
        case lane
        /// Pushes wait while APNs reports that it is unavailable.
        case breaker
        /// Pushes wait for a connection to APNs.
        case connection
        /// Pushes wait while APNs refuses their credential.
        case credential

        /// The reason why a client's pushes wait; nil if they do not wait for APNs itself.
        init?(of apns: APNsClient) {
            guard apns.isHeldUp, apns.queued > 0 else { return nil }
            let isRefused = apns.credentialPause != nil || apns.lacksCredential
            self = isRefused ? .credential : apns.isBreakerOpen ? .breaker : .connection
        }
    }

    private let counters: [Counter]
    private var lookedNanos: UInt64?
    /// A loop that did not turn for longer cannot show what applied in that time.
    private static let stretchMaxMs: UInt64 = 5_000

    init(_ registry: MetricsRegistry) {
        counters = Cause.allCases.map {
            registry.counter(
                "carillon_backpressure_seconds_total",
                help: "Time for which a bound held work back, looked at each second.",
                labels: [("cause", $0.rawValue)], scale: 1e-3)
        }
    }

    /// Adds the time since the last sample to each cause that applies now.
    mutating func sample(nowNanos: UInt64, holds: (Cause) -> Bool) {
        defer { lookedNanos = nowNanos }
        guard let lookedNanos else { return }
        let passedMs = min((nowNanos &- lookedNanos) / 1_000_000, Self.stretchMaxMs)
        for (cause, counter) in zip(Cause.allCases, counters) where holds(cause) { counter.add(passedMs) }
    }
}
