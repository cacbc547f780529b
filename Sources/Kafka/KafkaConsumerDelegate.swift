// SPDX-License-Identifier: Apache-2.0
/// Receives the events of a consumer. Every call comes synchronously inside `poll`, on the polling thread.
///
/// Every method may call the consumer, except `poll` and `close`.
public protocol KafkaConsumerDelegate: AnyObject {
    /// One record, borrowed for the call. Partitions keep their order.
    func kafka(_ consumer: KafkaConsumer, didReceive record: borrowing KafkaRecord)

    /// The offset that may be committed for a partition now; nil for none. Asked at each commit, and before a partition
    /// is released.
    func kafka(_ consumer: KafkaConsumer, progressOf partition: TopicPartition) -> PartitionOffset?

    /// Partitions are about to be taken away: the last chance to settle finished work.
    ///
    /// Answer `.complete` to release them on return, or `.deferred` to drain first. With `.deferred`, `poll` continues,
    /// nothing of these partitions arrives any more, settled offsets still count, and the group waits until
    /// `completeRevocation()` (at most `max.poll.interval.ms`, so set a deadline of seconds). With `lost` the
    /// partitions may already have another owner: nothing can be committed, and the answer is ignored.
    func kafka(
        _ consumer: KafkaConsumer, willRevoke partitions: [TopicPartition], lost: Bool
    ) -> KafkaRevocation

    func kafka(_ consumer: KafkaConsumer, didMeet event: KafkaConsumerEvent)

    /// The group's committed offsets when these partitions were assigned; nil offsets if it had none.
    ///
    /// Called once after each assignment, before the first records; not at all if the broker did not answer.
    func kafka(_ consumer: KafkaConsumer, didLearnCommitted offsets: [PartitionOffset])

    /// librdkafka's statistics as JSON, every `statistics.interval.ms`; borrowed for the call.
    func kafka(_ consumer: KafkaConsumer, didReceiveStatistics json: UnsafeRawBufferPointer)
}

extension KafkaConsumerDelegate {
    public func kafka(_ consumer: KafkaConsumer, didLearnCommitted offsets: [PartitionOffset]) {}

    public func kafka(_ consumer: KafkaConsumer, didReceiveStatistics json: UnsafeRawBufferPointer) {}
}

/// The owner's answer to a revocation.
public enum KafkaRevocation: Sendable {
    case complete, deferred
}

/// All events of a consumer except records.
public enum KafkaConsumerEvent: Sendable {
    /// These partitions are now assigned. Reading starts at the committed offsets.
    case assigned([TopicPartition])
    /// These partitions are no longer assigned. Settled offsets were given to the committer unless they were lost.
    case revoked([TopicPartition], lost: Bool)
    /// A commit's result per partition. A later commit of the same or a higher offset repeats a failed one.
    case committed([PartitionOffset], KafkaError?)
    /// A broker is away, a topic unknown, a right denied and so on; `partition` if it concerns only one. Reading
    /// continues automatically.
    case failed(KafkaError, TopicPartition?)
    /// The query for the partitions' ends had no answer, or an incomplete one. Repeated while that lasts, unlike
    /// `failed`: librdkafka reports an outage once or not at all.
    case unanswered(KafkaError)
    /// The partition's log began again: the broker gave the offset `at`, below the one that was due. Offsets from before say
    /// nothing about it. Comes before the record of that offset.
    case restarted(TopicPartition, due: Int64, at: Int64)
    /// Between these offsets there is no record, and the next one comes at the second or later: the partition's present end, or
    /// offsets that hold none.
    case passed(TopicPartition, from: Int64, to: Int64)
    /// The client has failed permanently. Exit, so that a supervisor restarts the process.
    case fatal(KafkaError)
    /// After `beginClose()`: the member has left the group, and nothing more comes.
    case closed
}
