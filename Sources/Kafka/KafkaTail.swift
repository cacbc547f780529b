// SPDX-License-Identifier: Apache-2.0
import CRdkafka

/// Reads records written to a topic from now on, without a group and without blocking.
///
/// For commands that watch during other work; for one thread only.
public final class KafkaTail {
    public let topic: String
    private let handle: ClientHandle
    /// By partition: the offset of the next record to deliver.
    private var positions: [Int32: Int64] = [:]

    /// Finds the ends. Records written after this returns are read. Blocks up to `timeoutMs` for each query.
    public init(_ configuration: KafkaConfiguration, topic: String, timeoutMs: Int = 10_000) throws(KafkaFault) {
        var own = configuration
        // Never joined and never committed to, but the library requires a name.
        if own.group.isEmpty { own.group = "carillon-reader" }
        own.offsetReset = .earliest
        // A query for the ends waits behind a fetch that waits for records.
        own.options["fetch.wait.max.ms"] = "50"
        let handle = try ClientHandle(own, role: .consumer) { _ in }
        self.handle = handle
        self.topic = topic
        rd_kafka_poll_set_consumer(handle.raw)
        guard let found = try ClusterMetadata.fetch(handle, timeoutMs: timeoutMs).topic(topic) else {
            let unknown = KafkaError(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
            throw .call(doing: "reading topic \(topic)", unknown)
        }
        if let error = found.error { throw .call(doing: "reading topic \(topic)", error) }
        for partition in found.partitions { positions[partition] = 0 }
        positions = try ends(timeoutMs: timeoutMs)
        guard let list = rd_kafka_topic_partition_list_new(Int32(clamping: positions.count)) else {
            throw .creation("out of memory")
        }
        defer { rd_kafka_topic_partition_list_destroy(list) }
        for (partition, offset) in positions {
            rd_kafka_topic_partition_list_add(list, topic, partition)?.pointee.offset = offset
        }
        let code = rd_kafka_assign(handle.raw, list)
        if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw .call(doing: "assigning \(topic)", KafkaError(code)) }
    }

    /// Passes at most `max` available records to `visit`. Returns their number.
    @discardableResult
    public func take(max: Int, _ visit: (borrowing KafkaRecord) -> Void) -> Int {
        var count = 0
        while count < max, let message = rd_kafka_consumer_poll(handle.raw, 0) {
            defer { rd_kafka_message_destroy(message) }
            guard message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR else { continue }
            count += 1
            let record = KafkaRecord(message, partition: TopicPartition(topic: 0, partition: message.pointee.partition))
            positions[message.pointee.partition] = record.offset &+ 1
            visit(record)
        }
        return count
    }

    /// The end offset of each partition.
    public func ends(timeoutMs: Int = 10_000) throws(KafkaFault) -> [Int32: Int64] {
        var ends: [Int32: Int64] = [:]
        for partition in positions.keys {
            var low: Int64 = 0
            var high: Int64 = 0
            let code = rd_kafka_query_watermark_offsets(
                handle.raw, topic, partition, &low, &high, Int32(clamping: timeoutMs))
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
                throw .call(doing: "asking for the end of \(topic)[\(partition)]", KafkaError(code))
            }
            ends[partition] = high
        }
        return ends
    }

    /// - Returns: whether everything before these offsets was delivered.
    public func hasReached(_ ends: [Int32: Int64]) -> Bool {
        ends.allSatisfy { partition, end in (positions[partition] ?? 0) >= end }
    }
}
