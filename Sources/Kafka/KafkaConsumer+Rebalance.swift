import CRdkafka

extension KafkaConsumer {
    /// Releases the deferred partitions after committing settled offsets. Harmless if nothing is pending.
    ///
    /// If the group has removed this member, the broker refuses the commit (`committed` with an error), and the next
    /// owner reads the records again.
    public func completeRevocation() {
        let partitions = pendingRevocation
        if partitions.isEmpty { return }
        pendingRevocation = []
        release(partitions, lost: isAssignmentLost)
    }

    /// Whether the group has already taken the partitions away (session timeout, fencing). A commit is useless then.
    ///
    /// 2.0.2 does not set this during a revocation that has begun.
    public var isAssignmentLost: Bool { rd_kafka_assignment_lost(raw) == 1 }

    /// Asks the library's own thread and waits for it. Never call it after partitions were given back while closing:
    /// the thread may end its group part then and never answer (seen in 2.0.2).
    private var isCooperative: Bool {
        guard let name = rd_kafka_rebalance_protocol(raw) else { return false }
        return String(cString: name) == "COOPERATIVE"
    }

    fileprivate func rebalance(
        _ code: rd_kafka_resp_err_t, _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?
    ) {
        handOver()
        switch code {
        case RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS: take(list)
        case RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS: giveUp(partitions(in: list))
        default:
            // The library requests this synchronisation by an empty assignment after an error.
            rd_kafka_assign(raw, nil)
            record(KafkaError(code), partition: nil)
        }
    }

    /// Asks for the start offsets first; `begin` follows.
    private func take(_ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?) {
        completeRevocation()
        if isCooperative { completeAssignment() } else { dropOvertaken() }
        pendingAssignment = PendingAssignment(
            partitions: partitions(in: list), deadlineMs: monotonicMs() + assignmentPatienceMs)
        assignmentRound &+= 1
        if isClosing { completeAssignment() } else { askCommitted() }
    }

    /// An assignment of an eager group replaces everything. 2.0.2 may report one without a revocation before it: if the
    /// topics change while an assignment is pending, it rejoins by itself (`rd_kafka_cgrp_revoke_all_rejoin`).
    private func dropOvertaken() {
        pendingAssignment = nil
        if assignment.isEmpty { return }
        let partitions = Array(assignment)
        _ = delegate?.kafka(self, willRevoke: partitions, lost: true)
        goOnFetching(paused)
        // The library still reads them. It must stop before the next ones start.
        assignNothing()
        forget(partitions, lost: true)
    }

    /// Asks for the group's committed offsets of the pending assignment.
    private func askCommitted() {
        guard let partitions = pendingAssignment?.partitions else { return }
        let isAsked = withNativeList(partitions) { committedQuery.ask($0, round: assignmentRound) } ?? false
        if !isAsked { completeAssignment() }
    }

    /// Starts the pending assignment when the broker has reported its committed offsets. After a time without an answer
    /// the library asks itself, so that the group can rebalance.
    func takeCommitted() {
        committedQuery.takeAnswers { list, round in
            // The answer is for an assignment that has ended, or that started without it.
            guard let deadlineMs = pendingAssignment?.deadlineMs, round == assignmentRound else { return }
            if let list {
                begin(list)
            } else if monotonicMs() >= deadlineMs {
                completeAssignment()
            } else {
                askCommitted()
            }
        }
    }

    /// Starts the pending assignment without an answer, if there is one: the library asks for the offsets itself.
    func completeAssignment() { begin(nil) }

