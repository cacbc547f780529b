// SPDX-License-Identifier: Apache-2.0
/// The reading position in each assigned partition, from delivered records and the broker's answers.
///
/// Topic → partition → reading, so that a record costs two index steps.
struct ReadingTable {
    struct Reading {
        var isAssigned = false
        /// The group's committed offset at the assignment; nil for none, or if unknown.
        var committed: Int64?
        /// The offset after the last delivered record, or the end if none was found; nil before the first answer to a
        /// fetch in this assignment.
        var next: Int64?
        /// A record was delivered in this assignment, after the last time that the log began again.
        var hasRecord = false
        /// Offsets without a record, passed since the last question for the partition's ends, and those before it.
        var gap: OffsetGap?
        var askedGap: OffsetGap?
    }

    private var topics: [[Reading]]
    /// Number of offsets that were deleted before they were read.
    private(set) var lost: UInt64 = 0

    init(topicCount: Int) { topics = Array(repeating: [], count: topicCount) }

    /// - Returns: nil if not assigned.
    subscript(partition: TopicPartition) -> Reading? {
        guard topics.indices.contains(partition.topic) else { return nil }
        let number = Int(partition.partition)
        guard topics[partition.topic].indices.contains(number) else { return nil }
        let reading = topics[partition.topic][number]
        return reading.isAssigned ? reading : nil
    }

    mutating func assign(_ partition: TopicPartition) {
        // The numbers come from the broker, so the size of the table is bounded.
        guard topics.indices.contains(partition.topic), (0..<1_000_000).contains(partition.partition) else { return }
        let missing = Int(partition.partition) + 1 - topics[partition.topic].count
        if missing > 0 { topics[partition.topic].append(contentsOf: repeatElement(Reading(), count: missing)) }
        topics[partition.topic][Int(partition.partition)] = Reading(isAssigned: true)
    }

    mutating func revoke(_ partition: TopicPartition) {
        if self[partition] != nil { topics[partition.topic][Int(partition.partition)] = Reading() }
    }

    /// Notes that the broker gave `offset`, and that reading goes on at `next`.
    ///
    /// - Returns: the offset that was due, if `offset` lies below it: the partition's log began again (the topic was created
    ///   again, or a leader was elected that lacks its end). Nil otherwise.
    mutating func move(_ partition: TopicPartition, at offset: Int64, to next: Int64) -> Int64? {
        guard let reading = self[partition], offset >= 0 else { return nil }
        let due = reading.next ?? reading.committed ?? 0
        if offset >= due {
            if offset > due { pass(partition, from: reading.next ?? reading.committed, to: offset) }
            if next > reading.next ?? -1 { topics[partition.topic][Int(partition.partition)].next = next }
            if next > offset { topics[partition.topic][Int(partition.partition)].hasRecord = true }
            return nil
        }
        topics[partition.topic][Int(partition.partition)] = Reading(
            isAssigned: true, next: next, hasRecord: next > offset)
        return due
    }

    // MARK: Offsets without a record

    /// The offsets hold markers of transactions, or their records were aborted, compacted or deleted. The log's beginning
    /// decides later.
    @inline(never)
    private mutating func pass(_ partition: TopicPartition, from start: Int64?, to end: Int64) {
        // Nobody knows which records a group without offsets wanted.
        guard let start else { return }
        let gap = OffsetGap(start: start, end: end)
        let number = Int(partition.partition)
        topics[partition.topic][number].gap = topics[partition.topic][number].gap?.joined(gap) ?? gap
    }

    /// The brokers are asked for the ends of these partitions: their answer is newer than all that was passed so far.
    mutating func noteQuestion(_ partitions: some Sequence<TopicPartition>) {
        for partition in partitions {
            guard let gap = self[partition]?.gap else { continue }
            let number = Int(partition.partition)
            topics[partition.topic][number].askedGap = topics[partition.topic][number].askedGap?.joined(gap) ?? gap
            topics[partition.topic][number].gap = nil
        }
    }

    /// The answer: the log begins at this offset. What was passed below it was deleted before it was read.
    mutating func noteStart(_ partition: TopicPartition, _ offset: Int64) {
        guard let gap = self[partition]?.askedGap else { return }
        topics[partition.topic][Int(partition.partition)].askedGap = nil
        lost &+= UInt64(gap.count(below: offset))
    }

    /// The group's committed offset of an assigned partition; nil for none.
    mutating func noteCommitted(_ partition: TopicPartition, _ offset: Int64?) {
        if self[partition] != nil { topics[partition.topic][Int(partition.partition)].committed = offset }
    }
}

/// Offsets that were passed without a record: one range or several, as the number of offsets between two ends.
struct OffsetGap: Equatable {
    private let start: Int64
    private let end: Int64
    private let count: Int64

    init(start: Int64, end: Int64) {
        self.init(start: start, end: end, count: end - start)
    }

    private init(start: Int64, end: Int64, count: Int64) {
        self.start = start
        self.end = end
        self.count = count
    }

    func joined(_ later: OffsetGap) -> OffsetGap {
        OffsetGap(start: start, end: later.end, count: count &+ later.count)
    }

    /// Of these offsets, those below `offset`. Exact for one range.
    func count(below offset: Int64) -> Int64 {
        offset <= start ? 0 : min(count, min(offset, end) - start)
    }
}
