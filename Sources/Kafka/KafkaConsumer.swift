// SPDX-License-Identifier: Apache-2.0
/// A group consumer owned by one thread. It never blocks, and calls its delegate only inside `poll`.
///
/// Watch `wakeFD` for readability and then call `poll(max:)` on one thread. Not Sendable on purpose. The owner must call
/// `poll` at least once a minute, because the group evicts members that are silent for `max.poll.interval.ms`. Release
/// it after the `closed` event; an earlier release ends the membership only by session timeout.
public final class KafkaConsumer {
    /// The subscribed topics. `TopicPartition.topic` is an index into it.
    public let topics: [String]
    public weak var delegate: (any KafkaConsumerDelegate)?
    /// The current assignment.
    public internal(set) var assignment: Set<TopicPartition> = []
    /// Paused partitions; a subset of `assignment`.
    public internal(set) var paused: Set<TopicPartition> = []
    /// Waits for its committed offsets; `begin` adds it to `assignment`. Nil if none waits.
    var pendingAssignment: PendingAssignment?
    /// How long committed offsets are asked for; the last query may take its own time longer. Until then the other
    /// partitions of a cooperative group stop, and the group cannot rebalance.
    var assignmentPatienceMs: Int64 = 10_000
    var commits = CommitTable()
    /// By partition, an offset of the owner's that goes along with its commits; not above the committed one.
    public var commitNotes: [TopicPartition: Int64] = [:]
    /// By partition, the number that the last commit before its assignment carried.
    public internal(set) var committedNotes: [TopicPartition: Int64] = [:]
    /// By partition, the number of its last commit, as far as this member knows.
    var sentNotes: [TopicPartition: Int64] = [:]
    /// Set while a deferred revocation waits for `completeRevocation()`.
    public internal(set) var pendingRevocation: [TopicPartition] = []
    /// Errors so far by librdkafka's code, for counters; bounded by the number of codes.
    public internal(set) var errorCounts: [Int32: UInt64] = [:]
    /// Set once `closed` was reported.
    public private(set) var isClosed = false

    let client: any GroupClient
    var readings: ReadingTable
    var lags = LagTable()
    /// Time of the last query for the ends, monotonic; nil requests one now.
    var endsAskedMs: Int64?
    /// Interval of these queries.
    var endsEveryMs: Int64 = 5_000
    /// The brokers' reachability from the last query for the ends.
    public internal(set) var reach = KafkaReach.unknown
    /// The group has given an assignment, possibly empty, and has not taken all of it back.
    var isAssigned = false
    /// Whether the group also reports an empty assignment. Not with the consumer protocol (KIP-848), which does not
    /// report an assignment that stays empty.
    public var isToldOfEmptyShares: Bool { client.isToldOfEmptyShares }
    /// Number of assignments so far.
    var assignmentRound: UInt = 0
    private(set) var isClosing = false
    private var hasReportedFatal = false

    /// Joins the group and subscribes. No broker needs to be reachable yet.
    ///
    /// - Parameter reportsEnds: whether each partition that was read to its end is reported, which `knownEnds` needs. A
    ///   busy topic has half as many of these reports as records.
    public convenience init(
        _ configuration: KafkaConfiguration, topics: [String], reportsEnds: Bool = true
    ) throws(KafkaFault) {
        self.init(try NativeGroupClient(configuration, topics: topics, reportsEnds: reportsEnds))
    }

    /// Over a client that has joined its group.
    package init(_ client: any GroupClient) {
        self.client = client
        topics = client.topics
        readings = ReadingTable(topicCount: client.topics.count)
    }

    /// Readable whenever `poll` has work. It belongs to the consumer: watch it, never read or close it, and stop
    /// watching before the consumer is released.
    public var wakeFD: Int32 { client.wakeFD }

    /// Runs callbacks and delivers at most `max` records. Returns their number.
    ///
    /// If more is available, `wakeFD` becomes readable again, so a loop stays fair to its other work.
    @discardableResult
    public func poll(max: Int) -> Int {
        if isClosed { return 0 }
        let served = client.poll(max: max, for: self)
        if isClosing, client.isClosed {
            isClosed = true
            report(.closed)
        }
        return served
    }

    /// Starts leaving the group without blocking. Continue to poll until `closed` arrives.
    ///
    /// The usual revocation comes first, so settled offsets can still be committed; a pending revocation is completed.
    /// Set a deadline for closing (it has been seen to hang, #4187) and release the consumer when it passes.
    public func beginClose() {
        if isClosing { return }
        isClosing = true
        completeRevocation()
        completeAssignment()
        if let error = client.beginClose() { record(error, partition: nil) }
    }

    /// Closes and blocks, for commands and tests. Returns false if `timeoutMs` passed first.
    public func close(timeoutMs: Int) -> Bool {
        beginClose()
        let deadline = client.steadyMs + Int64(timeoutMs)
        while !isClosed, client.steadyMs < deadline {
            poll(max: 1000)
            // The end of closing is a state, not always a wake-up.
            if !isClosed { client.wait(milliseconds: 20) }
        }
        return isClosed
    }

    /// Blocks until there is something to poll or the time has passed; for commands and tests, which have no loop.
    public func wait(timeoutMs: Int) {
        client.wait(milliseconds: Int32(clamping: timeoutMs))
    }

    func report(_ event: KafkaConsumerEvent) { delegate?.kafka(self, didMeet: event) }

    // MARK: - Calls of the client within `poll`

    /// - Parameter receiver: the delegate, loaded once for several records, because a weak reference costs atomic operations
    ///   at each use.
    package func take(_ record: borrowing KafkaRecord, for receiver: (any KafkaConsumerDelegate)?) {
        // Left over from before the revocation. The next owner reads it again, because it was not committed.
        if !pendingRevocation.isEmpty, pendingRevocation.contains(record.partition) { return }
        move(record.partition, at: record.offset, to: record.offset &+ 1)
        if lags.wantedTimes > 0 { lags.noteRecord(record.partition, offset: record.offset, ms: record.timestampMs) }
        receiver?.kafka(self, didReceive: record)
    }

    package func tookEnd(of partition: TopicPartition, at offset: Int64) {
        let due = position(partition) ?? offset
        move(partition, at: offset, to: offset)
        report(.passed(partition, from: due, to: offset))
    }

    package func record(_ error: KafkaError, partition: TopicPartition?) {
        errorCounts[error.code, default: 0] &+= 1
        if let fatal = client.fatalError {
            if hasReportedFatal { return }
            hasReportedFatal = true
            report(.fatal(fatal))
        } else {
            report(.failed(error, partition))
        }
    }

    package func tookStatistics(_ json: UnsafeRawBufferPointer) {
        delegate?.kafka(self, didReceiveStatistics: json)
    }

    /// Notes how far a partition is read. An offset below the one that is due begins a new epoch of the partition, and
    /// forgets the offsets of the earlier one.
    @inline(__always)
    private func move(_ partition: TopicPartition, at offset: Int64, to next: Int64) {
        guard let due = readings.move(partition, at: offset, to: next) else { return }
        lags.assign(partition, round: assignmentRound)
        lags.noteCommittedBefore(partition, nil)
        commits.forget(partition)
        commitNotes[partition] = nil
        committedNotes[partition] = nil
        report(.restarted(partition, due: due, at: offset))
    }
}
