// SPDX-License-Identifier: Apache-2.0
import CRdkafka
import Glibc
import Telemetry

/// A Kafka-protocol cluster in this process, over real TCP on 127.0.0.1, for tests, demo and bench.
///
/// This is librdkafka's own mock: groups, offsets, headers and idempotent writes work. It keeps at most 5 MiB per
/// partition, aborts the process when one group mixes assignment strategies, and waits `session.timeout.ms` at
/// rebalances (set 6000). Any thread may call any method.
///
/// Unchecked Sendable: the library's mock functions pass to the mock's own thread or take its lock.
public final class MockBroker: @unchecked Sendable {
    private let raw: OpaquePointer
    private let cluster: OpaquePointer
    /// Brokers are numbered 1…count.
    public let count: Int

    /// Starts `brokers` listeners on free ports.
    public init(brokers: Int = 1) throws(KafkaFault) {
        guard let conf = rd_kafka_conf_new() else { throw .creation("out of memory") }
        rd_kafka_conf_set(conf, "client.id", "mock", nil, 0)
        rd_kafka_conf_set(conf, "log_level", "3", nil, 0)
        var made: OpaquePointer?
        let why = withErrorText { text, capacity in
            made = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, capacity)
            return made != nil
        }
        guard let made else {
            rd_kafka_conf_destroy(conf)
            throw .creation(why ?? "no reason given")
        }
        count = max(1, min(brokers, 64))
        let brokers = Int32(count)
        guard let cluster = Self.withoutSignals({ rd_kafka_mock_cluster_new(made, brokers) }) else {
            rd_kafka_destroy(made)
            throw .creation("the mock cluster did not start")
        }
        raw = made
        self.cluster = cluster
    }

    deinit {
        rd_kafka_mock_cluster_destroy(cluster)
        rd_kafka_destroy(raw)
    }

    /// The mock's own thread treats a poll interrupted by a signal as its end, and frees the cluster while it is in use
    /// (librdkafka 2.0.2, rdkafka_mock.c). A thread inherits its creator's mask, so it is created with every signal
    /// blocked.
    private static func withoutSignals<Result>(_ body: () -> Result) -> Result {
        var (all, before) = (sigset_t(), sigset_t())
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        return body()
    }

    /// `127.0.0.1:port` of all brokers, separated by commas.
    public var bootstrap: String {
        rd_kafka_mock_cluster_bootstraps(cluster).map { String(cString: $0) } ?? ""
    }

    /// Creates a topic. The mock refuses an existing one.
    public func createTopic(_ name: String, partitions: Int) throws(KafkaFault) {
        try check(
            rd_kafka_mock_topic_create(cluster, name, Int32(clamping: partitions), Int32(min(count, 3))),
            "creating topic \(name)")
    }

    /// Closes the broker's connections and refuses new ones. Leaders do not move by themselves.
    public func setDown(broker: Int) throws(KafkaFault) {
        // The mock closes its listener, binds the port again, and ends the process if a child has the listener still.
        let code = ChildStart.lock.withLock { _ in rd_kafka_mock_broker_set_down(cluster, Int32(clamping: broker)) }
        try check(code, "taking broker \(broker) down")
    }

    public func setUp(broker: Int) throws(KafkaFault) {
        try check(rd_kafka_mock_broker_set_up(cluster, Int32(clamping: broker)), "bringing broker \(broker) up")
    }

    /// Delays every answer of one broker.
    public func setRTT(broker: Int, milliseconds: Int) throws(KafkaFault) {
        try check(
            rd_kafka_mock_broker_set_rtt(cluster, Int32(clamping: broker), Int32(clamping: milliseconds)),
            "setting the delay of broker \(broker)")
    }

    /// Makes the next `errorCodes.count` requests of kind `api` fail with these Kafka error codes, in order.
    public func pushErrors(api: RequestKind, _ errorCodes: [Int32]) {
        let errors = errorCodes.map { rd_kafka_resp_err_t(rawValue: $0) }
        rd_kafka_mock_push_request_errors_array(cluster, api.rawValue, errors.count, errors)
    }

    /// Removes the remaining errors of `pushErrors`.
    public func clearErrors(api: RequestKind) {
        rd_kafka_mock_clear_request_errors(cluster, api.rawValue)
    }

    /// Makes the brokers report this error for a topic.
    public func setError(topic: String, _ errorCode: Int32) {
        rd_kafka_mock_topic_set_error(cluster, topic, rd_kafka_resp_err_t(rawValue: errorCode))
    }

    /// Moves a partition's leadership.
    public func setLeader(topic: String, partition: Int, broker: Int) throws(KafkaFault) {
        try check(
            rd_kafka_mock_partition_set_leader(
                cluster, topic, Int32(clamping: partition), Int32(clamping: broker)),
            "moving the leader of \(topic)[\(partition)]")
    }

    /// Moves a group's coordinator.
    public func setCoordinator(group: String, broker: Int) throws(KafkaFault) {
        try check(
            rd_kafka_mock_coordinator_set(cluster, "group", group, Int32(clamping: broker)),
            "moving the coordinator of \(group)")
    }

    /// Kafka's protocol number of a request.
    public struct RequestKind: RawRepresentable, Sendable {
        public let rawValue: Int16
        public init(rawValue: Int16) { self.rawValue = rawValue }

        public static var produce: RequestKind { RequestKind(rawValue: 0) }
        public static var fetch: RequestKind { RequestKind(rawValue: 1) }
        public static var listOffsets: RequestKind { RequestKind(rawValue: 2) }
        public static var metadata: RequestKind { RequestKind(rawValue: 3) }
        public static var offsetCommit: RequestKind { RequestKind(rawValue: 8) }
        public static var offsetFetch: RequestKind { RequestKind(rawValue: 9) }
        public static var findCoordinator: RequestKind { RequestKind(rawValue: 10) }
        public static var joinGroup: RequestKind { RequestKind(rawValue: 11) }
        public static var heartbeat: RequestKind { RequestKind(rawValue: 12) }
        public static var initProducerID: RequestKind { RequestKind(rawValue: 22) }
    }

    private func check(_ code: rd_kafka_resp_err_t, _ doing: String) throws(KafkaFault) {
        if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw .call(doing: doing, KafkaError(code)) }
    }
}
