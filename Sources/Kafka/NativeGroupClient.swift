// SPDX-License-Identifier: Apache-2.0
import CRdkafka
import Glibc

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
    private let endsQuery: EndsQuery
    /// The last answer for the committed offsets. Newer versions keep a leader epoch in it, which the start needs.
    private var lastCommitted: NativeList?
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

    // MARK: Lists
    // Calls with lists of partitions.

    // MARK: Assignment

    func assign(_ starts: [PartitionStart]) -> KafkaError? {
        guard let list = list(of: starts) else { return KafkaError(RD_KAFKA_RESP_ERR__FAIL) }
        return list.with { error(rd_kafka_assign(raw, $0)) }
    }

    func assignMore(_ starts: [PartitionStart]) -> KafkaError? {
        guard let list = list(of: starts) else { return KafkaError(RD_KAFKA_RESP_ERR__FAIL) }
        return list.with { take(rd_kafka_incremental_assign(raw, $0)) }
    }

    func unassign(_ partitions: [TopicPartition]) -> KafkaError? {
        withList(partitions) { take(rd_kafka_incremental_unassign(raw, $0)) } ?? nil
    }

    func unassignAll() -> KafkaError? { error(rd_kafka_assign(raw, nil)) }

    /// Takes each item from the last answer for committed offsets, if it is there.
    private func list(of starts: [PartitionStart]) -> NativeList? {
        let answer = lastCommitted
        lastCommitted = nil
        let list = answer.flatMap { $0.with { NativeList(copying: $0) } } ?? NativeList(capacity: starts.count)
        list?.with { fill($0, with: starts) }
        return list
    }

    private func fill(
        _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>, with starts: [PartitionStart]
    ) {
        let wanted = Set(starts.map(\.partition))
        for other in partitions(in: list) where !wanted.contains(other) {
            rd_kafka_topic_partition_list_del(list, topics[other.topic], other.partition)
        }
        for start in starts where topics.indices.contains(start.partition.topic) {
            let (topic, partition) = (topics[start.partition.topic], start.partition.partition)
            let item =
                rd_kafka_topic_partition_list_find(list, topic, partition)
                ?? rd_kafka_topic_partition_list_add(list, topic, partition)
            item?.pointee.offset =
                switch start.place {
                case .offset(let offset): offset
                case .oldest: Int64(RD_KAFKA_OFFSET_BEGINNING)
                case .committed: Int64(RD_KAFKA_OFFSET_INVALID)
                }
        }
    }

    // MARK: Offsets

    func commit(_ offsets: [GroupOffset]) -> KafkaError? {
        guard let list = NativeList(capacity: offsets.count) else { return KafkaError(RD_KAFKA_RESP_ERR__FAIL) }
        return list.with { list in
            for one in offsets { add(one, to: list) }
            return error(rd_kafka_commit(raw, list, 1))
        }
    }

    private func add(_ one: GroupOffset, to list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) {
        guard let offset = one.offset, topics.indices.contains(one.partition.topic) else { return }
        let item = rd_kafka_topic_partition_list_add(list, topics[one.partition.topic], one.partition.partition)
        item?.pointee.offset = offset
        guard !one.metadata.isEmpty, let copy = malloc(one.metadata.count) else { return }
        // The list frees it.
        copy.copyMemory(from: one.metadata, byteCount: one.metadata.count)
        item?.pointee.metadata = copy
        item?.pointee.metadata_size = one.metadata.count
    }

    func askCommitted(_ partitions: [TopicPartition], round: UInt) -> Bool {
        withList(partitions) { committedQuery.ask($0, round: round) } ?? false
    }

    func askEnds(_ partitions: [TopicPartition], round: UInt, nowMs: Int64) -> Bool {
        let places = partitions.compactMap { partition in
            topics.indices.contains(partition.topic) ? (partition: partition, topic: topics[partition.topic]) : nil
        }
        return endsQuery.ask(places, round: round, nowMs: nowMs)
    }

    func takeEnds() -> EndsAnswer? { endsQuery.takeAnswer() }

    func positions(of partitions: Set<TopicPartition>) -> [(partition: TopicPartition, offset: Int64)] {
        // The library's own numbers, without a broker. It moves them over markers, which it hands to nobody.
        withList(partitions) { list in
            guard rd_kafka_position(raw, list) == RD_KAFKA_RESP_ERR_NO_ERROR else { return [] }
            return offsets(in: list).compactMap { one in one.offset.map { (one.partition, $0) } }
        } ?? []
    }

    func fetchedEnd(_ partition: TopicPartition) -> Int64? {
        guard topics.indices.contains(partition.topic) else { return nil }
        var low: Int64 = 0
        var high: Int64 = 0
        // Cached values only: the query ignores its timeout in 2.0.2 while a leader is down.
        let code = rd_kafka_get_watermark_offsets(raw, topics[partition.topic], partition.partition, &low, &high)
        return code == RD_KAFKA_RESP_ERR_NO_ERROR ? high : nil
    }

    func countPartitions(of topics: [String], timeoutMs: Int, _ done: @escaping @Sendable (Int?) -> Void) {
        handle.countPartitions(of: topics, timeoutMs: timeoutMs, done)
    }

    func askShares(of topics: [String], timeoutMs: Int, _ done: @escaping @Sendable ([TopicShare]?) -> Void) {
        handle.askShares(of: topics, group: group, timeoutMs: timeoutMs, done)
    }

    /// The group's committed offsets from the broker. Blocks up to `timeoutMs`; for tests.
    func committed(_ partitions: [TopicPartition], timeoutMs: Int) throws(KafkaFault) -> [GroupOffset] {
        guard let list = list(of: partitions.map { PartitionStart(partition: $0, place: .committed) }) else {
            throw .creation("out of memory")
        }
        let code = list.with { rd_kafka_committed(raw, $0, Int32(clamping: timeoutMs)) }
        if let error = error(code) { throw .call(doing: "reading committed offsets", error) }
        return list.with { offsets(in: $0) }
    }

    // MARK: Fetching

    func pause(_ partitions: Set<TopicPartition>) { withList(partitions) { _ = rd_kafka_pause_partitions(raw, $0) } }

    func resume(_ partitions: Set<TopicPartition>) { withList(partitions) { _ = rd_kafka_resume_partitions(raw, $0) } }

    func seekToOldest(_ partition: TopicPartition) -> KafkaError? {
        withList([partition]) { list in
            list.pointee.elems?.pointee.offset = Int64(RD_KAFKA_OFFSET_BEGINNING)
            // 0: it does not wait for the outcome.
            return take(rd_kafka_seek_partitions(raw, list, 0))
        } ?? nil
    }

    // MARK: Reading lists and errors

    func partitions(in list: UnsafePointer<rd_kafka_topic_partition_list_t>?) -> [TopicPartition] {
        var partitions: [TopicPartition] = []
        forEach(in: list) { _, partition in partitions.append(partition) }
        return partitions
    }

    func offsets(in list: UnsafePointer<rd_kafka_topic_partition_list_t>?) -> [GroupOffset] {
        var offsets: [GroupOffset] = []
        forEach(in: list) { item, partition in
            let metadata = item.metadata.map { Array(UnsafeRawBufferPointer(start: $0, count: item.metadata_size)) }
            offsets.append(
                GroupOffset(
                    partition: partition, offset: item.offset >= 0 ? item.offset : nil, metadata: metadata ?? [],
                    error: error(item.err)))
        }
        return offsets
    }

    private func forEach(
        in list: UnsafePointer<rd_kafka_topic_partition_list_t>?,
        _ visit: (rd_kafka_topic_partition_t, TopicPartition) -> Void
    ) {
        guard let list, let elements = list.pointee.elems else { return }
        for index in 0..<Int(list.pointee.cnt) {
            let item = elements[index]
            guard let name = item.topic, let topic = topics.firstIndex(of: String(cString: name)) else { continue }
            visit(item, TopicPartition(topic: topic, partition: item.partition))
        }
    }

    @discardableResult
    private func withList<Result>(
        _ partitions: some Collection<TopicPartition>,
        _ body: (UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) -> Result
    ) -> Result? {
        guard let list = NativeList(capacity: partitions.count) else { return nil }
        return list.with { list in
            for item in partitions where topics.indices.contains(item.topic) {
                rd_kafka_topic_partition_list_add(list, topics[item.topic], item.partition)
            }
            return body(list)
        }
    }

    private func error(_ code: rd_kafka_resp_err_t) -> KafkaError? {
        code == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : KafkaError(code)
    }

    /// Frees an error object.
    func take(_ error: OpaquePointer?) -> KafkaError? {
        guard let error else { return nil }
        defer { rd_kafka_error_destroy(error) }
        return KafkaError(rd_kafka_error_code(error))
    }
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

/// A list of librdkafka's, freed with it.
final class NativeList: @unchecked Sendable {
    private let raw: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>

    /// - Returns: nil if there is no memory.
    init?(capacity: Int) {
        guard let raw = rd_kafka_topic_partition_list_new(Int32(clamping: capacity)) else { return nil }
        self.raw = raw
    }

    /// A copy; nil: out of memory.
    init?(copying list: UnsafePointer<rd_kafka_topic_partition_list_t>) {
        guard let raw = rd_kafka_topic_partition_list_copy(list) else { return nil }
        self.raw = raw
    }

    deinit { rd_kafka_topic_partition_list_destroy(raw) }

    /// The list lives during the call.
    func with<Result>(_ body: (UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) -> Result) -> Result {
        withExtendedLifetime(self) { body(raw) }
    }
}
