// SPDX-License-Identifier: Apache-2.0
import CRdkafka

/// Reads one topic from a point to its present end, without a group: it commits nothing and disturbs nobody.
///
/// For commands and tests. Blocks its thread, so never on a loop. Not Sendable.
public final class KafkaTopicReader {
    /// Where to begin, equal for all partitions.
    public enum Start: Equatable, Sendable {
        case earliest
        /// An offset; below the oldest kept one it starts there.
        case offset(Int64)
        /// Records of this Unix ms and later.
        case timeMs(Int64)
    }

    public enum Step: Sendable {
        case goOn, stop
    }

    public enum Outcome: Equatable, Sendable {
        /// Every partition was read to the end that it had when the reader arrived there.
        case reachedEnd
        case stopped
        /// No record within the time limit; some partitions may be unread.
        case timedOut
    }

    public let topic: String
    /// The ones that are read.
    public let partitions: [Int32]
    /// How many the topic has.
    public let partitionCount: Int
    private let handle: ClientHandle
    private let start: Start
    /// In place of `start`, by partition.
    private let starts: [Int32: Start]
    private var unfinished: Set<Int32>
    /// By partition: the offset after the last delivered record.
    private var positions: [Int32: Int64] = [:]

    /// Looks the topic up and starts fetching. Blocks up to `timeoutMs`.
    ///
    /// - Parameters:
    ///   - start: where each partition begins.
    ///   - only: the partitions to read, each from its own start; nil: all of them from `start`.
    public init(
        _ configuration: KafkaConfiguration, topic: String, from start: Start = .earliest, only: [Int32: Start]? = nil,
        timeoutMs: Int = 10_000
    ) throws(KafkaFault) {
        var own = configuration
        // Never joined and never committed to, but the library requires a name.
        if own.group.isEmpty { own.group = "carillon-reader" }
        own.options["enable.partition.eof"] = "true"
        own.offsetReset = .earliest
        let handle = try ClientHandle(own, role: .consumer) { _ in }
        rd_kafka_poll_set_consumer(handle.raw)
        guard let found = try ClusterMetadata.fetch(handle, timeoutMs: timeoutMs).topic(topic) else {
            let unknown = KafkaError(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
            throw .call(doing: "reading topic \(topic)", unknown)
        }
        if let error = found.error { throw .call(doing: "reading topic \(topic)", error) }
        self.handle = handle
        self.topic = topic
        self.start = start
        starts = only ?? [:]
        partitions = only.map { only in found.partitions.filter { only[$0] != nil } } ?? found.partitions
        partitionCount = found.partitions.count
        unfinished = Set(partitions)
        try assign(timeoutMs: timeoutMs)
    }

    /// Passes each record to `visit` (its `partition.topic` is 0) until the end, `.stop`, or `silenceMs` without one.
    ///
    /// Only partitions have an order. It waits for an absent broker, `silenceMs` at most. Without `untilEnd` it
    /// continues with later records. `isStopped` is checked between records and while none comes.
    public func read(
        silenceMs: Int = 10_000, untilEnd: Bool = true, isStopped: () -> Bool = { false },
        _ visit: (borrowing KafkaRecord) throws -> Step
    ) throws -> Outcome {
        let silenceMs = Int64(clamping: min(silenceMs, 1 << 50))
        var deadline = monotonicMs() + silenceMs
        while !unfinished.isEmpty {
            if isStopped() { return .stopped }
            guard let message = rd_kafka_consumer_poll(handle.raw, 100) else {
                if monotonicMs() >= deadline { return .timedOut }
                continue
            }
            defer { rd_kafka_message_destroy(message) }
            let partition = message.pointee.partition
            switch message.pointee.err {
            case RD_KAFKA_RESP_ERR_NO_ERROR:
                deadline = monotonicMs() + silenceMs
                let record = KafkaRecord(message, partition: TopicPartition(topic: 0, partition: partition))
                positions[partition] = record.offset &+ 1
                if isBeforeStart(record) { continue }
                if try visit(record) == .stop { return .stopped }
            case RD_KAFKA_RESP_ERR__PARTITION_EOF:
                if untilEnd { unfinished.remove(partition) }
            case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
                throw KafkaFault.call(doing: "reading topic \(topic)", KafkaError(message.pointee.err))
            default:
                if let fatal = handle.fatalError { throw KafkaFault.call(doing: "reading topic \(topic)", fatal) }
                if monotonicMs() >= deadline { return .timedOut }
            }
        }
        return .reachedEnd
    }

    /// Stops fetching until `resume`.
    public func pause() throws(KafkaFault) {
        let code = rd_kafka_assign(handle.raw, nil)
        if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw .call(doing: "leaving \(topic)", KafkaError(code)) }
    }

