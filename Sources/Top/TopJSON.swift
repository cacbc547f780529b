// SPDX-License-Identifier: Apache-2.0
import Fleet
import JSON

/// The view for programs: one object. Unknown values are left out.
enum TopJSON {
    static func line(_ view: FleetView, atMs: Int64) -> String {
        var writer = JSONWriter(reservingCapacity: 2_048)
        writer.beginObject()
        writer.member("at_ms", atMs)
        number("interval_s", view.intervalSeconds, &writer)
        list("workers", view.workers, &writer, write)
        list("limits", view.limits, &writer) { limit, writer in
            writer.member("cause", limit.cause)
            number("share", limit.share, &writer)
        }
        rates(view, &writer)
        list("outcomes", view.outcomes, &writer) { outcome, writer in
            writer.member("app", outcome.app)
            writer.member("verdict", outcome.verdict)
            writer.member("reason", outcome.reason)
            number("per_s", outcome.rate, &writer)
            number("total", outcome.total, &writer)
        }
        list("lag", view.lags, &writer) { lag, writer in
            writer.member("topic", ifPresent: lag.topic)
            number("records", lag.records, &writer)
            number("seconds", lag.seconds, &writer)
        }
        list("slowest_partitions", view.slowest, &writer) { partition, writer in
            writer.member("topic", partition.topic)
            writer.member("partition", partition.partition)
            writer.member("unsettled", partition.unsettled)
            number("oldest_s", partition.oldestSeconds, &writer)
            if let lag = partition.lag { writer.member("lag", lag) }
            writer.member("paused", partition.isPaused)
        }
        gauges(view, &writer)
        list("apns", view.clients, &writer, write)
        redis(view, &writer)
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }

    private static func write(_ worker: FleetView.Worker, _ writer: inout JSONWriter) {
        writer.member("address", worker.address)
        let state =
            switch worker.state {
            case .ready: "ready"
            case .degraded: "degraded"
            case .notReady: "not_ready"
            case .draining: "draining"
            case .away: "away"
            }
        writer.member("state", state)
        texts("reasons", worker.reasons, &writer)
        texts("notes", worker.notes, &writer)
    }

    private static func rates(_ view: FleetView, _ writer: inout JSONWriter) {
        writer.key("per_s")
        writer.beginObject()
        for (name, value) in [
            ("consumed", view.consumedRate), ("settled", view.settledRate), ("deliveries", view.deliveryRate),
            ("ack_timeouts", view.ackTimeoutRate), ("dead_letters", view.deadLetterRate),
            ("redis_errors", view.redisErrorRate),
        ] as [(StaticString, Double?)] {
            number(name, value, &writer)
        }
        for (name, pairs) in [
            ("verdicts", view.verdictRates.map { ($0.verdict, $0.rate) }),
            ("attempts", view.attemptRates.map { ($0.result, $0.rate) }),
        ] as [(StaticString, [(String, Double)])] {
            writer.key(name)
            writer.beginObject()
            for (label, rate) in pairs {
                writer.key(escaping: label)
                writer.double(rounded(rate))
            }
            writer.endObject()
        }
        writer.endObject()
        for (name, spread) in [
            ("end_to_end_s", view.endToEnd), ("push_latency_s", view.pushLatency),
            ("redis_latency_s", view.redisLatency),
        ] as [(StaticString, FleetView.Spread?)] {
            guard let spread else { continue }
            writer.key(name)
            writer.beginObject()
            number("p50", spread.p50, &writer)
            number("p99", spread.p99, &writer)
            writer.endObject()
        }
        list("lanes", view.lanes, &writer) { lane, writer in
            writer.member("lane", lane.lane)
            number("p50_s", lane.spread.p50, &writer)
            number("p99_s", lane.spread.p99, &writer)
        }
    }

    private static func gauges(_ view: FleetView, _ writer: inout JSONWriter) {
        for (name, value) in [
            ("oldest_unsettled_s", view.oldestSeconds), ("pending_events", view.pendingEvents),
            ("pending_recipients", view.pendingRecipients), ("waiting_for_device", view.waitingForDevice),
            ("parked", view.parked), ("assigned_partitions", view.assigned), ("paused_partitions", view.paused),
            ("loop_lag_s", view.loopLagSeconds), ("cpu", view.cpu), ("memory_bytes", view.memoryBytes),
            ("open_fds", view.openFiles),
        ] as [(StaticString, Double?)] {
            number(name, value, &writer)
        }
        list("brokers", view.brokers, &writer) { broker, writer in
            writer.member("broker", broker.name)
            writer.member("up", broker.isUp)
        }
        texts("brakes", view.brakes, &writer)
    }

    private static func write(_ client: FleetView.Client, _ writer: inout JSONWriter) {
        writer.member("app", client.app)
        writer.member("env", ifPresent: client.environment)
        writer.member("credential", ifPresent: client.credential)
        number("connections", client.connections, &writer)
        number("in_flight", client.inFlight, &writer)
        number("limit", client.limit, &writer)
        number("queued", client.queued, &writer)
        writer.member("breaker", client.breaker > 1 ? "open" : client.breaker > 0 ? "asking" : "closed")
        writer.member("credential_refused", client.isPaused)
        number("certificate_days_left", client.daysLeft, &writer)
    }

    private static func redis(_ view: FleetView, _ writer: inout JSONWriter) {
        writer.key("redis")
        writer.beginObject()
        writer.member("shards", Int64(view.shards))
        writer.member("connected", Int64(view.redisReady))
        number("waiting", view.redisDepth, &writer)
        number("keys", view.redisKeys, &writer)
        texts("faults", view.redisFaults, &writer)
        list("nodes", view.redisNodes, &writer) { node, writer in
            writer.member("place", node.place)
            writer.member("shards", Int64(node.shards))
            writer.member("connected", Int64(node.connected))
            writer.member("waiting", node.waiting)
            writer.member("fault", ifPresent: node.why)
            number("errors_per_s", node.errorRate, &writer)
            number("redirects_per_s", node.redirectRate, &writer)
        }
        writer.endObject()
    }

    // MARK: - Parts

    private static func list<Element>(
        _ name: StaticString, _ elements: [Element], _ writer: inout JSONWriter,
        _ fill: (Element, inout JSONWriter) -> Void
    ) {
        writer.key(name)
        writer.beginArray()
        for element in elements {
            writer.beginObject()
            fill(element, &writer)
            writer.endObject()
        }
        writer.endArray()
    }

    private static func texts(_ name: StaticString, _ texts: [String], _ writer: inout JSONWriter) {
        writer.key(name)
        writer.beginArray()
        for text in texts { writer.string(text) }
        writer.endArray()
    }

    private static func number(_ name: StaticString, _ value: Double?, _ writer: inout JSONWriter) {
        guard let value else { return }
        writer.key(name)
        writer.double(rounded(value))
    }

    /// Six decimals are enough.
    private static func rounded(_ value: Double) -> Double { abs(value) < 1e9 ? (value * 1e6).rounded() / 1e6 : value }
}
