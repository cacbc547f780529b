/// What each partition's committed offset and metadata are, as far as this member knows, and whether a commit is under
/// way: so that a commit carries only what changed, and commits do not pile up while the broker is away.
struct CommitTable {
    /// As the broker told it or as it was sent last; absent: not known.
    private var known: [TopicPartition: PartitionOffset] = [:]
    /// Commits without an outcome.
    private(set) var openCount = 0
    private var lastSentMs: Int64 = 0
    /// Lower than its start on a broker that takes less.
    private(set) var maxMetadata = SettledOffsets.maxCharacters

    /// An outcome that has not come by now is not waited for any more.
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

    /// The broker's `offset.metadata.max.bytes` is lower still.
    mutating func lowerMetadataBound() { maxMetadata /= 2 }

    mutating func forget(_ partition: TopicPartition) { known[partition] = nil }
}
