import CRdkafka

/// A group consumer owned by one thread. It never blocks, and calls its delegate only inside `poll`.
///
/// Watch `wakeFD` for readability and then call `poll(max:)`; one thread, one message at a time, because batch reads of
/// librdkafka 2.0.2 lose or misplace messages around pause and rebalance. Not Sendable on purpose. The owner must call
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
    /// A partition without a committed offset is read from its oldest record.
    let startsAtOldest: Bool
    var commits = CommitTable()
    /// By partition, a number of the owner's that goes along with its commits.
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

    let handle: ClientHandle
    let committedQuery: CommittedQuery
    var readings: ReadingTable
    var lags = LagTable()
    let endsQuery: EndsQuery
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
    public let isToldOfEmptyShares: Bool
    let reportsEnds: Bool
    /// Number of assignments so far.
    var assignmentRound: UInt = 0
    /// One per topic, kept alive so that a message's topic can be identified by pointer.
    let topicHandles: [OpaquePointer]
    private let queue: OpaquePointer
    private(set) var isClosing = false
    private var hasReportedFatal = false
    /// Polled and not delivered yet.
    private var gathered: [UnsafeMutablePointer<rd_kafka_message_t>] = []

    var raw: OpaquePointer { handle.raw }

    /// Joins the group and subscribes. No broker needs to be reachable yet.
    ///
    /// - Parameter reportsEnds: whether each partition that was read to its end is reported, which `knownEnds` needs. A
    ///   busy topic has half as many of these reports as records.
    public init(
        _ configuration: KafkaConfiguration, topics: [String], reportsEnds: Bool = true
    ) throws(KafkaFault) {
        try Self.check(topics: topics)
        self.reportsEnds = reportsEnds
        isToldOfEmptyShares = !configuration.usesConsumerProtocol
        handle = try ClientHandle(configuration, role: .consumer) { conf in
            if !reportsEnds { rd_kafka_conf_set(conf, "enable.partition.eof", "false", nil, 0) }
            rd_kafka_conf_set_rebalance_cb(conf, rebalanceCallback)
            rd_kafka_conf_set_offset_commit_cb(conf, commitCallback)
            rd_kafka_conf_set_error_cb(conf, errorCallback)
            rd_kafka_conf_set_stats_cb(conf, statisticsCallback)
        }
        let raw = handle.raw
        startsAtOldest = configuration.startsAtOldest
        committedQuery = CommittedQuery(handle)
        endsQuery = EndsQuery(handle)
        readings = ReadingTable(topicCount: topics.count)
        // One queue for records, callbacks and statistics: one wake-up, one poll.
        rd_kafka_poll_set_consumer(raw)
        guard let queue = rd_kafka_queue_get_consumer(raw) else { throw .creation("no consumer queue") }
        self.queue = queue
        self.topics = topics
        self.topicHandles = topics.compactMap { rd_kafka_topic_new(raw, $0, nil) }
        if topicHandles.count != topics.count { throw .creation("librdkafka refused a topic name") }
        handle.callbacks.consumer = self
        handle.wake.attach(to: queue)

        let list = rd_kafka_topic_partition_list_new(Int32(topics.count))
        defer { rd_kafka_topic_partition_list_destroy(list) }
        for topic in topics { rd_kafka_topic_partition_list_add(list, topic, RD_KAFKA_PARTITION_UA) }
        let error = rd_kafka_subscribe(raw, list)
        if error != RD_KAFKA_RESP_ERR_NO_ERROR { throw .call(doing: "subscribe", KafkaError(error)) }
    }

    deinit {
        WakeFD.detach(from: queue)
        rd_kafka_queue_destroy(queue)
        for topic in topicHandles { rd_kafka_topic_destroy(topic) }
    }

    /// Readable whenever `poll` has work. It belongs to the consumer: watch it, never read or close it, and stop
    /// watching before the consumer is released.
    public var wakeFD: Int32 { handle.wake.descriptor }

    /// Runs callbacks and delivers at most `max` records. Returns their number.
    ///
    /// If more is available, `wakeFD` becomes readable again, so a loop stays fair to its other work.
    @discardableResult
    public func poll(max: Int) -> Int {
        if isClosed { return 0 }
        handle.wake.drain()
        var served = 0
        while served < max {
            guard let message = rd_kafka_consumer_poll(raw, 0) else { break }
            served += 1
            gathered.append(message)
        }
        handOver()
        if served == max { handle.wake.signal() }
        takeCommitted()
        if isClosing, rd_kafka_consumer_closed(raw) == 1 {
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
        if let error = rd_kafka_consumer_close_queue(raw, queue) {
            record(KafkaError(rd_kafka_error_code(error)), partition: nil)
            rd_kafka_error_destroy(error)
        }
        handle.wake.signal()
    }

    /// Closes and blocks, for commands and tests. Returns false if `timeoutMs` passed first.
    public func close(timeoutMs: Int) -> Bool {
        beginClose()
        let deadline = monotonicMs() + Int64(timeoutMs)
        while !isClosed, monotonicMs() < deadline {
            poll(max: 1000)
            // The end of closing is a state, not always a wake-up.
            if !isClosed { handle.wake.wait(milliseconds: 20) }
        }
        return isClosed
    }

    /// Blocks until there is something to poll or the time has passed; for commands and tests, which have no loop.
    public func wait(timeoutMs: Int) {
        handle.wake.wait(milliseconds: Int32(clamping: timeoutMs))
    }

    func report(_ event: KafkaConsumerEvent) { delegate?.kafka(self, didMeet: event) }

    func record(_ error: KafkaError, partition: TopicPartition?) {
        errorCounts[error.code, default: 0] &+= 1
        if let fatal = handle.fatalError {
            if hasReportedFatal { return }
            hasReportedFatal = true
            report(.fatal(fatal))
        } else {
            report(.failed(error, partition))
        }
    }

    /// Delivers the polled records together, so that the library's and the receiver's code are fetched once each. A
    /// rebalance is reported after it, because it came later.
    func handOver() {
        if gathered.isEmpty { return }
        var messages: [UnsafeMutablePointer<rd_kafka_message_t>] = []
        swap(&messages, &gathered)
        // Loaded once, because a weak reference costs atomic operations at each use.
        let receiver = delegate
        for message in messages { deliver(message, to: receiver) }
        for message in messages { rd_kafka_message_destroy(message) }
        // The next poll reuses its storage.
        messages.removeAll(keepingCapacity: true)
        if gathered.isEmpty { gathered = messages }
    }

    private func deliver(
        _ message: UnsafeMutablePointer<rd_kafka_message_t>, to receiver: (any KafkaConsumerDelegate)?
    ) {
        let error = message.pointee.err
        let partition = place(of: message)
        guard error == RD_KAFKA_RESP_ERR_NO_ERROR else {
            if error == RD_KAFKA_RESP_ERR__PARTITION_EOF, let partition {
                move(partition, at: message.pointee.offset, to: message.pointee.offset)
                report(.endReached(partition, offset: message.pointee.offset))
            } else {
                let text = rd_kafka_message_errstr(message).map { String(cString: $0) }
                record(KafkaError(error, text: text), partition: partition)
            }
            return
        }
        guard let partition else { return }
        // Left over from before the revocation. The next owner reads it again, because it was not committed.
        if !pendingRevocation.isEmpty, pendingRevocation.contains(partition) { return }
        move(partition, at: message.pointee.offset, to: message.pointee.offset &+ 1)
        let record = KafkaRecord(message, partition: partition)
        if lags.wantedTimes > 0 { lags.noteRecord(partition, offset: record.offset, ms: record.timestampMs) }
        receiver?.kafka(self, didReceive: record)
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

    private func place(of message: UnsafeMutablePointer<rd_kafka_message_t>) -> TopicPartition? {
        guard let topic = message.pointee.rkt else { return nil }
        for index in topicHandles.indices where topicHandles[index] == topic {
            return TopicPartition(topic: index, partition: message.pointee.partition)
        }
        guard let name = rd_kafka_topic_name(topic) else { return nil }
        return topics.firstIndex(of: String(cString: name)).map {
            TopicPartition(topic: $0, partition: message.pointee.partition)
        }
    }

    private static func check(topics: [String]) throws(KafkaFault) {
        var problems: [KafkaConfigurationProblem] = []
        if topics.isEmpty { problems.append(KafkaConfigurationProblem(key: "topics", why: "needs at least one")) }
        for topic in topics where topic.isEmpty || topic.hasPrefix("^") || topic.contains("\0") {
            problems.append(KafkaConfigurationProblem(key: "topics", why: "\"\(topic)\" is not a topic name"))
        }
        if Set(topics).count != topics.count {
            problems.append(KafkaConfigurationProblem(key: "topics", why: "one topic is repeated"))
        }
        if !problems.isEmpty { throw .configuration(problems) }
    }
}
