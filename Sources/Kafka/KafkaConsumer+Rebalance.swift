// SPDX-License-Identifier: Apache-2.0
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
    public var isAssignmentLost: Bool { client.isAssignmentLost }

    package func rebalance(_ change: GroupRebalance) {
        switch change {
        case .assign(let partitions): take(partitions)
        case .revoke(let partitions): giveUp(partitions)
        case .failed(let error):
            // The library requests this synchronisation by an empty assignment after an error.
            _ = client.unassignAll()
            record(error, partition: nil)
        }
    }

    /// Asks for the start offsets first; `begin` follows.
    private func take(_ partitions: [TopicPartition]) {
        completeRevocation()
        if client.isCooperative { completeAssignment() } else { dropOvertaken() }
        pendingAssignment = PendingAssignment(
            partitions: partitions, deadlineMs: client.steadyMs + assignmentPatienceMs)
        assignmentRound &+= 1
        if isClosing { completeAssignment() } else { askCommitted() }
    }

    /// An assignment of an eager group replaces everything. 2.0.2 may report one without a revocation before it: if the
    /// topics change while an assignment is pending, it rejoins by itself (`rd_kafka_cgrp_revoke_all_rejoin`).
    private func dropOvertaken() {
        pendingAssignment = nil
        if assignment.isEmpty { return }
        let partitions = assignment.sorted()
        _ = delegate?.kafka(self, willRevoke: partitions, lost: true)
        goOnFetching(paused)
        // The library still reads them. It must stop before the next ones start.
        assignNothing()
        forget(partitions, lost: true)
    }

    /// Asks for the group's committed offsets of the pending assignment.
    private func askCommitted() {
        guard let partitions = pendingAssignment?.partitions else { return }
        if !client.askCommitted(partitions, round: assignmentRound) { completeAssignment() }
    }

    /// Starts the pending assignment when the broker has reported its committed offsets. After a time without an answer
    /// the library asks itself, so that the group can rebalance.
    ///
    /// - Parameter answer: nil if the question failed.
    package func committedCame(_ answer: [GroupOffset]?, round: UInt) {
        // The answer is for an assignment that has ended, or that started without it.
        guard let deadlineMs = pendingAssignment?.deadlineMs, round == assignmentRound else { return }
        if let answer {
            begin(answer)
        } else if client.steadyMs >= deadlineMs {
            completeAssignment()
        } else {
            askCommitted()
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
    private func begin(_ answer: [GroupOffset]?) {
        guard let partitions = pendingAssignment?.partitions else { return }
        pendingAssignment = nil
        // Some may have been revoked since they were asked for.
        let known = answer?.filter { partitions.contains($0.partition) }
        let starts = known?.map(start(at:)) ?? partitions.map { PartitionStart(partition: $0, place: .committed) }
        let error = client.isCooperative ? client.assignMore(starts) : client.assign(starts)
        if let error { record(error, partition: nil) }
        assignment.formUnion(partitions)
        for partition in partitions {
            readings.assign(partition)
            lags.assign(partition, round: assignmentRound)
        }
        isAssigned = true
        endsAskedMs = nil
        watchLag()
        report(.assigned(partitions))
        if let known { noteCommitted(known) }
    }

    /// Without a committed offset the policy decides: the oldest record, or an error, which the library reports.
    private func start(at committed: GroupOffset) -> PartitionStart {
        let place: PartitionStart.Place =
            if let offset = committed.offset {
                .offset(offset)
            } else if committed.error == nil, client.startsAtOldest {
                .oldest
            } else {
                .committed
            }
        return PartitionStart(partition: committed.partition, place: place)
    }

    private func noteCommitted(_ items: [GroupOffset]) {
        var committed: [PartitionOffset] = []
        for item in items where item.error == nil {
            let (note, settled) = item.notes
            readings.noteCommitted(item.partition, item.offset)
            lags.noteCommittedBefore(item.partition, item.offset)
            committed.append(PartitionOffset(partition: item.partition, offset: item.offset, settled: settled))
            committedNotes[item.partition] = note
            sentNotes[item.partition] = note
        }
        for one in committed { commits.noteCommitted(one) }
        if !committed.isEmpty { delegate?.kafka(self, didLearnCommitted: committed) }
    }

    private func giveUp(_ told: [TopicPartition]) {
        let lost = isAssignmentLost
        // An eager group takes back everything. A cooperative group may take back more during a drain; these are
        // released together.
        let going =
            client.isCooperative
            ? Set(told).union(pendingRevocation) : assignment.union(pendingAssignment?.partitions ?? [])
        dropPending(going)
        // Partitions that were not started are not reported.
        let partitions = going.intersection(assignment).sorted()
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
        if client.isCooperative {
            if let error = client.unassign(partitions) { record(error, partition: nil) }
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
        if let error = client.unassignAll() { record(error, partition: nil) }
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
}

extension GroupOffset {
    /// The owner's number and the list of settled offsets in the metadata. A number above the offset is of another cluster: a tool
    /// that copies groups translates the offset and copies the metadata.
    fileprivate var notes: (note: Int64?, settled: SettledOffsets?) {
        metadata.withUnsafeBytes { text in
            let (note, rest) = CommitNote.split(text)
            let own = note.flatMap { $0 <= offset ?? -1 ? $0 : nil }
            return (own, offset.flatMap { SettledOffsets(metadata: rest, committed: $0) })
        }
    }
}
