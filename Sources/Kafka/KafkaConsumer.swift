// SPDX-License-Identifier: Apache-2.0
/// A group consumer owned by one thread. It never blocks, and calls its delegate only inside `poll`.
///
/// Watch `wakeFD` for readability and then call `poll(max:)` on one thread. Not Sendable on purpose. The owner must call
/// `poll` at least once a minute, because the group evicts members that are silent for `max.poll.interval.ms`. Release
/// it after the `closed` event; an earlier release ends the membership only by session timeout.
public final class KafkaConsumer {
    /// The subscribed topics. `TopicPartition.topic` is an index into it.
    public let topics: [String]
    public weak var delegate: (any KafkaConsumerDelegate)?
    /// The current assignment.
    public internal(set) var assignment: Set<TopicPartition> = []
    /// Paused partitions; a subset of `assignment`.
    public internal(set) var paused: Set<TopicPartition> = []
    /// Waits for its committed offsets; `begin` adds it to `assignment`. Nil if none waits.
    var pendingAssignment: PendingAssignment?
    /// How long committed offsets are asked for; the last query may take its own time longer. Until then the other
    /// partitions of a cooperative group stop, and the group cannot rebalance.
    var assignmentPatienceMs: Int64 = 10_000
    var commits = CommitTable()
    /// By partition, an offset of the owner's that goes along with its commits; not above the committed one.
    public var commitNotes: [TopicPartition: Int64] = [:]
    /// By partition, the number that the last commit before its assignment carried.
    public internal(set) var committedNotes: [TopicPartition: Int64] = [:]
    /// By partition, the number of its last commit, as far as this member knows.
    private var sentNotes: [TopicPartition: Int64] = [:]
    /// Set while a deferred revocation waits for `completeRevocation()`.
    public internal(set) var pendingRevocation: [TopicPartition] = []
    /// Errors so far by librdkafka's code, for counters; bounded by the number of codes.
    public internal(set) var errorCounts: [Int32: UInt64] = [:]
    /// Set once `closed` was reported.
    public private(set) var isClosed = false

    let client: any GroupClient
    var readings: ReadingTable
    var lags = LagTable()
    /// Time of the last query for the ends, monotonic; nil requests one now.
    private var endsAskedMs: Int64?
    /// Interval of these queries.
    var endsEveryMs: Int64 = 5_000
    /// The brokers' reachability from the last query for the ends.
    public internal(set) var reach = KafkaReach.unknown
    /// The group has given an assignment, possibly empty, and has not taken all of it back.
    var isAssigned = false
    /// Whether the group also reports an empty assignment. Not with the consumer protocol (KIP-848), which does not
    /// report an assignment that stays empty.
    public var isToldOfEmptyShares: Bool { client.isToldOfEmptyShares }
    /// Number of assignments so far.
    private var assignmentRound: UInt = 0
    private(set) var isClosing = false
    private var hasReportedFatal = false

    /// Joins the group and subscribes. No broker needs to be reachable yet.
    ///
    /// - Parameter reportsEnds: whether each partition that was read to its end is reported, which `knownEnds` needs. A
    ///   busy topic has half as many of these reports as records.
    public convenience init(
        _ configuration: KafkaConfiguration, topics: [String], reportsEnds: Bool = true
    ) throws(KafkaFault) {
        self.init(try NativeGroupClient(configuration, topics: topics, reportsEnds: reportsEnds))
    }

    /// Over a client that has joined its group.
    package init(_ client: any GroupClient) {
        self.client = client
        topics = client.topics
        readings = ReadingTable(topicCount: client.topics.count)
    }

    /// Readable whenever `poll` has work. It belongs to the consumer: watch it, never read or close it, and stop
    /// watching before the consumer is released.
    public var wakeFD: Int32 { client.wakeFD }

    /// Runs callbacks and delivers at most `max` records. Returns their number.
    ///
    /// If more is available, `wakeFD` becomes readable again, so a loop stays fair to its other work.
    @discardableResult
    public func poll(max: Int) -> Int {
        if isClosed { return 0 }
        let served = client.poll(max: max, for: self)
        if isClosing, client.isClosed {
            isClosed = true
            report(.closed)
        }
        return served
    }

