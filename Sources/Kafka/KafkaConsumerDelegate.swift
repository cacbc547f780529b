/// What the owner of a consumer hears; every call comes synchronously from within `poll`, on the polling thread.
///
/// The owner may call the consumer's methods from all of them, except `poll` and `close`.
public protocol KafkaConsumerDelegate: AnyObject {
    /// One record, lent for the call. Partitions keep their order.
    func kafka(_ consumer: KafkaConsumer, didReceive record: borrowing KafkaRecord)

    /// What may be committed of a partition now; nil where there is nothing to commit. Asked at each commit, and before a
    /// partition is let go.
    func kafka(_ consumer: KafkaConsumer, progressOf partition: TopicPartition) -> PartitionOffset?

    /// Partitions are about to be taken away: the last chance to settle what is done.
    ///
    /// Answer `.complete` to let them go on return, or `.deferred` to drain first: `poll` goes on, nothing of these
    /// partitions arrives any more, what is settled still counts, and the group waits until `completeRevocation()` (at
    /// most `max.poll.interval.ms`, so put a deadline of seconds on it). With `lost` the partitions may already have
    /// another owner: nothing can be committed and the answer is not asked.
    func kafka(
        _ consumer: KafkaConsumer, willRevoke partitions: [TopicPartition], lost: Bool
    ) -> KafkaRevocation

    func kafka(_ consumer: KafkaConsumer, didMeet event: KafkaConsumerEvent)

    /// What the group had committed when these partitions were assigned; nil offsets where it had nothing.
    ///
    /// Comes once after each assignment, before the first records; not at all where the broker did not answer.
    func kafka(_ consumer: KafkaConsumer, didLearnCommitted offsets: [PartitionOffset])

    /// librdkafka's statistics as JSON, each `statistics.interval.ms`; lent for the call.
    func kafka(_ consumer: KafkaConsumer, didReceiveStatistics json: UnsafeRawBufferPointer)
}

extension KafkaConsumerDelegate {
    public func kafka(_ consumer: KafkaConsumer, didLearnCommitted offsets: [PartitionOffset]) {}

    public func kafka(_ consumer: KafkaConsumer, didReceiveStatistics json: UnsafeRawBufferPointer) {}
}

/// The owner's answer to a coming revocation.
public enum KafkaRevocation: Sendable {
    case complete, deferred
}

/// Everything a consumer reports that is no record.
public enum KafkaConsumerEvent: Sendable {
    /// These are ours now; reading starts at the committed offsets.
    case assigned([TopicPartition])
    /// These are no longer ours; what was settled has been handed to the committer unless they were lost.
    case revoked([TopicPartition], lost: Bool)
    /// A commit's outcome per partition; a failed one is repeated by a later commit of the same or a higher offset.
    case committed([PartitionOffset], KafkaError?)
    /// A broker is away, a topic unknown, a right denied …; `partition` where it concerns only one. Reading goes on by
    /// itself.
    case failed(KafkaError, TopicPartition?)
    /// The question for the partitions' ends had no answer, or not for each. Repeated while that lasts, unlike `failed`, of
    /// which librdkafka tells an outage once or not at all.
    case unanswered(KafkaError)
    /// The partition's log began again: the broker gave the offset `at`, below the one that was due. Offsets from before say
    /// nothing about it. Comes before the record of that offset.
    case restarted(TopicPartition, due: Int64, at: Int64)
    /// The end that a partition had just now.
    case endReached(TopicPartition, offset: Int64)
    /// The client is dead for good; exit so that a supervisor restarts.
    case fatal(KafkaError)
    /// After `beginClose()`: the group is left and nothing more comes.
    case closed
}
