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
    }

    private var topics: [[Reading]]

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
            if next > reading.next ?? -1 { topics[partition.topic][Int(partition.partition)].next = next }
            return nil
        }
        topics[partition.topic][Int(partition.partition)] = Reading(isAssigned: true, next: next)
        return due
    }

    /// The group's committed offset of an assigned partition; nil for none.
    mutating func noteCommitted(_ partition: TopicPartition, _ offset: Int64?) {
        if self[partition] != nil { topics[partition.topic][Int(partition.partition)].committed = offset }
    }
}
