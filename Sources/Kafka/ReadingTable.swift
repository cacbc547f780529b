/// Where reading stands in each assigned partition: from what was handed over and what the broker told.
///
/// Topic → partition → reading, so that noting a record costs two index steps.
struct ReadingTable {
    struct Reading {
        var isAssigned = false
        /// What the group had committed at the assignment; nil: nothing, or not told yet.
        var committed: Int64?
        /// The offset after the last record handed over, or the end that was found without one; nil before the first
        /// answer to a fetch in this assignment.
        var next: Int64?
    }

    private var topics: [[Reading]]

    init(topicCount: Int) { topics = Array(repeating: [], count: topicCount) }

    /// Nil for what is not assigned.
    subscript(partition: TopicPartition) -> Reading? {
        guard topics.indices.contains(partition.topic) else { return nil }
        let number = Int(partition.partition)
        guard topics[partition.topic].indices.contains(number) else { return nil }
        let reading = topics[partition.topic][number]
        return reading.isAssigned ? reading : nil
    }

    mutating func assign(_ partition: TopicPartition) {
        // The numbers come from the broker: bound the table they index.
        guard topics.indices.contains(partition.topic), (0..<1_000_000).contains(partition.partition) else { return }
        let missing = Int(partition.partition) + 1 - topics[partition.topic].count
        if missing > 0 { topics[partition.topic].append(contentsOf: repeatElement(Reading(), count: missing)) }
        topics[partition.topic][Int(partition.partition)] = Reading(isAssigned: true)
    }

    mutating func revoke(_ partition: TopicPartition) {
        if self[partition] != nil { topics[partition.topic][Int(partition.partition)] = Reading() }
    }

    /// Reading came to `next`; a rewind does not take it back.
    mutating func move(_ partition: TopicPartition, to next: Int64) {
        guard let reading = self[partition], next >= 0, next > reading.next ?? -1 else { return }
        topics[partition.topic][Int(partition.partition)].next = next
    }

    /// What the group had committed of an assigned partition; nil: nothing.
    mutating func noteCommitted(_ partition: TopicPartition, _ offset: Int64?) {
        if self[partition] != nil { topics[partition.topic][Int(partition.partition)].committed = offset }
    }
}
