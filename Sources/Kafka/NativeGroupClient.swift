// SPDX-License-Identifier: Apache-2.0
import CRdkafka

/// librdkafka's group consumer.
///
/// One message is polled at a time, because batch reads of librdkafka 2.0.2 lose or misplace messages around pause and
/// rebalance.
final class NativeGroupClient: GroupClient {
    let topics: [String]
    let group: String
    let reportsEnds: Bool
    let startsAtOldest: Bool
    let isToldOfEmptyShares: Bool
    let handle: ClientHandle
    let committedQuery: CommittedQuery
    let endsQuery: EndsQuery
    /// The last answer for the committed offsets. Newer versions keep a leader epoch in it, which the start needs.
    var lastCommitted: NativeList?
    /// One per topic, kept alive so that a message's topic can be identified by pointer.
    private let topicHandles: [OpaquePointer]
    private let queue: OpaquePointer
    /// Polled and not delivered yet.
    private var gathered: [UnsafeMutablePointer<rd_kafka_message_t>] = []
    /// Only within `poll`.
    private var consumer: KafkaConsumer?

    var raw: OpaquePointer { handle.raw }

    /// Joins the group and subscribes. No broker needs to be reachable yet.
    init(_ configuration: KafkaConfiguration, topics: [String], reportsEnds: Bool) throws(KafkaFault) {
        try Self.check(topics: topics)
        self.topics = topics
        group = configuration.group
        self.reportsEnds = reportsEnds
        startsAtOldest = configuration.startsAtOldest
        isToldOfEmptyShares = !configuration.usesConsumerProtocol
        handle = try ClientHandle(configuration, role: .consumer) { conf in
            if !reportsEnds { rd_kafka_conf_set(conf, "enable.partition.eof", "false", nil, 0) }
            rd_kafka_conf_set_rebalance_cb(conf, rebalanceCallback)
            rd_kafka_conf_set_offset_commit_cb(conf, commitCallback)
            rd_kafka_conf_set_error_cb(conf, errorCallback)
            rd_kafka_conf_set_stats_cb(conf, statisticsCallback)
        }
        let raw = handle.raw
        committedQuery = CommittedQuery(handle)
        endsQuery = EndsQuery(handle)
        // One queue for records, callbacks and statistics: one wake-up, one poll.
        rd_kafka_poll_set_consumer(raw)
        guard let queue = rd_kafka_queue_get_consumer(raw) else { throw .creation("no consumer queue") }
        self.queue = queue
        topicHandles = topics.compactMap { rd_kafka_topic_new(raw, $0, nil) }
        if topicHandles.count != topics.count { throw .creation("librdkafka refused a topic name") }
        handle.callbacks.client = self
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

    var steadyMs: Int64 { monotonicMs() }

    var wallMs: Int64 { Kafka.wallMs() }

    /// The library keeps it from the brokers' metadata; without a time to wait it only copies it.
    var clusterID: String? {
        guard let text = rd_kafka_clusterid(raw, 0) else { return nil }
        defer { rd_kafka_mem_free(raw, text) }
        return String(cString: text)
    }

    // MARK: - Polling

    var wakeFD: Int32 { handle.wake.descriptor }

    func wait(milliseconds: Int32) { handle.wake.wait(milliseconds: milliseconds) }

    func poll(max: Int, for consumer: KafkaConsumer) -> Int {
        self.consumer = consumer
        defer { self.consumer = nil }
        handle.wake.drain()
        var served = 0
        while served < max {
            guard let message = rd_kafka_consumer_poll(raw, 0) else { break }
            served += 1
            gathered.append(message)
        }
        handOver(to: consumer)
        if served == max { handle.wake.signal() }
        committedQuery.takeAnswers { list, round in
            lastCommitted = list
            consumer.committedCame(list.map { $0.with { offsets(in: $0) } }, round: round)
        }
        return served
    }

    /// Delivers the polled records together, so that the library's and the receiver's code are fetched once each. A
    /// rebalance is reported after it, because it came later.
    private func handOver(to consumer: KafkaConsumer) {
        if gathered.isEmpty { return }
        var messages: [UnsafeMutablePointer<rd_kafka_message_t>] = []
        swap(&messages, &gathered)
        // Loaded once, because a weak reference costs atomic operations at each use.
        let receiver = consumer.delegate
        for message in messages { deliver(message, to: consumer, for: receiver) }
        for message in messages { rd_kafka_message_destroy(message) }
        // The next poll reuses its storage.
        messages.removeAll(keepingCapacity: true)
        if gathered.isEmpty { gathered = messages }
    }

    private func deliver(
        _ message: UnsafeMutablePointer<rd_kafka_message_t>, to consumer: KafkaConsumer,
        for receiver: (any KafkaConsumerDelegate)?
    ) {
        let error = message.pointee.err
        let partition = place(of: message)
        guard error == RD_KAFKA_RESP_ERR_NO_ERROR else {
            if error == RD_KAFKA_RESP_ERR__PARTITION_EOF, let partition {
                consumer.tookEnd(of: partition, at: message.pointee.offset)
            } else {
                let text = rd_kafka_message_errstr(message).map { String(cString: $0) }
                consumer.record(KafkaError(error, text: text), partition: partition)
            }
            return
        }
        if let partition { consumer.take(KafkaRecord(message, partition: partition), for: receiver) }
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

    var fatalError: KafkaError? { handle.fatalError }

    // MARK: - Membership

    /// 2.0.2 does not set this during a revocation that has begun.
    var isAssignmentLost: Bool { rd_kafka_assignment_lost(raw) == 1 }

    /// Asks the library's own thread and waits for it. Never call it after partitions were given back while closing:
    /// the thread may end its group part then and never answer (seen in 2.0.2).
    var isCooperative: Bool {
        guard let name = rd_kafka_rebalance_protocol(raw) else { return false }
        return String(cString: name) == "COOPERATIVE"
    }

    func beginClose() -> KafkaError? {
        defer { handle.wake.signal() }
        return take(rd_kafka_consumer_close_queue(raw, queue))
    }

    var isClosed: Bool { rd_kafka_consumer_closed(raw) == 1 }

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

    // MARK: - Callbacks, all within `poll`

    fileprivate func rebalance(
        _ code: rd_kafka_resp_err_t, _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?
    ) {
        guard let consumer else { return }
        handOver(to: consumer)
        switch code {
        case RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS: consumer.rebalance(.assign(partitions(in: list)))
        case RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS: consumer.rebalance(.revoke(partitions(in: list)))
        default: consumer.rebalance(.failed(KafkaError(code)))
        }
    }

    fileprivate func commitEnded(
        _ code: rd_kafka_resp_err_t, _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?
    ) {
        consumer?.commitEnded(offsets(in: list), code == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : KafkaError(code))
    }

    fileprivate func failed(_ error: KafkaError) { consumer?.record(error, partition: nil) }

    fileprivate func statistics(_ json: UnsafeRawBufferPointer) { consumer?.tookStatistics(json) }
}

private let rebalanceCallback:
    @convention(c) (
        OpaquePointer?, rd_kafka_resp_err_t, UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?,
        UnsafeMutableRawPointer?
    ) -> Void = { _, code, list, opaque in
        CallbackContext.from(opaque)?.client?.rebalance(code, list)
    }

private let commitCallback:
    @convention(c) (
        OpaquePointer?, rd_kafka_resp_err_t, UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?,
        UnsafeMutableRawPointer?
    ) -> Void = { _, code, list, opaque in
        CallbackContext.from(opaque)?.client?.commitEnded(code, list)
    }

private let errorCallback:
    @convention(c) (OpaquePointer?, Int32, UnsafePointer<CChar>?, UnsafeMutableRawPointer?) -> Void = {
        _, code, text, opaque in
        CallbackContext.from(opaque)?.client?.failed(
            KafkaError(rd_kafka_resp_err_t(rawValue: code), text: text.map { String(cString: $0) }))
    }

private let statisticsCallback:
    @convention(c) (OpaquePointer?, UnsafeMutablePointer<CChar>?, Int, UnsafeMutableRawPointer?) -> Int32 = {
        _, json, count, opaque in
        if let json {
            CallbackContext.from(opaque)?.client?.statistics(UnsafeRawBufferPointer(start: json, count: count))
        }
        // 0: the library frees the text.
        return 0
    }
