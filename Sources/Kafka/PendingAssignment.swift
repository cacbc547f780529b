/// What the group gave this member while it is not told yet where each partition begins.
struct PendingAssignment {
    var partitions: [TopicPartition]
    /// Until when the broker is asked, on the monotonic clock; after that the library asks by itself.
    let deadlineMs: Int64
}
