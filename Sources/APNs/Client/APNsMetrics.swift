// SPDX-License-Identifier: Apache-2.0
public import Telemetry

/// The scope of a breaker.
enum BreakerScope: String, CaseIterable {
    case credential, endpoint
}

/// The metrics of one client; created once, on the loop's thread that writes them.
public final class APNsMetrics {
    let accepted: Counter
    let rejected: Counter
    let refused: Counter
    let ambiguous: Counter
    let latencyAccepted: Histogram
    let latencyOther: Histogram
    let pending: Gauge
    let inFlight: Gauge
    let connectionsReady: Gauge
    let connectionsOpening: Gauge
    let connectionsDraining: Gauge
    let streamsLimit: Gauge
    let oldestStream: Gauge
    let paused: Gauge
    let limit: Gauge
    let decreases: Counter
    let heldTokens: Gauge
    let retriesDenied: Counter
    let breakerStates: [Gauge]
    let breakerOpenings: [Counter]
    let retryBudget: [Gauge]
    let reconnects: Counter
    let connectFailures: Counter
    let deadConnections: Counter
    let pingRoundTrip: Histogram
    let ambiguousResends: Counter
    let minted: Counter
    let unreadableTimes: Counter
    let tokenAge: Gauge
    let clockSkew: Gauge
    private let registry: MetricsRegistry
    /// The labels of all its series.
    private let labels: [(String, String)]
    private var goaways: [String: Counter] = [:]
    private var retries: [String: Counter] = [:]
    private var alarms: [String: Counter] = [:]
    private var suspicions: [String: Counter] = [:]