    /// Makes the library read, and gives it each partition's offset.
    ///
    /// If the library asks for the offset itself, it starts the partition on its own thread when the answer comes. In
    /// 2.0.2 (`rd_kafka_toppar_op_serve`) that start is dropped, and the partition is never read, if a `pause` or
    /// `resume` with a later number is processed first. With a given offset it has started when this returns.
    ///
    /// - Parameter answer: the pending partitions with their committed offsets. The library asks for missing ones.
    private func begin(_ answer: UnsafePointer<rd_kafka_topic_partition_list_t>?) {
        guard let partitions = pendingAssignment?.partitions else { return }
        pendingAssignment = nil
        let starts = answer.flatMap { rd_kafka_topic_partition_list_copy($0) }
        defer { if let starts { rd_kafka_topic_partition_list_destroy(starts) } }
        if let starts {
            keep(Set(partitions), in: starts)
            setOldest(in: starts)
            assign(starts)
        } else {
            withNativeList(partitions) { assign($0) }
        }
        assignment.formUnion(partitions)
        for partition in partitions {
            readings.assign(partition)
            lags.assign(partition, round: assignmentRound)
        }
        isAssigned = true
        endsAskedMs = nil
        watchLag()
        report(.assigned(partitions))
        if let starts { noteCommitted(starts) }
    }

    /// Some may have been revoked since they were asked for.
    private func keep(_ partitions: Set<TopicPartition>, in list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>)
    {
        for gone in self.partitions(in: list) where !partitions.contains(gone) {
            rd_kafka_topic_partition_list_del(list, topics[gone.topic], gone.partition)
        }
    }

    /// Without a committed offset the policy decides: the oldest record, or an error, which the library reports.
    private func setOldest(in list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) {
        guard startsAtOldest, let elements = list.pointee.elems else { return }
        for index in 0..<Int(list.pointee.cnt)
        where elements[index].err == RD_KAFKA_RESP_ERR_NO_ERROR && elements[index].offset < 0 {
            elements[index].offset = Int64(RD_KAFKA_OFFSET_BEGINNING)
        }
    }

    private func assign(_ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) {
        if isCooperative {
            if let error = rd_kafka_incremental_assign(raw, list) { fail(error) }
        } else {
            let code = rd_kafka_assign(raw, list)
            if code != RD_KAFKA_RESP_ERR_NO_ERROR { record(KafkaError(code), partition: nil) }
        }
    }

    private func noteCommitted(_ starts: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) {
        var committed: [PartitionOffset] = []
        forEach(in: starts) { item, partition in
            guard item.err == RD_KAFKA_RESP_ERR_NO_ERROR else { return }
            let offset = item.offset >= 0 ? item.offset : nil
            readings.noteCommitted(partition, offset)
            lags.noteCommittedBefore(partition, offset)
            committed.append(PartitionOffset(partition: partition, offset: offset, settled: settled(in: item)))
            committedNotes[partition] = note(in: item)
            sentNotes[partition] = committedNotes[partition]
        }
        for one in committed { commits.noteCommitted(one) }
        if !committed.isEmpty { delegate?.kafka(self, didLearnCommitted: committed) }
    }

    private func giveUp(_ told: [TopicPartition]) {
        let lost = isAssignmentLost
        // An eager group takes back everything. A cooperative group may take back more during a drain; these are
        // released together.
        let going =
            isCooperative
            ? Set(told).union(pendingRevocation) : assignment.union(pendingAssignment?.partitions ?? [])
        dropPending(going)
        // Partitions that were not started are not reported.
        let partitions = Array(going.intersection(assignment))
        let answer = delegate?.kafka(self, willRevoke: partitions, lost: lost) ?? .complete
        if lost || answer == .complete || partitions.isEmpty {
            // The new revocation replaces a drain in progress.
            pendingRevocation = []
            release(partitions, lost: lost)
        } else {
            pendingRevocation = partitions
        }
    }

    /// The rest remains, because a cooperative group does not assign it again.
    private func dropPending(_ partitions: Set<TopicPartition>) {
        pendingAssignment?.partitions.removeAll(where: partitions.contains)
        if pendingAssignment?.partitions.isEmpty ?? false { pendingAssignment = nil }
    }

    private func release(_ partitions: [TopicPartition], lost: Bool) {
        if !lost { commit(partitions) }
        // Unassign clears only the library's own pause. Ours would silence the partition when it returns. Applies to
        // all of them, because a resume request may have been dropped.
        goOnFetching(Set(partitions))
        let isCooperative = isCooperative
        if isCooperative {
            withNativeList(partitions) { list in
                if let error = rd_kafka_incremental_unassign(raw, list) { fail(error) }
            }
        } else {
            assignNothing()
            // An eager group gives everything back and assigns again.
            isAssigned = false
        }
        forget(partitions, lost: lost)
        if pendingAssignment != nil {
            // An earlier answer would collide with the commit and the stop of these. The next query follows them.
            assignmentRound &+= 1
            askCommitted()
        }
    }

