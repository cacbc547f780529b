import CRdkafka

extension KafkaConsumer {
    /// Stops fetching. Prefetched records are dropped and fetched again later, so do not switch often.
    ///
    /// Only transitions reach the library. Records already queued may still arrive.
    public func pause(_ partitions: some Sequence<TopicPartition>) {
        let fresh = Set(partitions).intersection(assignment).subtracting(paused)
        if fresh.isEmpty { return }
        paused.formUnion(fresh)
        stopFetching(fresh)
    }

    /// Resumes fetching of partitions paused by `pause`. Others are left alone, because resuming a running partition
    /// may rewind it.
    public func resume(_ partitions: some Sequence<TopicPartition>) {
        let held = Set(partitions).intersection(paused)
        if held.isEmpty { return }
        paused.subtract(held)
        goOnFetching(held)
        turnBrokers()
    }

    /// librdkafka does not wake a broker's thread for a resumed partition. If nothing else is fetched from that broker, the thread
    /// notices up to a second later. A question for the ends wakes it at once.
    private func turnBrokers() {
        endsAskedMs = nil
        watchLag()
    }

    /// Reads an assigned partition again from its oldest record. `restarted` is reported when that comes, unless nothing was read
    /// before.
    public func rewind(_ partition: TopicPartition) {
        guard assignment.contains(partition) else { return }
        _ = withNativeList([partition]) { list in
            list.pointee.elems?.pointee.offset = Int64(RD_KAFKA_OFFSET_BEGINNING)
            // 0: it does not wait for the outcome.
            if let error = rd_kafka_seek_partitions(raw, list, 0) {
                record(KafkaError(rd_kafka_error_code(error)), partition: partition)
                rd_kafka_error_destroy(error)
            }
        }
    }

    private func stopFetching(_ partitions: Set<TopicPartition>) {
        if !partitions.isEmpty { _ = withNativeList(partitions) { rd_kafka_pause_partitions(raw, $0) } }
    }

    func goOnFetching(_ partitions: Set<TopicPartition>) {
        if !partitions.isEmpty { _ = withNativeList(partitions) { rd_kafka_resume_partitions(raw, $0) } }
    }

    /// The offset of the partition's next record, or a lower bound of it: after the last record delivered, or the end;
    /// before that the committed offset. Nil while neither is known.
    public func position(_ partition: TopicPartition) -> Int64? {
        guard let reading = readings[partition] else { return nil }
        return reading.next ?? reading.committed
    }

    /// The end of a partition from the last fetch. Nil before the first answer in this assignment; without end reports
    /// also before its first record or committed offset. No I/O.
    public func highWatermark(_ partition: TopicPartition) -> Int64? {
        guard let reading = readings[partition], let next = reading.next ?? (reportsEnds ? nil : reading.committed),
            topics.indices.contains(partition.topic)
        else { return nil }
        var low: Int64 = 0
        var high: Int64 = 0
        // Cached values only: the query ignores its timeout in 2.0.2 while a leader is down.
        guard
            rd_kafka_get_watermark_offsets(raw, topics[partition.topic], partition.partition, &low, &high)
                == RD_KAFKA_RESP_ERR_NO_ERROR
        else { return nil }
        return max(high, next)
    }

    /// The ends of all assigned partitions now; nil while one of them is unknown, and between two assignments. Empty where the
    /// group has no partition for this member.
    public func knownEnds() -> [TopicPartition: Int64]? {
        // An eager group revokes all partitions before it assigns again. The next assignment is not known then.
        if !isAssigned || pendingAssignment != nil { return nil }
        var ends: [TopicPartition: Int64] = [:]
        for partition in assignment {
            guard let end = highWatermark(partition) else { return nil }
            ends[partition] = end
        }
        return ends
    }

    /// - Returns: whether all records before these ends were delivered, or now belong to another member.
    public func hasReached(_ ends: [TopicPartition: Int64]) -> Bool {
        ends.allSatisfy { partition, end in
            guard let reading = readings[partition] else { return true }
            return end <= 0 || (reading.next ?? reading.committed ?? -1) >= end
        }
    }

    /// The group's committed offsets from the broker. Blocks up to `timeoutMs`: control plane only.
    public func committed(
        _ partitions: [TopicPartition], timeoutMs: Int
    ) throws(KafkaFault) -> [PartitionOffset] {
        var offsets: [PartitionOffset] = []
        let code = withNativeList(partitions) { list in
            let code = rd_kafka_committed(raw, list, Int32(clamping: timeoutMs))
            forEach(in: list) { item, partition in
                offsets.append(PartitionOffset(partition: partition, offset: item.offset >= 0 ? item.offset : nil))
            }
            return code
        }
        guard let code, code == RD_KAFKA_RESP_ERR_NO_ERROR else {
            throw .call(doing: "reading committed offsets", KafkaError(code ?? RD_KAFKA_RESP_ERR__FAIL))
        }
        return offsets
    }
}
