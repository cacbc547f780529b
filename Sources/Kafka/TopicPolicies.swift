// SPDX-License-Identifier: Apache-2.0
import CRdkafka

/// The `cleanup.policy` and `retention.ms` of topics. Control plane, for `check`.
public struct TopicPolicies: Sendable {
    /// By topic; absent where the broker did not say it.
    public let policies: [String: String]
    /// The same of `retention.ms`; -1: no limit.
    public let retentionsMs: [String: Int64]
    /// Why the brokers say nothing of a topic, by name.
    public let refused: [String: KafkaError]

    /// Asks the brokers with a client that lives for this question. Blocks up to `patienceMs`. A cluster that knows no such question
    /// answers nothing.
    public static func ask(
        _ configuration: KafkaConfiguration, topics: [String], patienceMs: Int = 5_000
    ) throws(KafkaFault) -> TopicPolicies {
        let handle = try ClientHandle(configuration, role: .producer) { _ in }
        guard let queue = rd_kafka_queue_new(handle.raw),
            let options = rd_kafka_AdminOptions_new(handle.raw, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS)
        else { throw .creation("out of memory") }
        defer {
            rd_kafka_AdminOptions_destroy(options)
            rd_kafka_queue_destroy(queue)
        }
        rd_kafka_AdminOptions_set_request_timeout(options, Int32(clamping: patienceMs), nil, 0)
        var resources = topics.map { rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, $0) }
        defer { for resource in resources { rd_kafka_ConfigResource_destroy(resource) } }
        rd_kafka_DescribeConfigs(handle.raw, &resources, resources.count, options, queue)
        guard let event = rd_kafka_queue_poll(queue, Int32(clamping: patienceMs)) else {
            return TopicPolicies(policies: [:], retentionsMs: [:], refused: [:])
        }
        defer { rd_kafka_event_destroy(event) }
        return TopicPolicies(event)
    }

    private init(policies: [String: String], retentionsMs: [String: Int64], refused: [String: KafkaError]) {
        self.policies = policies
        self.retentionsMs = retentionsMs
        self.refused = refused
    }

    private init(_ event: OpaquePointer) {
        var policies: [String: String] = [:]
        var retentionsMs: [String: Int64] = [:]
        var refused: [String: KafkaError] = [:]
        var count = 0
        let found = rd_kafka_event_DescribeConfigs_result(event).flatMap {
            rd_kafka_DescribeConfigs_result_resources($0, &count)
        }
        for resource in UnsafeBufferPointer(start: found, count: found == nil ? 0 : count) {
            guard let resource, let name = rd_kafka_ConfigResource_name(resource) else { continue }
            let topic = String(cString: name)
            let code = rd_kafka_ConfigResource_error(resource)
            if code != RD_KAFKA_RESP_ERR_NO_ERROR { refused[topic] = KafkaError(code) }
            policies[topic] = Self.setting("cleanup.policy", of: resource)
            retentionsMs[topic] = Self.setting("retention.ms", of: resource).flatMap { Int64($0) }
        }
        self.init(policies: policies, retentionsMs: retentionsMs, refused: refused)
    }

    private static func setting(_ wanted: String, of resource: OpaquePointer) -> String? {
        var count = 0
        guard let entries = rd_kafka_ConfigResource_configs(resource, &count) else { return nil }
        for entry in UnsafeBufferPointer(start: entries, count: count) {
            guard let entry, let name = rd_kafka_ConfigEntry_name(entry), String(cString: name) == wanted else {
                continue
            }
            return rd_kafka_ConfigEntry_value(entry).map { String(cString: $0) }
        }
        return nil
    }
}
