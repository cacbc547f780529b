// SPDX-License-Identifier: Apache-2.0
import Kafka

/// The three readers of a shard: the layer above `Intake`.
final class Intakes {
    let events: Intake
    let userState: Intake
    /// For large groups. A separate consumer, so that waiting members hold back no other events.
    let chunks: Intake
    let all: [Intake]

    init(_ shard: ShardContext, _ parts: PipelineParts) {
        events = Intake(shard, consumer: parts.events, classes: [.events], batch: parts.limits.pollBatch)
        userState = Intake(
            shard, consumer: parts.userState, classes: [.userState, .parked], batch: parts.limits.pollBatch)
        chunks = Intake(shard, consumer: parts.chunks, classes: [.chunks], batch: parts.limits.chunkBatch)
        all = [events, userState, chunks]
    }

    /// The intake of its record.
    func of(_ event: EventJob) -> Intake {
        if event.parked != nil { return userState }
        return event.chunkPart == nil ? events : chunks
    }

    /// This process's share of everything that causes pushes: user state too, because its reads may send a number
    /// alone.
    func noteShare(of intake: Intake) { intake.noteShare(of: all.flatMap(\.consumer.topics)) }

    // MARK: Figures for the operator

    var assignedCount: Int { all.reduce(0) { $0 + $1.assignedCount } }
    var pausedCount: Int { all.reduce(0) { $0 + $1.pausedCount } }

    /// The slowest partitions first, limited to a useful number.
    var partitionStatuses: [ShardStatus.Partition] {
        ShardStatus.Partition.slowest(all.flatMap(\.partitionStatuses))
    }

    var readPartitions: Int { all.reduce(0) { $0 + $1.readPartitions } }
    var heldPartitions: Int { all.reduce(0) { $0 + $1.consumer.assignment.count } }
    var restartedTopics: [String] { all.flatMap(\.restartedTopicNames) }
    var heldTopics: [String] { all.flatMap(\.heldTopics) }
    var unreadableTopics: [String] { all.flatMap(\.unreadableTopics) }
    var awaitedTopics: [String] { all.flatMap(\.awaitedTopics) }

    /// The brokers' last answers to the consumers: `none` if no broker answered any of them.
    var kafkaReach: KafkaReach {
        all.dropFirst().reduce(all.first?.consumer.reach ?? .unknown) { $0.and($1.consumer.reach) }
    }

    /// Commits settled offsets of both consumers.
    func commitNow() {
        for intake in all { intake.consumer.commitNow() }
    }

    /// A commit has no answer yet.
    var isCommitting: Bool { all.contains { $0.consumer.isCommitting } }

    /// A commit failed, and its offsets are to be sent again.
    var hasUncommitted: Bool { all.contains(where: \.consumer.hasUncommitted) }
}
