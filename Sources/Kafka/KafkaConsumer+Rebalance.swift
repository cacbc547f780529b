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

    private func take(_ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?) {
        // A new assignment cannot follow an unfinished revocation, but if it did, the old one is over.
        completeRevocation()
        let partitions = partitions(in: list)
        if isCooperative {
            if let error = rd_kafka_incremental_assign(raw, list) { fail(error) }
        } else {
            let code = rd_kafka_assign(raw, list)
            if code != RD_KAFKA_RESP_ERR_NO_ERROR { record(KafkaError(code), partition: nil) }
        }
        assignment.formUnion(partitions)
        assignmentRound &+= 1
        for partition in partitions {
            readings.assign(partition, round: assignmentRound)
            lags.assign(partition, round: assignmentRound)
        }
        isAssigned = true
        endsAskedMs = nil
        watchLag()
        questionTries = 0
        askCommitted(partitions)
        report(.assigned(partitions))
    }

    /// Nothing of them is read before the answer, since what is settled beyond the committed offset stands in it. A broker
    /// that does not answer this does not tell the library either where to begin.
    private func askCommitted(_ partitions: [TopicPartition]) {
        questionTries += 1
        let isAsked = withNativeList(partitions) { committedQuery.ask($0, round: assignmentRound) } ?? false
        guard isAsked else { return letRead(unanswered.intersection(partitions)) }
        let fresh = Set(partitions).subtracting(unanswered)
        unanswered.formUnion(fresh)
        stopFetching(fresh.subtracting(paused))
    }

    /// Ends the waiting for an answer.
    private func letRead(_ partitions: Set<TopicPartition>) {
        unanswered.subtract(partitions)
        goOnFetching(partitions.subtracting(paused))
    }

    private func giveUp(_ partitions: [TopicPartition]) {
        let lost = isAssignmentLost
        let answer = delegate?.kafka(self, willRevoke: partitions, lost: lost) ?? .complete
        if lost || answer == .complete || partitions.isEmpty {
            // A drain that went on meanwhile is overtaken.
            pendingRevocation = []
            release(partitions, lost: lost)
        } else {
            pendingRevocation = partitions
        }
    }

    private func release(_ partitions: [TopicPartition], lost: Bool) {
        if !lost { commit(partitions) }
        // Unassign forgets only the library's own pause; ours would silence the partition when it comes back.
        resume(paused.filter(partitions.contains))
        letRead(unanswered.intersection(partitions))
        let isCooperative = isCooperative
        if isCooperative {
            withNativeList(partitions) { list in
                if let error = rd_kafka_incremental_unassign(raw, list) { fail(error) }
            }
        } else {
            let code = rd_kafka_assign(raw, nil)
            if code != RD_KAFKA_RESP_ERR_NO_ERROR { record(KafkaError(code), partition: nil) }
        }
        // An eager group gives everything back, and tells anew what is whose.
        if !isCooperative { isAssigned = false }
        assignment.subtract(partitions)
        paused.subtract(partitions)
        for partition in partitions {
            readings.revoke(partition)
            lags.revoke(partition)
            commits.forget(partition)
        }
        report(.revoked(partitions, lost: lost))
    }

    /// Tells what the group had committed when partitions were assigned, and lets them be read.
    func takeCommitted() {
        committedQuery.takeAnswers { list, round in
            let waiting = unanswered.filter { readings[$0]?.round == round }
            guard let list else {
                if waiting.isEmpty { return }
                return questionTries < 3 && round == assignmentRound
                    ? askCommitted(Array(waiting)) : letRead(waiting)
            }
            var offsets: [PartitionOffset] = []
            forEach(in: UnsafeMutablePointer(mutating: list)) { item, partition in
                guard item.err == RD_KAFKA_RESP_ERR_NO_ERROR else { return }
                let offset = item.offset >= 0 ? item.offset : nil
                guard readings.noteCommitted(partition, offset, round: round) else { return }
                lags.noteCommittedBefore(partition, offset, round: round)
                offsets.append(
                    PartitionOffset(partition: partition, offset: offset, settled: settled(in: item)))
            }
            for offset in offsets { commits.noteCommitted(offset) }
            if !offsets.isEmpty { delegate?.kafka(self, didLearnCommitted: offsets) }
            letRead(waiting)
        }
    }

    private func settled(in item: rd_kafka_topic_partition_t) -> SettledOffsets? {
        guard let text = item.metadata, item.metadata_size > 0 else { return nil }
        return SettledOffsets(
            metadata: UnsafeRawBufferPointer(start: text, count: item.metadata_size), committed: item.offset)
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
