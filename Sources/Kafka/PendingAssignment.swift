// SPDX-License-Identifier: Apache-2.0
/// An assignment while the start offsets of its partitions are unknown.
struct PendingAssignment {
    var partitions: [TopicPartition]
    /// Deadline for asking the broker, monotonic. After it the library asks itself.
    let deadlineMs: Int64
}
