// SPDX-License-Identifier: Apache-2.0
/// A partition of one of the client's topics; the topic is an index into the client's list.
///
/// An index instead of a name keeps the hot path free of strings.
public struct TopicPartition: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// Index into the consumer's `topics`.
    public let topic: Int
    public let partition: Int32

    public init(topic: Int, partition: Int32) {
        self.topic = topic
        self.partition = partition
    }

    public static func < (one: TopicPartition, other: TopicPartition) -> Bool {
        (one.topic, one.partition) < (other.topic, other.partition)
    }

    public var description: String { "#\(topic)[\(partition)]" }
}

/// A partition with the offset of its next record.
public struct PartitionOffset: Equatable, Sendable {
    public let partition: TopicPartition
    /// The next offset to read, as Kafka counts commits; nil if the group has none yet.
    public let offset: Int64?
    /// Settled offsets beyond it; nil for none, or if unknown.
    public let settled: SettledOffsets?

    public init(partition: TopicPartition, offset: Int64?, settled: SettledOffsets? = nil) {
        self.partition = partition
        self.offset = offset
        self.settled = settled
    }
}
