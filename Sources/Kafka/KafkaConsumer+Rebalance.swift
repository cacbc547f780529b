import CRdkafka

extension KafkaConsumer {
    /// Lets the deferred partitions go; what is settled is committed. Harmless when nothing is pending.
    ///
    /// Where the group lost patience meanwhile, the broker refuses the commit (`committed` with an error), and the
    /// records are read again by the next owner.
    public func completeRevocation() {
        let partitions = pendingRevocation
        if partitions.isEmpty { return }
        pendingRevocation = []
        release(partitions, lost: isAssignmentLost)
    }

    /// Whether the group took the partitions away already (session timeout, fencing): committing is in vain.
    ///
    /// 2.0.2 does not raise this during a revocation that is already under way.
    public var isAssignmentLost: Bool { rd_kafka_assignment_lost(raw) == 1 }

    /// Asks the library's own thread and waits for it: never after the group was told that partitions are given back while
    /// closing, since the thread may end the group's part then and leave the question unanswered for ever (seen in 2.0.2).
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
            // The library asks for synchronisation by an empty assignment after an error.
            rd_kafka_assign(raw, nil)
            record(KafkaError(code), partition: nil)
        }
    }

    /// Where to begin is asked first: `begin` follows.
    private func take(_ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?) {
        completeRevocation()
        if isCooperative { completeAssignment() } else { dropOvertaken() }
        pendingAssignment = PendingAssignment(
            partitions: partitions(in: list), deadlineMs: monotonicMs() + assignmentPatienceMs)
        assignmentRound &+= 1
        if isClosing { completeAssignment() } else { askCommitted() }
    }

    /// An assignment of an eager group is all there is. 2.0.2 may tell one without a revocation before it: where the topics
    /// change while an assignment is pending, it joins anew by itself (`rd_kafka_cgrp_revoke_all_rejoin`).
    private func dropOvertaken() {
        pendingAssignment = nil
        if assignment.isEmpty { return }
        let partitions = Array(assignment)
        _ = delegate?.kafka(self, willRevoke: partitions, lost: true)
        goOnFetching(paused)
        // The library still reads them; it is to have stopped before the next ones are begun.
        assignNothing()
        forget(partitions, lost: true)
    }

    /// What the group has committed of the pending assignment.
    private func askCommitted() {
        guard let partitions = pendingAssignment?.partitions else { return }
        let isAsked = withNativeList(partitions) { committedQuery.ask($0, round: assignmentRound) } ?? false
        if !isAsked { completeAssignment() }
    }

    /// Begins the pending assignment where the broker has told what is committed of it. After a while without an answer the
    /// library is left to ask, so that the group can share out anew.
    func takeCommitted() {
        committedQuery.takeAnswers { list, round in
            // Asked for an assignment that is over, or begun without it.
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

    /// Begins the pending assignment without an answer, if there is one: the library asks for the offsets itself.
    func completeAssignment() { begin(nil) }

    /// Tells the library to read, and each partition's offset with it.
    ///
    /// Left to ask for the offset itself, the library begins a partition when the answer comes, on its own thread. In 2.0.2
    /// (`rd_kafka_toppar_op_serve`) that order is dropped, and the partition stays unread for good, where a `pause` or
    /// `resume` gets a later number and is passed on first. Told the offset it has given the order when this returns.
    ///
    /// - Parameter answer: the pending partitions with what is committed of them; the library asks for what is missing there.
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

    /// Some may have gone since they were asked for.
    private func keep(_ partitions: Set<TopicPartition>, in list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>)
    {
        for gone in self.partitions(in: list) where !partitions.contains(gone) {
            rd_kafka_topic_partition_list_del(list, topics[gone.topic], gone.partition)
        }
    }

    /// Without a committed offset the policy says where to begin: here, or nowhere, which is an error that the library tells.
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
        // An eager group takes back all there is. A cooperative one may take back more during a drain: they go together.
        let going =
            isCooperative
            ? Set(told).union(pendingRevocation) : assignment.union(pendingAssignment?.partitions ?? [])
        dropPending(going)
        // What was not begun is not told.
        let partitions = Array(going.intersection(assignment))
        let answer = delegate?.kafka(self, willRevoke: partitions, lost: lost) ?? .complete
        if lost || answer == .complete || partitions.isEmpty {
            // A drain that went on meanwhile is overtaken.
            pendingRevocation = []
            release(partitions, lost: lost)
        } else {
            pendingRevocation = partitions
        }
    }

    /// The rest stays: a cooperative group does not give it a second time.
    private func dropPending(_ partitions: Set<TopicPartition>) {
        pendingAssignment?.partitions.removeAll(where: partitions.contains)
        if pendingAssignment?.partitions.isEmpty ?? false { pendingAssignment = nil }
    }

    private func release(_ partitions: [TopicPartition], lost: Bool) {
        if !lost { commit(partitions) }
        // Unassign forgets only the library's own pause; ours would silence the partition when it comes back. Of all of them,
        // since an order to resume may have been dropped.
        goOnFetching(Set(partitions))
        let isCooperative = isCooperative
        if isCooperative {
            withNativeList(partitions) { list in
                if let error = rd_kafka_incremental_unassign(raw, list) { fail(error) }
            }
        } else {
            assignNothing()
            // An eager group gives everything back, and tells anew what is whose.
            isAssigned = false
        }
        forget(partitions, lost: lost)
        if pendingAssignment != nil {
            // An answer from before would meet the commit and the stop of these. The next one follows them.
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