    /// Starts leaving the group without blocking. Continue to poll until `closed` arrives.
    ///
    /// The usual revocation comes first, so settled offsets can still be committed; a pending revocation is completed.
    /// Set a deadline for closing (it has been seen to hang, #4187) and release the consumer when it passes.
    public func beginClose() {
        if isClosing { return }
        isClosing = true
        completeRevocation()
        completeAssignment()
        if let error = client.beginClose() { record(error, partition: nil) }
    }

    /// Closes and blocks, for commands and tests. Returns false if `timeoutMs` passed first.
    public func close(timeoutMs: Int) -> Bool {
        beginClose()
        let deadline = client.steadyMs + Int64(timeoutMs)
        while !isClosed, client.steadyMs < deadline {
            poll(max: 1000)
            // The end of closing is a state, not always a wake-up.
            if !isClosed { client.wait(milliseconds: 20) }
        }
        return isClosed
    }

    /// Blocks until there is something to poll or the time has passed; for commands and tests, which have no loop.
    public func wait(timeoutMs: Int) {
        client.wait(milliseconds: Int32(clamping: timeoutMs))
    }

    func report(_ event: KafkaConsumerEvent) { delegate?.kafka(self, didMeet: event) }

    // MARK: - Calls of the client within `poll`

    /// - Parameter receiver: the delegate, loaded once for several records, because a weak reference costs atomic operations
    ///   at each use.
    package func take(_ record: borrowing KafkaRecord, for receiver: (any KafkaConsumerDelegate)?) {
        // Left over from before the revocation. The next owner reads it again, because it was not committed.
        if !pendingRevocation.isEmpty, pendingRevocation.contains(record.partition) { return }
        move(record.partition, at: record.offset, to: record.offset &+ 1)
        if lags.wantedTimes > 0 { lags.noteRecord(record.partition, offset: record.offset, ms: record.timestampMs) }
        receiver?.kafka(self, didReceive: record)
    }

    package func tookEnd(of partition: TopicPartition, at offset: Int64) {
        let due = position(partition) ?? offset
        move(partition, at: offset, to: offset)
        report(.passed(partition, from: due, to: offset))
    }

    package func record(_ error: KafkaError, partition: TopicPartition?) {
        errorCounts[error.code, default: 0] &+= 1
        if let fatal = client.fatalError {
            if hasReportedFatal { return }
            hasReportedFatal = true
            report(.fatal(fatal))
        } else {
            report(.failed(error, partition))
        }
    }

    package func tookStatistics(_ json: UnsafeRawBufferPointer) {
        delegate?.kafka(self, didReceiveStatistics: json)
    }

    /// Notes how far a partition is read. An offset below the one that is due begins a new epoch of the partition, and
    /// forgets the offsets of the earlier one.
    @inline(__always)
    private func move(_ partition: TopicPartition, at offset: Int64, to next: Int64) {
        guard let due = readings.move(partition, at: offset, to: next) else { return }
        lags.assign(partition, round: assignmentRound)
        lags.noteCommittedBefore(partition, nil)
        commits.forget(partition)
        commitNotes[partition] = nil
        committedNotes[partition] = nil
        report(.restarted(partition, due: due, at: offset))
    }

    // MARK: Commits
    // Commits settled offsets. librdkafka's own committer is off: in 2.0 it has no metadata, and its commit at an
    // unassignment would replace ours without metadata.

    /// Commits the changes since the last commit. Called by the owner's timer, once a second.
    ///
    /// Does nothing while the last commit has no answer, or without a change. The answer comes as `committed`. Also
    /// does nothing while an assignment is pending: the library starts no partition while a commit is open, and `begin`
    /// needs it to start at once.
    public func commitChanges() {
        if pendingAssignment == nil, commits.isIdle(nowMs: client.steadyMs) { commitNow() }
    }

