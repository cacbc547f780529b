// SPDX-License-Identifier: Apache-2.0
/// Each partition's committed offset and metadata as known to this member, and whether a commit is open. So a commit
/// carries only changes, and commits do not accumulate while the broker is away.
struct CommitTable {
    /// As the broker reported it or as sent last; absent if unknown.
    private var known: [TopicPartition: PartitionOffset] = [:]
    /// Commits without an answer.
    private(set) var openCount = 0
    private var lastSentMs: Int64 = 0
    /// Falls below its start value on a broker with a smaller limit.
    private(set) var maxMetadata = SettledOffsets.maxCharacters

    /// An answer that has not come within this time is not waited for any more.
    static let patienceMs: Int64 = 15_000

    func isIdle(nowMs: Int64) -> Bool { openCount == 0 || nowMs &- lastSentMs >= Self.patienceMs }

    func isNew(_ progress: PartitionOffset) -> Bool { known[progress.partition] != progress }

    mutating func noteCommitted(_ offset: PartitionOffset) { known[offset.partition] = offset }

    mutating func noteSent(_ offsets: [PartitionOffset], nowMs: Int64) {
        for offset in offsets { known[offset.partition] = offset }
        openCount = isIdle(nowMs: nowMs) ? 1 : openCount + 1
        lastSentMs = nowMs
    }

    mutating func noteEnded() { openCount = max(0, openCount - 1) }

    /// It is sent again with the next commit.
    mutating func noteFailed(_ partition: TopicPartition) { known[partition] = nil }

    /// The broker's `offset.metadata.max.bytes` is smaller still.
    mutating func lowerMetadataBound() { maxMetadata /= 2 }

    mutating func forget(_ partition: TopicPartition) { known[partition] = nil }
}
