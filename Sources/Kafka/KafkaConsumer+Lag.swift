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
        if client.askEnds(assignment.sorted(), round: assignmentRound, nowMs: client.wallMs) { endsAskedMs = now }
    }

    /// End minus committed position, over the assigned partitions of a topic (index into `topics`).
    ///
    /// - Returns: nil while unknown: before the first assignment, between two assignments, and until the brokers have
    ///   reported committed offsets and ends. The last known value is then the best one. A topic with transactions has
    ///   markers at its end, which count as records.
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
            lags.noteRange(one.partition, one.range, round: answer.round, askedMs: answer.askedMs)
        }
    }
}
