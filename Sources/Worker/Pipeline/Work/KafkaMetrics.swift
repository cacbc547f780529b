// SPDX-License-Identifier: Apache-2.0
import Kafka
import Telemetry

/// Error metrics of one shard's consumers.
final class KafkaMetrics {
    private let registry: MetricsRegistry
    private var errors: [Int32: Counter] = [:]
    /// For errors beyond the bounds.
    private lazy var otherErrors = errorCounter("other")

    private var oddTimes: [String: Counter] = [:]

    private static let codesMax = 40

    init(_ registry: MetricsRegistry) {
        self.registry = registry
        for error in KafkaError.outages { errors[error.code] = errorCounter(error.name) }
    }

    func failed(_ error: KafkaError) {
        if let counter = errors[error.code] { return counter.add() }
        guard errors.count < Self.codesMax else { return otherErrors.add() }
        let counter = errorCounter(error.name)
        errors[error.code] = counter
        counter.add()
    }

    /// From now on, the topic's counters stand at zero.
    func begin(_ topic: String) { oddTimes[topic] = oddTimeCounter(topic) }

    func oddTime(_ topic: String) {
        if oddTimes[topic] == nil { begin(topic) }
        oddTimes[topic]?.add()
    }

    private func oddTimeCounter(_ topic: String) -> Counter {
        registry.counter(
            "carillon_kafka_odd_times_total",
            help: "Records with a Kafka time that is not in milliseconds; it counts as absent.",
            labels: [("topic", topic)])
    }

    private func errorCounter(_ code: String) -> Counter {
        registry.counter(
            "carillon_kafka_errors_total", help: "Errors that the consumers met, by librdkafka's name.",
            labels: [("code", code)])
    }
}

/// The brokers to which one consumer is connected.
final class BrokerMetrics {
    private let registry: MetricsRegistry
    private var brokers: [Int64: Gauge] = [:]

    private static let brokersMax = 50

    init(_ registry: MetricsRegistry) { self.registry = registry }

    /// - Parameter id: the broker's number in the cluster; those beyond the bound are left out.
    func set(_ id: Int64, isUp: Bool) {
        if brokers[id] == nil, brokers.count >= Self.brokersMax { return }
        let gauge =
            brokers[id]
            ?? registry.gauge(
                "carillon_kafka_broker_up", help: "1: some consumer has a connection to the broker, by its id.",
                labels: [("broker", "\(id)")], combine: .max)
        brokers[id] = gauge
        gauge.set(isUp ? 1 : 0)
    }
}

/// The group's lag in one shard's partitions of a topic.
final class LagMetrics {
    private let records: Gauge
    private let seconds: Gauge

    init(_ registry: MetricsRegistry, topic: String) {
        records = registry.gauge(
            "carillon_kafka_lag_records", help: "Records between the group's committed position and the end.",
            labels: [("topic", topic)])
        seconds = registry.gauge(
            "carillon_kafka_lag_seconds", help: "Age of the oldest record that the group has not committed.",
            labels: [("topic", topic)], combine: .max)
    }

    func set(_ lag: GroupLag, nowMs: Int64) {
        records.set(Double(lag.records))
        seconds.set(lag.seconds(nowMs: nowMs))
    }

    /// No partition of the topic is read here, or the brokers have not reported yet.
    func setUnknown() {
        records.setUnknown()
        seconds.setUnknown()
    }
}
