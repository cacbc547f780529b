// SPDX-License-Identifier: Apache-2.0
import CRdkafka

/// A group's settled offsets and the ends of some topics, from the brokers, without joining the group.
///
/// For commands. Each query blocks its thread, so never on a loop. Not Sendable.
public final class KafkaGroupLag {
    /// A partition at one look.
    public struct Partition: Equatable, Sendable {
        public let topic: String
        public let partition: Int32
        /// The group's next offset; nil if it has committed nothing yet.
        public let committed: Int64?
        /// The offset of the next record.
        public let end: Int64
        /// The oldest kept offset.
        public let start: Int64

        public init(topic: String, partition: Int32, committed: Int64?, end: Int64, start: Int64) {
            self.topic = topic
            self.partition = partition
            self.committed = committed
            self.end = end
            self.start = start
        }

        /// Records that the group has not settled.
        public var records: Int64 { max(0, end - max(committed ?? start, start)) }
    }

    private let handle: ClientHandle
    private let places: [(topic: String, partition: Int32)]

    /// Looks the topics up; missing ones are left out. `configuration.group` is the group to query.
    public init(
        _ configuration: KafkaConfiguration, topics: [String], timeoutMs: Int = 10_000
    ) throws(KafkaFault) {
        handle = try ClientHandle(configuration, role: .consumer) { _ in }
        let metadata = try ClusterMetadata.fetch(handle, timeoutMs: timeoutMs)
        places = topics.flatMap { topic in (metadata.topic(topic)?.partitions ?? []).map { (topic, $0) } }
    }

    /// One look at every partition.
    public func measure(timeoutMs: Int = 5_000) throws(KafkaFault) -> [Partition] {
        guard let list = rd_kafka_topic_partition_list_new(Int32(clamping: places.count)) else {
            throw .creation("out of memory")
        }
        defer { rd_kafka_topic_partition_list_destroy(list) }
        for place in places { rd_kafka_topic_partition_list_add(list, place.topic, place.partition) }
        let code = rd_kafka_committed(handle.raw, list, Int32(clamping: timeoutMs))
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
            throw .call(doing: "asking for the group's committed offsets", KafkaError(code))
        }
        var partitions: [Partition] = []
        partitions.reserveCapacity(places.count)
        for (index, place) in places.enumerated() {
            let offset = (list.pointee.elems + index).pointee.offset
            var low: Int64 = 0
            var high: Int64 = 0
            let code = rd_kafka_query_watermark_offsets(
                handle.raw, place.topic, place.partition, &low, &high, Int32(clamping: timeoutMs))
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
                throw .call(doing: "asking for the end of \(place.topic)[\(place.partition)]", KafkaError(code))
            }
            partitions.append(
                Partition(
                    topic: place.topic, partition: place.partition, committed: offset >= 0 ? offset : nil, end: high,
                    start: low))
        }
        return partitions
    }
}
