import CRdkafka
import Telemetry

/// Asks the brokers where partitions begin and end, without blocking: on a thread of its own, which ends with the answer.
///
/// Fetches tell the ends only of what is being read. Of librdkafka's questions `rd_kafka_query_watermark_offsets` ignores
/// its timeout in 2.0.2 while a leader is away, and ListOffsets came with 2.3; `rd_kafka_offsets_for_times` sends the same
/// request, one per leader for all partitions together, and keeps its timeout.
final class EndsQuery: Sendable {
    struct Answer {
        var round: UInt
        /// Unix ms: the ends were these, or lay before them, at that moment.
        var askedMs: Int64
        var reach: KafkaReach
        /// Empty where the question as a whole was not answered; a range is nil where that of its partition was not.
        var ranges: [(partition: TopicPartition, range: Range<Int64>?)]
    }

    private struct State {
        var isAsking = false
        var answer: Answer?
    }

    private let handle: ClientHandle
    private let state = Guarded(State())
    /// How long each question may take.
    private static let patienceMs: Int32 = 4000

    init(_ handle: ClientHandle) { self.handle = handle }

    /// False while a question is open: nothing was asked then.
    func ask(_ places: [(partition: TopicPartition, topic: String)], round: UInt, nowMs: Int64) -> Bool {
        let isOpen = state.withLock { state in
            defer { state.isAsking = true }
            return state.isAsking
        }
        if isOpen { return false }
        detach { [self] in
            let ranges = places.isEmpty ? nil : self.ranges(places)
            // The ends of all are not told where one partition has no leader.
            let reach = ranges != nil ? KafkaReach.whole : !isAnybodyThere ? .none : places.isEmpty ? .whole : .partial
            state.withLock { state in
                state.isAsking = false
                state.answer = Answer(round: round, askedMs: nowMs, reach: reach, ranges: ranges ?? [])
            }
        }
        return true
    }

    /// Some broker answers.
    private var isAnybodyThere: Bool {
        var found: UnsafePointer<rd_kafka_metadata>?
        guard rd_kafka_metadata(handle.raw, 0, nil, &found, Self.patienceMs) == RD_KAFKA_RESP_ERR_NO_ERROR else {
            return false
        }
        rd_kafka_metadata_destroy(found)
        return true
    }

    /// The answer, once.
    func takeAnswer() -> Answer? {
        state.withLock { state in
            defer { state.answer = nil }
            return state.answer
        }
    }

    private func ranges(
        _ places: [(partition: TopicPartition, topic: String)]
    ) -> [(partition: TopicPartition, range: Range<Int64>?)]? {
        guard let starts = offsets(places, at: Int64(RD_KAFKA_OFFSET_BEGINNING)),
            let ends = offsets(places, at: Int64(RD_KAFKA_OFFSET_END))
        else { return nil }
        return zip(places, zip(starts, ends)).map { place, offsets in
            guard let start = offsets.0, let end = offsets.1 else { return (place.partition, nil) }
            return (place.partition, min(start, end)..<end)
        }
    }

    /// In the order of `places`; nil where a partition's leader answered with an error.
    private func offsets(_ places: [(partition: TopicPartition, topic: String)], at time: Int64) -> [Int64?]? {
        guard let list = rd_kafka_topic_partition_list_new(Int32(clamping: places.count)) else { return nil }
        defer { rd_kafka_topic_partition_list_destroy(list) }
        for place in places {
            rd_kafka_topic_partition_list_add(list, place.topic, place.partition.partition)?.pointee.offset = time
        }
        guard rd_kafka_offsets_for_times(handle.raw, list, Self.patienceMs) == RD_KAFKA_RESP_ERR_NO_ERROR,
            Int(list.pointee.cnt) == places.count, let items = list.pointee.elems
        else { return nil }
        return places.indices.map { index in
            let item = items[index]
            return item.err == RD_KAFKA_RESP_ERR_NO_ERROR && item.offset >= 0 ? item.offset : nil
        }
    }
}

/// What the last look at the partitions' ends told of the brokers.
public enum KafkaReach: Sendable {
    /// Nothing was asked yet.
    case unknown
    /// They told all ends.
    case whole
    /// Brokers answer, but not for every partition: one has no leader, or its leader is away.
    case partial
    /// None answers.
    case none
}