    /// The same without these conditions, before an end.
    public func commitNow() {
        if !isAssignmentLost { commit(assignment.sorted()) }
    }

    /// The owner has progress that no commit carries, for example because the last one failed.
    public var hasUncommitted: Bool {
        guard !isAssignmentLost, let delegate else { return false }
        return assignment.contains { delegate.kafka(self, progressOf: $0).map(commits.isNew) ?? false }
    }

    /// A commit has no answer yet.
    public var isCommitting: Bool { !commits.isIdle(nowMs: client.steadyMs) }

    /// Sends only changes. The library sends commits and later requests in the order of the calls, and ends an
    /// unassignment only after their answers.
    func commit(_ partitions: some Sequence<TopicPartition>) {
        guard let delegate else { return }
        var changed: [PartitionOffset] = []
        for partition in partitions {
            guard let progress = delegate.kafka(self, progressOf: partition) else { continue }
            let note = commitNotes[partition]
            let isNoteNew = note != nil && note != sentNotes[partition] && progress.offset != nil
            guard commits.isNew(progress) || isNoteNew else { continue }
            changed.append(progress)
        }
        if changed.isEmpty { return }
        let cluster = cluster
        let offsets = changed.map {
            GroupOffset(partition: $0.partition, offset: $0.offset, metadata: metadata($0, cluster))
        }
        if let error = client.commit(offsets) { return record(error, partition: nil) }
        commits.noteSent(changed, nowMs: client.steadyMs)
        for progress in changed { sentNotes[progress.partition] = commitNotes[progress.partition] }
    }

    private func metadata(_ progress: PartitionOffset, _ cluster: UInt32?) -> [UInt8] {
        let place = min(commits.maxMetadata, SettledOffsets.maxCharacters)
        guard let note = commitNotes[progress.partition], place > CommitNote.maxCharacters else {
            return progress.settled?.metadata(maxCharacters: place, cluster: cluster) ?? []
        }
        return CommitNote.metadata(
            note,
            progress.settled?.metadata(maxCharacters: place - CommitNote.maxCharacters, cluster: cluster) ?? [])
    }

    /// The answer of the last commit or, with an error, the lack of one.
    package func commitEnded(_ items: [GroupOffset], _ failure: KafkaError?) {
        commits.noteEnded()
        let error = failure ?? items.lazy.compactMap(\.error).first
        for item in items {
            if failure != nil || item.error != nil {
                commits.noteFailed(item.partition)
                sentNotes[item.partition] = nil
            } else if let offset = item.offset, offset <= position(item.partition) ?? .max {
                // One above the position was sent before the partition's log began again.
                lags.noteCommitted(item.partition, offset)
            }
        }
        if failure?.isMetadataTooLarge ?? false || items.contains(where: { $0.error?.isMetadataTooLarge ?? false }) {
            commits.lowerMetadataBound()
        }
        if let error { errorCounts[error.code, default: 0] &+= 1 }
        report(.committed(items.map { PartitionOffset(partition: $0.partition, offset: $0.offset) }, error))
    }

    // MARK: Lag
    // The group's lag in the assigned partitions.

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

    // MARK: Offsets

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

    private func goOnFetching(_ partitions: Set<TopicPartition>) {
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

    /// The cluster as commits name it. A question to the client: ask once for all partitions.
    private var cluster: UInt32? { clusterID.map { SettledOffsets.cluster($0) } }

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

    // MARK: Rebalance

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
    private func completeAssignment() { begin(nil) }

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
        let cluster = cluster
        for item in items where item.error == nil {
            let (note, settled) = item.notes(cluster)
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
    ///
    /// - Parameter cluster: `SettledOffsets.cluster`.
    fileprivate func notes(_ cluster: UInt32?) -> (note: Int64?, settled: SettledOffsets?) {
        metadata.withUnsafeBytes { text in
            let (note, rest) = CommitNote.split(text)
            let own = note.flatMap { $0 <= offset ?? -1 ? $0 : nil }
            return (own, offset.flatMap { SettledOffsets(metadata: rest, committed: $0, cluster: cluster) })
        }
    }
}
