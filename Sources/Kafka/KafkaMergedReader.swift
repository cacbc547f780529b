// SPDX-License-Identifier: Apache-2.0
import CRdkafka

/// Reads several topics from one point to another in the order of their records' times (``TimeMerge``), without a
/// group: it commits nothing and disturbs nobody.
///
/// For `record`. Blocks its thread, so never on a loop. Not Sendable. Each partition has its own queue, with one record
/// held: the library's prefetch bounds the memory.
public final class KafkaMergedReader {
    /// Where to end, equal for all partitions.
    public enum End: Equatable, Sendable {
        /// At the end that each partition has when the reader reaches it.
        case present
        /// Never by itself.
        case never
        /// Before this offset; at the present end at the latest.
        case offset(Int64)
        /// Before a partition's first record of this Unix ms or later; at its end once that time has passed.
        case timeMs(Int64)
    }

    /// A partition of one of the topics.
    private struct Lane {
        let topic: Int
        let partition: Int32
        let queue: OpaquePointer
        /// Its next record, still the library's; nil: see the merge.
        var head: UnsafeMutablePointer<rd_kafka_message_t>?
        /// It was read to its present end, and nothing has arrived since.
        var isAtEnd = false
        /// Records from the common queue before this lane had its own: older than anything in `queue`.
        var early: [UnsafeMutablePointer<rd_kafka_message_t>] = []

        /// Its next record; the caller destroys it.
        mutating func next() -> UnsafeMutablePointer<rd_kafka_message_t>? {
            early.isEmpty ? rd_kafka_consume_queue(queue, 0) : early.removeFirst()
        }
    }

    public let topics: [String]
    private let handle: ClientHandle
    private let start: KafkaTopicReader.Start
    private let end: End
    private var lanes: [Lane] = []
    private var merge = TimeMerge(count: 0)

