import APNs
import Telemetry

/// For how long each bound held work back: `carillon_backpressure_seconds_total{cause}`.
///
/// Looked at once a second, so that it costs nothing per record: what holds for part of each second is met in that part
/// of the looks.
struct Backpressure {
    enum Cause: String, CaseIterable {
        /// Recipients, events or members in work are at their bound; reading rests.
        case inflight
        /// Pushes wait for streams or for the limiter; reading rests.
        case limiter
        /// Commands wait for Redis; reading rests.
        case redis
        /// A partition's unsettled records or bytes are at their bound; it is paused.
        case window
        /// Pushes wait while APNs says that it is unavailable.
        case breaker
        /// Pushes wait for a connection to APNs.
        case connection
        /// Pushes wait while APNs refuses their credential.
        case credential

        /// Why pushes of a client wait; nil: they do not wait for APNs as such.
        init?(of apns: APNsClient) {
            guard apns.isHeldUp, apns.queued > 0 else { return nil }
            self = apns.credentialPause != nil ? .credential : apns.isBreakerOpen ? .breaker : .connection
        }
    }

    private let counters: [Counter]
    private var lookedNanos: UInt64?
    /// A loop that stood still for longer says nothing of what held meanwhile.
    private static let stretchMaxMs: UInt64 = 5_000

    init(_ registry: MetricsRegistry) {
        counters = Cause.allCases.map {
            registry.counter(
                "carillon_backpressure_seconds_total",
                help: "Time for which a bound held work back, looked at each second.",
                labels: [("cause", $0.rawValue)], scale: 1e-3)
        }
    }

    /// Adds the time since the last look to each cause that holds now.
    mutating func look(nowNanos: UInt64, holds: (Cause) -> Bool) {
        defer { lookedNanos = nowNanos }
        guard let lookedNanos else { return }
        let passedMs = min((nowNanos &- lookedNanos) / 1_000_000, Self.stretchMaxMs)
        for (cause, counter) in zip(Cause.allCases, counters) where holds(cause) { counter.add(passedMs) }
    }
}