    /// The next `read` continues after the last delivered record, to the partitions' ends at that time. Blocks up to
    /// `timeoutMs`.
    public func resume(timeoutMs: Int = 10_000) throws(KafkaFault) {
        unfinished = Set(partitions)
        try assign(timeoutMs: timeoutMs)
    }

    /// The record itself decides: a broker's index by time is coarse or missing, and an offset beyond the end makes
    /// reading start over at the oldest.
    private func isBeforeStart(_ record: borrowing KafkaRecord) -> Bool {
        switch starts[record.partition.partition] ?? start {
        case .earliest: false
        case .offset(let offset): record.offset < offset
        case .timeMs(let time): record.timestampMs.map { $0 < time } ?? false
        }
    }

    private func assign(timeoutMs: Int) throws(KafkaFault) {
        guard let list = rd_kafka_topic_partition_list_new(Int32(partitions.count)) else {
            throw .creation("out of memory")
        }
        defer { rd_kafka_topic_partition_list_destroy(list) }
        for partition in partitions {
            let item = rd_kafka_topic_partition_list_add(list, topic, partition)
            item?.pointee.offset = (starts[partition] ?? start).firstOffset
        }
        try resolveTimes(in: list, timeoutMs: timeoutMs)
        for (partition, position) in positions {
            rd_kafka_topic_partition_list_set_offset(list, topic, partition, position)
        }
        let code = rd_kafka_assign(handle.raw, list)
        if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw .call(doing: "assigning \(topic)", KafkaError(code)) }
    }

    /// Asks only for the partitions that begin at a time.
    private func resolveTimes(
        in list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>, timeoutMs: Int
    ) throws(KafkaFault) {
        let timed = partitions.filter { if case .timeMs = starts[$0] ?? start { true } else { false } }
        if timed.isEmpty { return }
        guard let times = rd_kafka_topic_partition_list_new(Int32(timed.count)) else {
            throw .creation("out of memory")
        }
        defer { rd_kafka_topic_partition_list_destroy(times) }
        for partition in timed {
            rd_kafka_topic_partition_list_add(times, topic, partition)?.pointee.offset =
                (starts[partition] ?? start).firstOffset
        }
        Self.resolveTimes(times, handle, timeoutMs: timeoutMs)
        for index in 0..<Int(times.pointee.cnt) {
            let item = times.pointee.elems[index]
            rd_kafka_topic_partition_list_set_offset(list, topic, item.partition, item.offset)
        }
    }

    /// Replaces a list's times with offsets. Blocks up to `timeoutMs`.
    static func resolveTimes(
        _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>, _ handle: ClientHandle, timeoutMs: Int
    ) {
        let code = rd_kafka_offsets_for_times(handle.raw, list, Int32(clamping: timeoutMs))
        for index in 0..<Int(list.pointee.cnt) {
            let item = list.pointee.elems + index
            let known = code == RD_KAFKA_RESP_ERR_NO_ERROR && item.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR
            // Negative means "no such record" or a broker without the index. Reading from the start is slower but right
            // in both cases.
            if !known || item.pointee.offset < 0 { item.pointee.offset = Int64(RD_KAFKA_OFFSET_BEGINNING) }
        }
    }
}

extension KafkaTopicReader.Start {
    /// The offset at which fetching begins; for a time, the query's placeholder.
    var firstOffset: Int64 {
        switch self {
        case .earliest: Int64(RD_KAFKA_OFFSET_BEGINNING)
        case .offset(let offset): max(0, offset)
        case .timeMs(let time): max(0, time)
        }
    }
}
