// SPDX-License-Identifier: Apache-2.0
import CRdkafka
import Glibc

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

/// Calls with lists of partitions.
extension NativeGroupClient {
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
