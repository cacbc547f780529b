// SPDX-License-Identifier: Apache-2.0
/// Commits settled offsets. librdkafka's own committer is off: in 2.0 it has no metadata, and its commit at an
/// unassignment would replace ours without metadata.
extension KafkaConsumer {
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
        let offsets = changed.map {
            GroupOffset(partition: $0.partition, offset: $0.offset, metadata: metadata($0))
        }
        if let error = client.commit(offsets) { return record(error, partition: nil) }
        commits.noteSent(changed, nowMs: client.steadyMs)
        for progress in changed { sentNotes[progress.partition] = commitNotes[progress.partition] }
    }

    private func metadata(_ progress: PartitionOffset) -> [UInt8] {
        let place = min(commits.maxMetadata, SettledOffsets.maxCharacters)
        guard let note = commitNotes[progress.partition], place > CommitNote.maxCharacters else {
            return progress.settled?.metadata(maxCharacters: place) ?? []
        }
        return CommitNote.metadata(
            note, progress.settled?.metadata(maxCharacters: place - CommitNote.maxCharacters) ?? [])
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
}
