// SPDX-License-Identifier: Apache-2.0
import Kafka

/// Partitions that began again at a lower offset: their topic was created again, or its log was cut.
struct PartitionRestarts {
    private static let shownNanos: UInt64 = 600_000_000_000

    /// Until when (monotonic) an operator is to see it, by topic.
    private var shownUntil: [Int: UInt64] = [:]
    /// Partitions of the first topic, before a heartbeat has lowered their places.
    var places: Set<Int32> = []

    mutating func note(_ partition: TopicPartition, nowNanos: UInt64) {
        shownUntil[partition.topic] = nowNanos &+ Self.shownNanos
        if partition.topic == 0 { places.insert(partition.partition) }
    }

    /// Topics with such a partition lately.
    func topics(nowNanos: UInt64) -> [Int] { shownUntil.filter { $0.value > nowNanos }.keys.sorted() }
}
