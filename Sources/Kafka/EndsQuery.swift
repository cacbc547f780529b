// SPDX-License-Identifier: Apache-2.0
import CRdkafka
import Telemetry

/// Asks the brokers for the first and end offsets of partitions without blocking: on a separate thread, which ends with
/// the answer.
///
/// Fetches report ends only for partitions that are read. `rd_kafka_query_watermark_offsets` ignores its timeout in
/// 2.0.2 while a leader is away, and ListOffsets came with 2.3. `rd_kafka_offsets_for_times` sends the same request,
/// one per leader for all partitions together, and respects its timeout.
final class EndsQuery: Sendable {
    private struct State {
        var isAsking = false
        var answer: EndsAnswer?
    }

    private let handle: ClientHandle
    private let state = Guarded(State())
    /// Maximum time of each query.
    private static let patienceMs: Int32 = 4000

    init(_ handle: ClientHandle) { self.handle = handle }

    /// - Returns: false while a query is open; nothing was asked then.
    func ask(_ places: [(partition: TopicPartition, topic: String)], round: UInt, nowMs: Int64) -> Bool {
        let isOpen = state.withLock { state in
            defer { state.isAsking = true }
            return state.isAsking
        }
        if isOpen { return false }
        let isBegun = runDetached { [self] in
            let answer = self.answer(places, round: round, nowMs: nowMs)
            state.withLock { state in
                state.isAsking = false
                state.answer = answer
            }
        }
        // Without a thread there is no query, because this thread must not wait for brokers.
        if !isBegun { state.withLock { $0.isAsking = false } }
        return isBegun
    }

    private func answer(_ places: [(partition: TopicPartition, topic: String)], round: UInt, nowMs: Int64) -> EndsAnswer
    {
        var answer = EndsAnswer(round: round, askedMs: nowMs, reach: .whole)
        do throws(KafkaError) {
            if places.isEmpty { try lookForBrokers() } else { answer.ranges = try ranges(places, &answer.error) }
            if answer.error != nil { answer.reach = .partial }
        } catch {
            answer.error = error
            // One partition without a leader prevents the answer for all ends.
            answer.reach = places.isEmpty || (try? lookForBrokers()) == nil ? .none : .partial
        }
        return answer
    }

    /// Throws if no broker answers.
    private func lookForBrokers() throws(KafkaError) {
        var found: UnsafePointer<rd_kafka_metadata>?
        let code = rd_kafka_metadata(handle.raw, 0, nil, &found, Self.patienceMs)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code) }
        rd_kafka_metadata_destroy(found)
    }

    /// - Returns: the answer once.
    func takeAnswer() -> EndsAnswer? {
        state.withLock { state in
            defer { state.answer = nil }
            return state.answer
        }
    }

    /// - Parameter error: an error from a partition's leader.
    private func ranges(
        _ places: [(partition: TopicPartition, topic: String)], _ error: inout KafkaError?
    ) throws(KafkaError) -> [EndsAnswer.Place] {
        let starts = try offsets(places, at: Int64(RD_KAFKA_OFFSET_BEGINNING), &error)
        let ends = try offsets(places, at: Int64(RD_KAFKA_OFFSET_END), &error)
        return zip(places, zip(starts, ends)).map { place, offsets in
            guard let start = offsets.0, let end = offsets.1 else { return (place.partition, nil) }
            return (place.partition, min(start, end)..<end)
        }
    }

    /// In the order of `places`; nil if a partition's leader answered with an error.
    private func offsets(
        _ places: [(partition: TopicPartition, topic: String)], at time: Int64, _ error: inout KafkaError?
    ) throws(KafkaError) -> [Int64?] {
        guard let list = rd_kafka_topic_partition_list_new(Int32(clamping: places.count)) else {
            throw KafkaError(RD_KAFKA_RESP_ERR__FAIL)
        }
        defer { rd_kafka_topic_partition_list_destroy(list) }
        for place in places {
            rd_kafka_topic_partition_list_add(list, place.topic, place.partition.partition)?.pointee.offset = time
        }
        let code = rd_kafka_offsets_for_times(handle.raw, list, Self.patienceMs)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code) }
        guard Int(list.pointee.cnt) == places.count, let items = list.pointee.elems else {
            throw KafkaError(RD_KAFKA_RESP_ERR__BAD_MSG)
        }
        return places.indices.map { index in
            let item = items[index]
            if item.err != RD_KAFKA_RESP_ERR_NO_ERROR { error = KafkaError(item.err) }
            return item.err == RD_KAFKA_RESP_ERR_NO_ERROR && item.offset >= 0 ? item.offset : nil
        }
    }
}

/// The brokers' reachability, from the last query for the partitions' ends.
public enum KafkaReach: Sendable {
    /// Nothing was asked yet.
    case unknown
    /// All ends were reported.
    case whole
    /// Brokers answer, but not for every partition: one has no leader, or its leader is away.
    case partial
    /// No broker answers.
    case none

    /// Combines the knowledge of two consumers.
    public func and(_ other: KafkaReach) -> KafkaReach {
        if self == other { return self }
        let both = [self, other]
        return both.contains(.none) || both.contains(.partial) ? .partial : .unknown
    }
}
