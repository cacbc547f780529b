// SPDX-License-Identifier: Apache-2.0
extension KafkaConsumer {
    /// Stops fetching. Prefetched records are dropped and fetched again later, so do not switch often.
    ///
    /// Only transitions reach the library. Records already queued may still arrive.
    public func pause(_ partitions: some Sequence<TopicPartition>) {
        let fresh = Set(partitions).intersection(assignment).subtracting(paused)
        if fresh.isEmpty { return }
        paused.formUnion(fresh)
        client.pause(fresh)
    }

    /// Resumes fetching of partitions paused by `pause`. Others are left alone, because resuming a running partition
    /// may rewind it.
    public func resume(_ partitions: some Sequence<TopicPartition>) {
        let held = Set(partitions).intersection(paused)
        if held.isEmpty { return }
        paused.subtract(held)
        client.resume(held)
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
        if let error = client.seekToOldest(partition) { record(error, partition: partition) }
    }

    func goOnFetching(_ partitions: Set<TopicPartition>) {
        if !partitions.isEmpty { client.resume(partitions) }
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
        guard let reading = readings[partition],
            let next = reading.next ?? (client.reportsEnds ? nil : reading.committed),
            let end = client.fetchedEnd(partition)
        else { return nil }
        return max(end, next)
    }

    /// The end of a partition from the last question to its leader in this assignment; nil before the answer. No I/O.
    public func givenEnd(_ partition: TopicPartition) -> Int64? {
        takeEnds()
        return lags.end(of: partition)
    }

    /// The name that the brokers give their cluster; nil before the first contact, or if they give none. No I/O.
    public var clusterID: String? { client.clusterID }

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
}
