// SPDX-License-Identifier: Apache-2.0
/// The group's lag in the assigned partitions.
extension KafkaConsumer {
    /// Asks the brokers for the ends of all assigned partitions at intervals, without blocking, paused or not. Called
    /// by the owner's timer, once a second.
    public func watchLag() {
        takeEnds()
        lags.wantTimes()
        let now = client.steadyMs
        if isClosing || now &- (endsAskedMs ?? .min / 2) < endsEveryMs { return }
        if client.askEnds(assignment.sorted(), round: assignmentRound, nowMs: client.wallMs) {
            endsAskedMs = now
            readings.noteQuestion(assignment)
        }
    }

    /// Goes on past offsets that hold no record: the markers of transactions, aborted and compacted records. Otherwise a partition
    /// that is read to its end would lag for ever. Called by the owner's timer, once a second, not within `poll`.
    public func passEmptyOffsets() {
        // Before the first record of an assignment, the library may still have the position of an earlier one.
        let begun = assignment.filter { readings[$0]?.hasRecord ?? false }
        if begun.isEmpty { return }
        for (partition, offset) in client.positions(of: begun) {
            guard let next = readings[partition]?.next, offset > next, !pendingRevocation.contains(partition) else {
                continue
            }
            tookEnd(of: partition, at: offset)
        }
    }

    /// Number of records that were deleted before they were read: offsets that were passed below the beginning of their log. A
    /// group without committed offsets lacks none. Known some seconds later, by the answer to the next question for the ends.
    public var lostRecords: UInt64 { readings.lost }

    /// End minus committed position, over the assigned partitions of a topic (index into `topics`).
    ///
    /// - Returns: nil while unknown: before the first assignment, between two assignments, and until the brokers have
    ///   reported committed offsets and ends. The last known value is then the best one.
    public func lag(ofTopic topic: Int) -> GroupLag? {
        takeEnds()
        return isAssigned && pendingAssignment == nil ? lags.lag(ofTopic: topic) : nil
    }

    func takeEnds() {
        guard let answer = client.takeEnds() else { return }
        reach = answer.reach
        if let error = answer.error {
            errorCounts[error.code, default: 0] &+= 1
            report(.unanswered(error))
        }
        for one in answer.ranges {
            if let range = one.range { readings.noteStart(one.partition, range.lowerBound) }
            lags.noteRange(one.partition, one.range, round: answer.round, askedMs: answer.askedMs)
        }
    }
}