    private func assignNothing() {
        let code = rd_kafka_assign(raw, nil)
        if code != RD_KAFKA_RESP_ERR_NO_ERROR { record(KafkaError(code), partition: nil) }
    }

    private func forget(_ partitions: [TopicPartition], lost: Bool) {
        assignment.subtract(partitions)
        paused.subtract(partitions)
        for partition in partitions {
            readings.revoke(partition)
            lags.revoke(partition)
            commits.forget(partition)
            commitNotes[partition] = nil
            committedNotes[partition] = nil
            sentNotes[partition] = nil
        }
        report(.revoked(partitions, lost: lost))
    }

    private func settled(in item: rd_kafka_topic_partition_t) -> SettledOffsets? {
        guard let text = item.metadata, item.metadata_size > 0 else { return nil }
        let (_, rest) = CommitNote.split(UnsafeRawBufferPointer(start: text, count: item.metadata_size))
        return SettledOffsets(metadata: rest, committed: item.offset)
    }

    private func note(in item: rd_kafka_topic_partition_t) -> Int64? {
        guard let text = item.metadata, item.metadata_size > 0 else { return nil }
        return CommitNote.split(UnsafeRawBufferPointer(start: text, count: item.metadata_size)).note
    }

    private func fail(_ error: OpaquePointer) {
        record(KafkaError(rd_kafka_error_code(error)), partition: nil)
        rd_kafka_error_destroy(error)
    }

    // MARK: - Lists

    func partitions(in list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?) -> [TopicPartition] {
        var partitions: [TopicPartition] = []
        forEach(in: list) { _, partition in partitions.append(partition) }
        return partitions
    }

    func forEach(
        in list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?,
        _ visit: (rd_kafka_topic_partition_t, TopicPartition) -> Void
    ) {
        guard let list, let elements = list.pointee.elems else { return }
        for index in 0..<Int(list.pointee.cnt) {
            let item = elements[index]
            guard let name = item.topic, let topic = topics.firstIndex(of: String(cString: name)) else { continue }
            visit(item, TopicPartition(topic: topic, partition: item.partition))
        }
    }

    func withNativeList<Result>(
        _ partitions: some Collection<TopicPartition>,
        _ body: (UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) -> Result
    ) -> Result? {
        guard let list = rd_kafka_topic_partition_list_new(Int32(clamping: partitions.count)) else { return nil }
        defer { rd_kafka_topic_partition_list_destroy(list) }
        for item in partitions where topics.indices.contains(item.topic) {
            rd_kafka_topic_partition_list_add(list, topics[item.topic], item.partition)
        }
        return body(list)
    }
}

let rebalanceCallback:
    @convention(c) (
        OpaquePointer?, rd_kafka_resp_err_t, UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?,
        UnsafeMutableRawPointer?
    ) -> Void = { _, code, list, opaque in
        CallbackContext.from(opaque)?.consumer?.rebalance(code, list)
    }

let errorCallback: @convention(c) (OpaquePointer?, Int32, UnsafePointer<CChar>?, UnsafeMutableRawPointer?) -> Void = {
    _, code, text, opaque in
    CallbackContext.from(opaque)?.consumer?.record(
        KafkaError(rd_kafka_resp_err_t(rawValue: code), text: text.map { String(cString: $0) }), partition: nil)
}

let statisticsCallback:
    @convention(c) (OpaquePointer?, UnsafeMutablePointer<CChar>?, Int, UnsafeMutableRawPointer?) -> Int32 = {
        _, json, count, opaque in
        if let json, let consumer = CallbackContext.from(opaque)?.consumer {
            consumer.delegate?.kafka(
                consumer, didReceiveStatistics: UnsafeRawBufferPointer(start: json, count: count))
        }
        // 0: the library frees the text.
        return 0
    }
