// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Fleet
import JSON
import Kafka
import Redis
import Telemetry

@testable import Worker

/// Facts of a page as a worker's shards and metrics would tell them, with one text in every place that takes one.
enum PageWorld {
    static func snapshot(
        _ text: String, shards: Int = 1, partitions: Int = 2, nodes: Int = 1, apps: Int = 1
    ) -> ProcessSnapshot {
        let endToEnd = (0..<5).map { _ in Histogram(bounds: [1], scale: 1e-3, precisionBits: 7) }
        for index in [0, 1, 2] { endToEnd[index].observe(20) }
        return ProcessSnapshot(
            shards: (0..<shards).map { index in
                var shard = ShardStatus(
                    index: index, assignedPartitions: partitions, pausedPartitions: 0, kafkaReach: .partial,
                    isRedisReady: false, redisFault: text, redisRefusal: text, owedClaims: 0, hasLostTokens: false,
                    pendingRecords: 0, pendingRecipients: 0, parkedRecords: 0, overShare: [text], settledRecords: 0,
                    clients: [client(text)],
                    apps: (0..<apps).map { ShardStatus.App(id: "\(text)\($0)", accepted: 12, opened: 3) },
                    brakes: [ShardStatus.Brake(app: text, cause: text)], endToEnd: endToEnd)
                shard.readPartitions = partitions
                shard.partitions = (0..<partitions).map {
                    ShardStatus.Partition(
                        topic: text, partition: Int32($0), unsettled: 1, oldestSeconds: 4, settledTo: 5, readTo: 6,
                        lag: 7,
                        isPaused: true)
                }
                shard.redisPlaces = (0..<nodes).map {
                    RedisPlace(place: "\(text)\($0)", isReady: false, waiting: 1, why: text)
                }
                return shard
            })
    }

    private static func client(_ text: String) -> ShardStatus.Client {
        ShardStatus.Client(
            app: text, environment: "production", isDefault: true, host: text, isUsable: false, isBreakerOpen: true,
            pausedBecause: text, refusedCredential: text, connections: 1, inFlight: 0, queued: 0)
    }

    /// Two looks, two seconds apart.
    static func watch(_ text: String) -> (watch: OperatorWatch, registry: MetricsRegistry, counters: [Counter]) {
        let registry = MetricsRegistry()
        let app = [("app", text)]
        let client = app + [("env", text), ("credential", text)]
        let counters = [
            registry.counter("carillon_events_consumed_total", help: ""),
            registry.counter("carillon_events_settled_total", help: ""),
            registry.counter("carillon_push_attempts_total", help: "", labels: client + [("result", "accepted")]),
            registry.counter("carillon_push_attempts_total", help: "", labels: client + [("result", "rejected")]),
            registry.counter("carillon_deliveries_total", help: "", labels: app),
            registry.counter(
                "carillon_decisions_total", help: "", labels: app + [("verdict", "rejected"), ("reason", text)]),
            registry.counter(
                "carillon_backpressure_seconds_total", help: "", labels: [("cause", "redis")], scale: 1e-3),
            registry.counter("carillon_dlq_records_total", help: "", labels: [("reason", text)]),
        ]
        registry.gauge("carillon_apns_connections", help: "", labels: client + [("state", "ready")]).set(3)
        registry.gauge("carillon_breaker_state", help: "", labels: client + [("scope", "app")]).set(2)
        registry.gauge(
            "carillon_credential_expiry_timestamp_seconds", help: "", labels: app + [("credential", text)]
        ).set(1_700_000_000 + 3 * 86_400)
        registry.gauge("carillon_credential_replacement_refused", help: "", labels: app + [("credential", text)]).set(1)
        registry.gauge("carillon_kafka_lag_records", help: "", labels: [("topic", text)]).set(1234)
        registry.gauge("carillon_kafka_broker_up", help: "", labels: [("broker", text)]).set(0)
        return (OperatorWatch(registry), registry, counters)
    }

    static func facts(_ text: String) -> PageFacts {
        let (watch, _, counters) = watch(text)
        let snapshot = snapshot(text)
        var nowNanos: UInt64 = 1_000_000_000
        for _ in 0..<20 {
            watch.tick(snapshot, nowNanos: nowNanos, wallMs: 1_700_000_000_000)
            for counter in counters { counter.add(10) }
            nowNanos += 2_000_000_000
        }
        var facts = watch.facts(snapshot, nowNanos: nowNanos, wallMs: 1_700_000_000_000)
        facts.host = "a machine"
        return facts
    }
}
