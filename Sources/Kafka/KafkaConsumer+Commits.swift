import CRdkafka
import Glibc

/// Commits settled offsets. librdkafka's own committer is off: in 2.0 it has no metadata, and its commit at an
/// unassignment would replace ours without metadata.
extension KafkaConsumer {
    /// Commits the changes since the last commit. Called by the owner's timer, once a second.
    ///
    /// Does nothing while the last commit has no answer, or without a change. The answer comes as `committed`. Also
    /// does nothing while an assignment is pending: the library starts no partition while a commit is open, and `begin`
    /// needs it to start at once.
    public func commitChanges() {
        if pendingAssignment == nil, commits.isIdle(nowMs: monotonicMs()) { commitNow() }
    }

    /// The same without these conditions, before an end.
    public func commitNow() {
        if !isAssignmentLost { commit(assignment) }
    }

    /// A commit has no answer yet.
    public var isCommitting: Bool { !commits.isIdle(nowMs: monotonicMs()) }

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
        guard let list = rd_kafka_topic_partition_list_new(Int32(clamping: changed.count)) else { return }
        defer { rd_kafka_topic_partition_list_destroy(list) }
        for progress in changed { add(progress, to: list) }
        let code = rd_kafka_commit(raw, list, 1)
        if code == RD_KAFKA_RESP_ERR_NO_ERROR {
            commits.noteSent(changed, nowMs: monotonicMs())
            for progress in changed { sentNotes[progress.partition] = commitNotes[progress.partition] }
        } else {
            record(KafkaError(code), partition: nil)
        }
    }

    private func add(_ progress: PartitionOffset, to list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) {
        guard let offset = progress.offset, topics.indices.contains(progress.partition.topic) else { return }
        let item = rd_kafka_topic_partition_list_add(
            list, topics[progress.partition.topic], progress.partition.partition)
        item?.pointee.offset = offset
        let text = metadata(progress)
        guard !text.isEmpty, let copy = malloc(text.count) else { return }
        // The list frees it.
        copy.copyMemory(from: text, byteCount: text.count)
        item?.pointee.metadata = copy
        item?.pointee.metadata_size = text.count
    }

    private func metadata(_ progress: PartitionOffset) -> [UInt8] {
        let place = min(commits.maxMetadata, SettledOffsets.maxCharacters)
        guard let note = commitNotes[progress.partition], place > CommitNote.maxCharacters else {
            return progress.settled?.metadata(maxCharacters: place) ?? []
        }
        return CommitNote.metadata(
            note, progress.settled?.metadata(maxCharacters: place - CommitNote.maxCharacters) ?? [])
    }

    fileprivate func commitEnded(
        _ code: rd_kafka_resp_err_t, _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?
    ) {
        commits.noteEnded()
        var error = code == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : KafkaError(code)
        var isMetadataTooLarge = code == RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE
        var offsets: [PartitionOffset] = []
        forEach(in: list) { item, partition in
            if item.err != RD_KAFKA_RESP_ERR_NO_ERROR, error == nil { error = KafkaError(item.err) }
            if item.err == RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE { isMetadataTooLarge = true }
            if code != RD_KAFKA_RESP_ERR_NO_ERROR || item.err != RD_KAFKA_RESP_ERR_NO_ERROR {
                commits.noteFailed(partition)
                sentNotes[partition] = nil
            } else if item.offset >= 0, item.offset <= position(partition) ?? .max {
                // One above the position was sent before the partition's log began again.
                lags.noteCommitted(partition, item.offset)
            }
            offsets.append(PartitionOffset(partition: partition, offset: item.offset >= 0 ? item.offset : nil))
        }
        if isMetadataTooLarge { commits.lowerMetadataBound() }
        if let error { errorCounts[error.code, default: 0] &+= 1 }
        report(.committed(offsets, error))
    }
}

let commitCallback:
    @convention(c) (
        OpaquePointer?, rd_kafka_resp_err_t, UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?,
        UnsafeMutableRawPointer?
    ) -> Void = { _, code, list, opaque in
        CallbackContext.from(opaque)?.consumer?.commitEnded(code, list)
    }
