// SPDX-License-Identifier: Apache-2.0
/// The calls of a `KafkaConsumer` to the Kafka client below it: librdkafka's (`NativeGroupClient`), or one of a model of a
/// cluster in tests.
///
/// The client implements the protocol with the brokers. The consumer decides which offsets are committed, and when a
/// partition begins, pauses and ends. Topics are indexes into `topics`. Every answer comes inside `poll`, as a call of the
/// polling consumer:
/// `take`, `tookEnd`, `rebalance`, `commitEnded`, `committedCame`, `record`, `tookStatistics`. No call blocks, except `wait`.
package protocol GroupClient: AnyObject {
    /// The subscribed topics.
    var topics: [String] { get }
    /// Whether the end of each partition is reported when it is reached.
    var reportsEnds: Bool { get }
    /// A partition without a committed offset is read from its oldest record.
    var startsAtOldest: Bool { get }
    /// Whether the group also reports an empty assignment.
    var isToldOfEmptyShares: Bool { get }
    /// A clock that only rises, in ms.
    var steadyMs: Int64 { get }
    /// Unix ms.
    var wallMs: Int64 { get }
    /// The name that the brokers give their cluster; nil if none is known.
    var clusterID: String? { get }

    // MARK: Polling

    /// Readable whenever `poll` has work.
    var wakeFD: Int32 { get }
    /// Blocks until there is something to poll or the time has passed; for commands and tests.
    func wait(milliseconds: Int32)
    /// Gives at most `max` records and all waiting answers to `consumer`. Returns the number of records and other messages.
    func poll(max: Int, for consumer: KafkaConsumer) -> Int
    /// The reason if the client has failed permanently.
    var fatalError: KafkaError? { get }

    // MARK: Membership

    /// Whether the group takes back single partitions, in place of all.
    var isCooperative: Bool { get }
    /// Whether the group has already taken the partitions away.
    var isAssignmentLost: Bool { get }
    /// Starts to leave the group. A revocation comes first.
    func beginClose() -> KafkaError?
    /// The member has left the group.
    var isClosed: Bool { get }

    // MARK: Assignment

    /// Reads these partitions and no others (eager group).
    func assign(_ starts: [PartitionStart]) -> KafkaError?
    /// Reads these partitions too (cooperative group).
    func assignMore(_ starts: [PartitionStart]) -> KafkaError?
    /// Reads these partitions no more (cooperative group).
    func unassign(_ partitions: [TopicPartition]) -> KafkaError?
    /// Reads no partition.
    func unassignAll() -> KafkaError?

    // MARK: Offsets

    /// Sends a commit. Its answer is `commitEnded`, unless this returns an error.
    func commit(_ offsets: [GroupOffset]) -> KafkaError?
    /// Asks for the group's committed offsets; the answer is `committedCame` with the same round.
    ///
    /// - Returns: false if nothing was asked.
    func askCommitted(_ partitions: [TopicPartition], round: UInt) -> Bool
    /// Asks the brokers for the partitions' ends.
    ///
    /// - Returns: false while a question is open; nothing is asked then.
    func askEnds(_ partitions: [TopicPartition], round: UInt, nowMs: Int64) -> Bool
    /// Their answer, once.
    func takeEnds() -> EndsAnswer?
    /// The end of a partition from the last fetch; nil before the first. May be lower than the read position.
    func fetchedEnd(_ partition: TopicPartition) -> Int64?
    /// Of each partition, the offset after all that was delivered, and after offsets without a record that follow it. Absent where
    /// it is not known.
    func positions(of partitions: Set<TopicPartition>) -> [(partition: TopicPartition, offset: Int64)]
    /// Asks for the total number of the topics' partitions; nil if no broker answered. `done` may come on another thread.
    func countPartitions(of topics: [String], timeoutMs: Int, _ done: @escaping @Sendable (Int?) -> Void)

    /// Asks which partitions of the topics the whole group has; `KafkaConsumer.askShares` says when the answer is nil. `done` may
    /// come on another thread.
    func askShares(of topics: [String], timeoutMs: Int, _ done: @escaping @Sendable ([TopicShare]?) -> Void)

    // MARK: Fetching

    func pause(_ partitions: Set<TopicPartition>)
    func resume(_ partitions: Set<TopicPartition>)
    /// Reads the partition again from its oldest record.
    func seekToOldest(_ partition: TopicPartition) -> KafkaError?
}

/// A change of a member's partitions by the group.
package enum GroupRebalance {
    case assign([TopicPartition])
    /// An eager group takes back everything, whatever it names.
    case revoke([TopicPartition])
    case failed(KafkaError)
}

/// Where the reading of a partition begins.
package struct PartitionStart: Equatable {
    package enum Place: Equatable {
        case offset(Int64)
        case oldest
        /// The client asks for the committed offset itself.
        case committed
    }

    package let partition: TopicPartition
    package let place: Place
}

/// A partition's offset at the group.
package struct GroupOffset: Equatable {
    package let partition: TopicPartition
    /// Nil if the group has none.
    package let offset: Int64?
    package let metadata: [UInt8]
    package let error: KafkaError?

    package init(partition: TopicPartition, offset: Int64?, metadata: [UInt8] = [], error: KafkaError? = nil) {
        self.partition = partition
        self.offset = offset
        self.metadata = metadata
        self.error = error
    }
}

/// The brokers' answer to a question for the ends of partitions.
package struct EndsAnswer {
    package typealias Place = (partition: TopicPartition, range: Range<Int64>?)

    package var round: UInt
    /// Unix ms: at that moment the ends were at or before these.
    package var askedMs: Int64
    package var reach: KafkaReach
    /// The reason for an incomplete answer; nil if it is complete.
    package var error: KafkaError?
    /// Empty if the whole question failed. A range is nil if the question for its partition failed.
    package var ranges: [Place] = []

    package init(round: UInt, askedMs: Int64, reach: KafkaReach, error: KafkaError? = nil, ranges: [Place] = []) {
        self.round = round
        self.askedMs = askedMs
        self.reach = reach
        self.error = error
        self.ranges = ranges
    }
}
