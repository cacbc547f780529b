// SPDX-License-Identifier: Apache-2.0
import Kafka
package import KafkaModel

/// A mirrored Kafka cluster: the same records at other offsets, and the group's offsets translated.
package struct Mirror {
    /// A partition of the mirror.
    package struct Log {
        /// The offset of each record on the mirror, by its offset on the first cluster.
        package var offsets: [Int64: Int64] = [:]
        /// Records that were not mirrored yet.
        package var missing: [ModelRecord] = []
    }

    package var clusterID: String
    /// The offset of the oldest record of a partition.
    package var firstOffset: (_ topic: String, _ partition: Int) -> Int64 = { _, _ in 0 }
    /// How many of the newest records of a partition were not mirrored yet.
    package var missingCount: (_ topic: String, _ partition: Int) -> Int = { _, _ in 0 }
    /// How many records a translated offset lies before the group's place; nil: the group's offset is not translated.
    package var lag: (_ topic: String, _ partition: Int) -> Int? = { _, _ in 0 }
    /// Whether the tool copies the metadata of commits.
    package var copiesMetadata = true

    package init(clusterID: String) { self.clusterID = clusterID }

    /// The mirror takes the place of the cluster. All clients have ended.
    ///
    /// - Parameter topics: those that workers read.
    /// - Returns: the partitions by topic.
    package func takePlace(of kafka: KafkaModel, topics: [String], group: String) -> [String: [Log]] {
        let copies = topics.map { topic in
            (0..<kafka.partitionCount(of: topic)).map { partition in
                (
                    records: Array(kafka.records(topic, partition)), end: kafka.range(topic, partition).upperBound,
                    place: kafka.committed(group, topic, partition)
                )
            }
        }
        kafka.becomeOther(clusterID)
        var logs: [String: [Log]] = [:]
        for (topic, copies) in zip(topics, copies) {
            kafka.recreate(topic)
            for (partition, copy) in copies.enumerated() {
                let first = firstOffset(topic, partition)
                kafka.skipOffsets(topic, partition, count: first)
                kafka.trim(topic, partition, to: first)
                let count = max(0, copy.records.count - missingCount(topic, partition))
                var log = Log(missing: Array(copy.records[count...]))
                for var record in copy.records[..<count] {
                    record.createdMs = record.timestampMs
                    log.offsets[record.offset] = kafka.append(record, to: topic, partition)
                }
                logs[topic, default: []].append(log)
                // No tool translates a place beyond the log's end, as of a topic that is no more.
                guard let place = copy.place, let offset = place.offset, offset <= copy.end,
                    let lag = lag(topic, partition)
                else { continue }
                let read = copy.records[..<count].count { $0.offset < offset }
                kafka.setCommitted(
                    group, topic, partition, offset: first + Int64(max(0, read - lag)),
                    metadata: copiesMetadata ? place.metadata : [])
            }
        }
        return logs
    }
}
