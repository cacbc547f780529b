// SPDX-License-Identifier: Apache-2.0
import Kafka

/// The topics and partitions of a consumer, with its progress in numbers.
extension Intake {
    /// Its partitions of the input topics; the worker's own topics do not count.
    var assignedCount: Int { consumer.assignment.reduce(0) { classes[$1.topic].isOurs ? $0 : $0 + 1 } }

    /// Its topics, if the group has never assigned them; some groups do not report an empty assignment.
    var awaitedTopics: [String] { isAssigned || !consumer.isToldOfEmptyShares ? [] : consumer.topics }

    /// The state of each partition that it reads, except those of `carillon.parked`.
    var partitionStatuses: [ShardStatus.Partition] {
        consumer.assignment.filter { !ledgers.isParked($0) }.map { partition in
            let age = ledgers.main.oldestUnsettledAgeNanos(in: partition, nowNanos: shard.nowNanos)
            let read = consumer.position(partition)
            let settled = ledgers.main.settledEnd(partition) ?? read
            let end = consumer.highWatermark(partition)
            return ShardStatus.Partition(
                topic: consumer.topics[partition.topic], partition: partition.partition,
                unsettled: ledgers.main.unsettled(in: partition),
                oldestSeconds: age.map { Double($0) / 1e9 }, settledTo: settled, readTo: read,
                lag: end.flatMap { end in settled.map { max(0, end - $0) } },
                isPaused: consumer.paused.contains(partition))
        }
    }

    /// By partition of its first topic: all before this offset is settled.
    var settledPlaces: [Int32: Int64] {
        var places: [Int32: Int64] = [:]
        for partition in consumer.assignment where partition.topic == 0 {
            places[partition.partition] = ledgers.main.settledEnd(partition) ?? consumer.position(partition)
        }
        return places
    }

    /// The ends of these partitions of its first topic, as far as brokers gave them.
    func givenEnds(_ partitions: some Sequence<Int32>) -> [Int32: Int64] {
        var ends: [Int32: Int64] = [:]
        for partition in partitions {
            ends[partition] = consumer.givenEnd(TopicPartition(topic: 0, partition: partition))
        }
        return ends
    }

    /// The log that offsets of its first topic belong to; empty: no broker has said which cluster it is.
    var logName: String { consumer.clusterID.map { "\($0)/\(consumer.topics[0])" } ?? "" }

    /// The number of `partitionStatuses`.
    var readPartitions: Int { consumer.assignment.reduce(0) { ledgers.isParked($1) ? $0 : $0 + 1 } }

    /// Those of them that are paused now.
    var pausedCount: Int { consumer.paused.reduce(0) { classes[$1.topic].isOurs ? $0 : $0 + 1 } }

    /// Partitions of `carillon.parked` with a full window.
    var fullParkedPartitions: Set<TopicPartition> { fullPartitions.filter { ledgers.isParked($0) } }

    /// Partitions with a full window.
    var fullPartitions: Set<TopicPartition> { ledgers.fullPartitions }

    /// The present ends of the input topics' partitions; nil if the broker has not reported them.
    func knownEnds() -> [TopicPartition: Int64]? { consumer.knownEnds()?.filter { !ledgers.isParked($0.key) } }

    /// Topics that the brokers do not let it read, in words.
    var unreadableTopics: [String] { refusals.texts(consumer.topics) }

    /// What an operator is to know, in words.
    var noteTexts: [String] {
        notes.texts(consumer.topics, group: shard.limits.group, nowNanos: shard.nowNanos)
    }

    /// Topics of which a partition began again at a lower offset lately.
    var restartedTopicNames: [String] { restarts.topics(nowNanos: shard.nowNanos).map { consumer.topics[$0] } }

    /// Compares the group's partitions with the brokers' at intervals, for the whole process.
    func watchShares(of topics: [String]) {
        guard isAssigned, shard.unread.beginAsking(nowNanos: shard.nowNanos) else { return }
        consumer.askShares(of: topics) { [unread = shard.unread] in unread.learn($0) }
    }
}