    /// Looks the topics up and starts fetching. Blocks up to `timeoutMs` for each query.
    public init(
        _ configuration: KafkaConfiguration, topics: [String], from start: KafkaTopicReader.Start = .earliest,
        until end: End = .present, timeoutMs: Int = 10_000
    ) throws(KafkaFault) {
        var own = configuration
        // Never joined and never committed to, but the library requires a name.
        if own.group.isEmpty { own.group = "carillon-reader" }
        own.offsetReset = .earliest
        // All partitions share one reader's memory limit.
        own.options["queued.max.messages.kbytes"] = own.options["queued.max.messages.kbytes"] ?? "4096"
        let handle = try ClientHandle(own, role: .consumer) { _ in }
        self.handle = handle
        self.topics = topics
        self.start = start
        self.end = end
        rd_kafka_poll_set_consumer(handle.raw)
        let metadata = try ClusterMetadata.fetch(handle, timeoutMs: timeoutMs)
        var places: [(topic: Int, partition: Int32)] = []
        for (index, topic) in topics.enumerated() {
            guard let found = metadata.topic(topic) else {
                let unknown = KafkaError(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
                throw .call(doing: "reading topic \(topic)", unknown)
            }
            if let error = found.error { throw .call(doing: "reading topic \(topic)", error) }
            places += found.partitions.map { (index, $0) }
        }
        try assign(places, timeoutMs: timeoutMs)
    }

    deinit {
        for lane in lanes {
            if let head = lane.head { rd_kafka_message_destroy(head) }
            for message in lane.early { rd_kafka_message_destroy(message) }
            WakeFD.detach(from: lane.queue)
            rd_kafka_queue_destroy(lane.queue)
        }
    }

    /// Passes each record with its topic to `visit` (its `partition.topic` is the index in `topics`), until the end,
    /// `.stop`, or `silenceMs` without a record while some are awaited. Without an end it waits for them without a
    /// limit.
    ///
    /// Partitions without a record for `silenceMs`, though not at their end, no longer delay the others. Records
    /// written during the read come as they are written. `isStopped` is checked between records and while none comes.
    public func read(
        silenceMs: Int = 10_000, isStopped: () -> Bool = { false },
        _ visit: (_ topic: String, _ record: borrowing KafkaRecord) throws -> KafkaTopicReader.Step
    ) throws -> KafkaTopicReader.Outcome {
        let silenceMs = Int64(clamping: min(silenceMs, 1 << 50))
        var deadline = monotonicMs() + silenceMs
        while true {
            if isStopped() { return .stopped }
            try refill()
            switch merge.next {
            case .ended: return .reachedEnd
            case .take(let index):
                guard let head = lanes[index].head else { return .reachedEnd }
                lanes[index].head = nil
                merge.lanes[index] = .awaited
                defer { rd_kafka_message_destroy(head) }
                deadline = monotonicMs() + silenceMs
                let lane = lanes[index]
                let record = KafkaRecord(head, partition: TopicPartition(topic: lane.topic, partition: lane.partition))
                if try visit(topics[lane.topic], record) == .stop { return .stopped }
            case .wait:
                if !isAwaiting { deadline = monotonicMs() + silenceMs }
                if monotonicMs() >= deadline {
                    if !passOver(), end != .never { return .timedOut }
                    deadline = monotonicMs() + silenceMs
                    continue
                }
                handle.wake.wait(milliseconds: 100)
                handle.wake.drain()
            }
        }
    }

    // MARK: Lanes

    /// Some partition has more records than arrived.
    private var isAwaiting: Bool {
        zip(lanes, merge.lanes).contains { lane, state in
            !lane.isAtEnd && (state == .awaited || state == .idle)
        }
    }

    /// Lets the lanes with a record continue. Returns false if there is none.
    private func passOver() -> Bool {
        let isAnyHere = merge.lanes.contains { if case .head = $0 { true } else { false } }
        guard isAnyHere else { return false }
        for index in merge.lanes.indices where merge.lanes[index] == .awaited { merge.lanes[index] = .idle }
        return true
    }

    /// Takes the records that arrived for lanes without one.
    private func refill() throws(KafkaFault) {
        try takeCommon()
        for index in lanes.indices {
            while merge.lanes[index] == .awaited || merge.lanes[index] == .idle {
                guard let message = lanes[index].next() else {
                    if lanes[index].isAtEnd, merge.lanes[index] == .idle, isOver { finish(index) }
                    break
                }
                try take(message, index)
            }
        }
    }

    /// The common queue: errors without a partition, and records fetched before the lanes had their own queues.
    private func takeCommon() throws(KafkaFault) {
        while let message = rd_kafka_consumer_poll(handle.raw, 0) {
            let name = message.pointee.rkt.flatMap { rd_kafka_topic_name($0) }.map { String(cString: $0) }
            let index = lanes.firstIndex { topics[$0.topic] == name && $0.partition == message.pointee.partition }
            if let index {
                lanes[index].early.append(message)
                // Fetching starts some time after the assignment, and then uses the common queue again.
                rd_kafka_queue_forward(lanes[index].queue, nil)
            } else {
                let code = message.pointee.err
                rd_kafka_message_destroy(message)
                try check(code)
            }
        }
    }

    private func take(_ message: UnsafeMutablePointer<rd_kafka_message_t>, _ index: Int) throws(KafkaFault) {
        switch message.pointee.err {
        case RD_KAFKA_RESP_ERR_NO_ERROR:
            let timeMs = KafkaRecord.timeMs(of: message)
            if isBeforeStart(message.pointee.offset, timeMs) {
                rd_kafka_message_destroy(message)
            } else if isBehindEnd(message.pointee.offset, timeMs) {
                rd_kafka_message_destroy(message)
                finish(index)
            } else {
                lanes[index].head = message
                lanes[index].isAtEnd = false
                // A record without a time goes first.
                merge.lanes[index] = .head(timeMs ?? .min)
            }
        case RD_KAFKA_RESP_ERR__PARTITION_EOF:
            rd_kafka_message_destroy(message)
            lanes[index].isAtEnd = true
            if isOver { finish(index) } else { merge.lanes[index] = .idle }
        default:
            let code = message.pointee.err
            rd_kafka_message_destroy(message)
            try check(code)
        }
    }

    private func check(_ code: rd_kafka_resp_err_t) throws(KafkaFault) {
        switch code {
        case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
            throw .call(doing: "reading \(topics.joined(separator: ", "))", KafkaError(code))
        default:
            // Other errors are temporary, or end by the time limit.
            if let fatal = handle.fatalError { throw .call(doing: "reading", fatal) }
        }
    }

    /// Stops fetching for it.
    private func finish(_ index: Int) {
        merge.lanes[index] = .ended
        guard let list = rd_kafka_topic_partition_list_new(1) else { return }
        defer { rd_kafka_topic_partition_list_destroy(list) }
        rd_kafka_topic_partition_list_add(list, topics[lanes[index].topic], lanes[index].partition)
        rd_kafka_pause_partitions(handle.raw, list)
    }

    /// Whether a partition that is read to its present end is finished.
    private var isOver: Bool {
        switch end {
        case .present, .offset: true
        case .never: false
        case .timeMs(let time): wallMs() >= time
        }
    }

    /// The record itself decides: a broker's index by time is coarse or missing, and an offset beyond the end makes
    /// reading start over at the oldest.
    private func isBeforeStart(_ offset: Int64, _ timeMs: Int64?) -> Bool {
        switch start {
        case .earliest: false
        case .offset(let first): offset < first
        case .timeMs(let first): timeMs.map { $0 < first } ?? false
        }
    }

    private func isBehindEnd(_ offset: Int64, _ timeMs: Int64?) -> Bool {
        switch end {
        case .present, .never: false
        case .offset(let last): offset >= last
        case .timeMs(let last): timeMs.map { $0 >= last } ?? false
        }
    }

    // MARK: Assignment

    private func assign(_ places: [(topic: Int, partition: Int32)], timeoutMs: Int) throws(KafkaFault) {
        guard let list = rd_kafka_topic_partition_list_new(Int32(clamping: places.count)) else {
            throw .creation("out of memory")
        }
        defer { rd_kafka_topic_partition_list_destroy(list) }
        for place in places {
            let item = rd_kafka_topic_partition_list_add(list, topics[place.topic], place.partition)
            item?.pointee.offset = start.firstOffset
            guard let queue = rd_kafka_queue_get_partition(handle.raw, topics[place.topic], place.partition) else {
                throw .creation("no queue for \(topics[place.topic])[\(place.partition)]")
            }
            lanes.append(Lane(topic: place.topic, partition: place.partition, queue: queue))
        }
        merge = TimeMerge(count: lanes.count)
        if case .timeMs = start { KafkaTopicReader.resolveTimes(list, handle, timeoutMs: timeoutMs) }
        let code = rd_kafka_assign(handle.raw, list)
        if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw .call(doing: "assigning", KafkaError(code)) }
        // An assignment directs all partitions to the common queue.
        for lane in lanes {
            rd_kafka_queue_forward(lane.queue, nil)
            handle.wake.attach(to: lane.queue)
        }
    }
}