    /// Clients with the same labels are added up.
    ///
    /// - Parameters:
    ///   - registry: exports the series.
    ///   - app: value of the label `app`.
    ///   - environment: value of the label `env`; nil for no such label.
    ///   - credential: name of the credential set, the label `credential`; nil for no such label.
    public init(
        registry: MetricsRegistry, app: String, environment: String? = nil, credential: String? = nil
    ) {
        self.registry = registry
        var of = [("app", app)]
        if let environment { of.append(("env", environment)) }
        if let credential { of.append(("credential", credential)) }
        labels = of
        func attempts(_ result: String) -> Counter {
            registry.counter(
                "carillon_push_attempts_total", help: "Requests to APNs by outcome",
                labels: of + [("result", result)])
        }
        func connections(_ state: String) -> Gauge {
            registry.gauge(
                "carillon_apns_connections", help: "Connections to APNs by state", labels: of + [("state", state)])
        }
        func latency(_ statusClass: String) -> Histogram {
            registry.histogram(
                "carillon_push_latency_seconds", help: "From writing a request to its answer",
                labels: of + [("status_class", statusClass)], bounds: Histogram.latencyBounds)
        }
        accepted = attempts("accepted")
        rejected = attempts("rejected")
        refused = attempts("refused")
        ambiguous = attempts("ambiguous")
        latencyAccepted = latency("2xx")
        latencyOther = latency("other")
        pending = registry.gauge("carillon_pending_pushes", help: "Pushes waiting for a stream or a retry", labels: of)
        inFlight = registry.gauge("carillon_inflight_pushes", help: "Pushes on their way to APNs", labels: of)
        connectionsReady = connections("ready")
        connectionsOpening = connections("opening")
        connectionsDraining = connections("draining")
        streamsLimit = registry.gauge(
            "carillon_apns_streams_limit", help: "Streams that APNs allows over all ready connections", labels: of)
        oldestStream = registry.gauge(
            "carillon_apns_oldest_stream_seconds", help: "Age of the oldest request without an answer", labels: of,
            combine: .max)
        paused = registry.gauge(
            "carillon_apns_credential_paused", help: "1 while APNs refuses the credential", labels: of, combine: .max)
        limit = registry.gauge(
            "carillon_concurrency_limit", help: "Pushes that the limiter allows in flight", labels: of)
        decreases = registry.counter(
            "carillon_limiter_decreases_total", help: "Decreases of the limiter", labels: of)
        heldTokens = registry.gauge(
            "carillon_apns_held_tokens", help: "Device tokens that wait because APNs throttles them", labels: of)
        retriesDenied = registry.counter(
            "carillon_retries_denied_total", help: "Retries delayed because the retry budget was used up", labels: of)
        breakerStates = BreakerScope.allCases.map {
            registry.gauge(
                "carillon_breaker_state", help: "0 closed, 1 probing with one push, 2 open",
                labels: of + [("scope", $0.rawValue)], combine: .max)
        }
        breakerOpenings = BreakerScope.allCases.map {
            registry.counter(
                "carillon_breaker_transitions_total", help: "Times that a breaker opened",
                labels: of + [("scope", $0.rawValue)])
        }
        retryBudget = PushLane.allCases.map {
            registry.gauge(
                "carillon_retry_budget_tokens", help: "Retries that could be made now",
                labels: of + [("lane", "\($0)")])
        }
        reconnects = registry.counter(
            "carillon_apns_reconnects_total", help: "Connection attempts to APNs", labels: of)
        connectFailures = registry.counter(
            "carillon_apns_connect_failures_total", help: "Connections that ended before any push was accepted",
            labels: of)
        deadConnections = registry.counter(
            "carillon_apns_dead_connections_total", help: "Connections that answered no PING", labels: of)
        pingRoundTrip = registry.histogram(
            "carillon_apns_ping_rtt_seconds", help: "PING round trips", labels: of, bounds: Histogram.latencyBounds)
        ambiguousResends = registry.counter(
            "carillon_ambiguous_resends_total", help: "Pushes sent again although the first try may have arrived",
            labels: of)
        unreadableTimes = registry.counter(
            "carillon_apns_unreadable_timestamps_total",
            help: "410 answers without a whole number as timestamp: the token is kept", labels: of)
        tokenAge = registry.gauge(
            "carillon_jwt_age_seconds", help: "Age of the newest provider token", labels: of, combine: .max)
        clockSkew = registry.gauge(
            "carillon_apns_clock_skew_seconds",
            help: "This machine's clock minus the Date of APNs' answers, if APNs sends one",
            labels: of, combine: .max)
        minted = registry.counter("carillon_jwt_minted_total", help: "Provider tokens signed", labels: of)
        // A rate needs a first value of 0. The other reasons are too many to create them all.
        for kind in ConnectionHealth.Suspicion.allCases { suspicion(kind, count: 0) }
        for reason in ["ServiceUnavailable", "TooManyRequests", "InternalServerError"] { retry(reason, count: 0) }
        for reason in [APNsReason.absent, APNsReason(known: "Shutdown")] { goaway(reason, count: 0) }
    }

    /// GOAWAYs by reason, a closed set (`APNsReason.label`).
    func goaway(_ reason: APNsReason, count: UInt64 = 1) {
        counter(&goaways, "carillon_apns_goaway_total", "GOAWAY frames from APNs", reason.label).add(count)
    }

    /// Rejections that need an operator, by reason, a closed set.
    func alarm(_ reason: APNsReason) {
        counter(
            &alarms, "carillon_apns_alarms_total",
            "Rejections caused by configuration or program, not by the device",
            reason.label
        ).add()
    }

    /// Unhealthy connections, by kind.
    func suspicion(_ kind: ConnectionHealth.Suspicion, count: UInt64 = 1) {
        counter(
            &suspicions, "carillon_apns_suspicions_total", "Connections replaced because they were unhealthy",
            kind.rawValue
        ).add(count)
    }

    func retry(_ reason: String, count: UInt64 = 1) {
        counter(&retries, "carillon_retries_total", "Pushes delayed or sent again", reason).add(count)
    }

    private func counter(
        _ cells: inout [String: Counter], _ name: String, _ help: String, _ reason: String
    ) -> Counter {
        if let cell = cells[reason] { return cell }
        let cell = registry.counter(name, help: help, labels: labels + [("reason", reason)])
        cells[reason] = cell
        return cell
    }
}
