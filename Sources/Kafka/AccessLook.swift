// SPDX-License-Identifier: Apache-2.0
import CRdkafka
import Telemetry

/// The user's read rights for the topics and the group, found by trying. Control plane, for `check`.
///
/// It disturbs nobody: it does not join the group, commits nothing, and takes no records from the group.
public struct AccessLook: Sendable {
    /// The reason for each topic that cannot be read, by name.
    public let refused: [String: KafkaError]
    /// The reason for each topic that the cluster does not list for this user, by name.
    public let unlisted: [String: KafkaError]
    /// Topics without an answer from the brokers in time.
    public let unanswered: [String]
    /// The reason why the group's offsets cannot be read; nil if they can.
    public let group: KafkaError?
    /// Problems on the way to the partitions' leaders.
    public let troubles: [KafkaTrouble]

    /// Reads the end of each partition and the group's committed offsets. Blocks up to `patienceMs` for each query.
    ///
    /// - Parameters:
    ///   - topics: the topics to read, from `ClusterMetadata`.
    ///   - unlisted: topics that are missing there.
    public static func ask(
        _ configuration: KafkaConfiguration, topics: [ClusterMetadata.Topic], unlisted: [String],
        patienceMs: Int = 5_000
    ) throws(KafkaFault) -> AccessLook {
        let lines = Guarded<[KafkaLogLine]>([])
        var own = configuration
        own.options["allow.auto.create.topics"] = "false"
        own.options["fetch.error.backoff.ms"] = "10"
        own.log = { line in if line.facility == CertificateRefusal.facility { lines.withLock { $0.append(line) } } }
        let handle = try ClientHandle(own, role: .consumer) { conf in
            rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_FETCH)
            CertificateRefusal.tellWords(conf)
        }
        rd_kafka_poll_set_consumer(handle.raw)
        guard let queue = rd_kafka_queue_get_consumer(handle.raw) else { throw .creation("no consumer queue") }
        defer { rd_kafka_queue_destroy(queue) }
        var reading = Reading(topics)
        try assignEnds(handle, topics)
        var deadline = monotonicMs() + Int64(patienceMs)
        var wasOver = false
        while monotonicMs() < deadline {
            // If one answer has an end and another a refusal, the library reports the end first, and the refusal with
            // the next answer.
            if reading.isOver, !wasOver {
                wasOver = true
                deadline = min(deadline, monotonicMs() + Self.afterEndMs)
            }
            guard let event = rd_kafka_queue_poll(queue, 100) else { continue }
            defer { rd_kafka_event_destroy(event) }
            reading.take(event, lines: lines.withLock { $0 })
        }
        var hidden: [String: KafkaError] = [:]
        for name in unlisted { hidden[name] = handle.topic(name, timeoutMs: patienceMs)?.error }
        var group = reading.group
        if group == nil, !topics.isEmpty { group = committed(handle, topics, patienceMs: patienceMs) }
        // A refused coordinator is reported as an event, and the query above is never sent.
        while let event = rd_kafka_queue_poll(queue, 0) {
            defer { rd_kafka_event_destroy(event) }
            reading.take(event, lines: lines.withLock { $0 })
        }
        return AccessLook(
            refused: reading.refused, unlisted: hidden, unanswered: reading.unanswered, group: reading.group ?? group,
            troubles: reading.troubles.all)
    }

    private static let afterEndMs: Int64 = 300

    /// From the end of each partition, so that only a new record can arrive.
    private static func assignEnds(_ handle: ClientHandle, _ topics: [ClusterMetadata.Topic]) throws(KafkaFault) {
        guard let list = rd_kafka_topic_partition_list_new(Int32(clamping: topics.count)) else {
            throw .creation("out of memory")
        }
        defer { rd_kafka_topic_partition_list_destroy(list) }
        for topic in topics {
            for partition in topic.partitions {
                rd_kafka_topic_partition_list_add(list, topic.name, partition)?.pointee.offset =
                    Int64(RD_KAFKA_OFFSET_END)
            }
        }
        let code = rd_kafka_assign(handle.raw, list)
        if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw .call(doing: "assigning partitions", KafkaError(code)) }
    }

    private static func committed(
        _ handle: ClientHandle, _ topics: [ClusterMetadata.Topic], patienceMs: Int
    ) -> KafkaError? {
        guard let list = rd_kafka_topic_partition_list_new(Int32(clamping: topics.count)) else { return nil }
        defer { rd_kafka_topic_partition_list_destroy(list) }
        for topic in topics {
            if let partition = topic.partitions.first {
                rd_kafka_topic_partition_list_add(list, topic.name, partition)
            }
        }
        let code = rd_kafka_committed(handle.raw, list, Int32(clamping: patienceMs))
        return code == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : KafkaError(code)
    }
}

/// The answers for the assigned partitions.
private struct Reading {
    /// Partitions without an answer yet.
    private var open: [String: Set<Int32>]
    var refused: [String: KafkaError] = [:]
    var group: KafkaError?
    var troubles = TroubleList()

    init(_ topics: [ClusterMetadata.Topic]) {
        open = Dictionary(topics.map { ($0.name, Set($0.partitions)) }) { first, _ in first }
    }

    var isOver: Bool { open.isEmpty }

    var unanswered: [String] { open.keys.sorted() }

    mutating func take(_ event: OpaquePointer, lines: [KafkaLogLine]) {
        guard rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR else {
            while let message = rd_kafka_event_message_next(event) {
                let topic = message.pointee.rkt.flatMap { rd_kafka_topic_name($0) }.map { String(cString: $0) }
                if let topic { close(topic, message.pointee.partition) }
            }
            return
        }
        let error = KafkaError(event)
        guard let place = rd_kafka_event_topic_partition(event) else {
            if error.code == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED.rawValue {
                group = error
            } else {
                troubles.add(error, lines: lines)
            }
            return
        }
        defer { rd_kafka_topic_partition_destroy(place) }
        guard let name = place.pointee.topic else { return }
        let topic = String(cString: name)
        if error.code != RD_KAFKA_RESP_ERR__PARTITION_EOF.rawValue {
            // A leader that moves answers the next time.
            guard error.isDenied || error.isUnknownTopic else { return }
            refused[topic] = error
            open[topic] = nil
        }
        close(topic, place.pointee.partition)
    }

    private mutating func close(_ topic: String, _ partition: Int32) {
        open[topic]?.remove(partition)
        if open[topic]?.isEmpty ?? false { open[topic] = nil }
    }
}
