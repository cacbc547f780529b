// SPDX-License-Identifier: Apache-2.0
/// The group's lag in each assigned partition: end minus committed position, in records and since when.
///
/// Pure. A partition's end comes from queries to the brokers, not from fetches, so it is updated while the partition is
/// paused.
struct LagTable {
    struct Standing {
        /// Its assignment.
        var round: UInt
        /// The group's next offset; nil if it has committed nothing, or if that is not known yet.
        var committed: Int64?
        var isCommittedTold = false
        /// The oldest kept offset, and that of the next record; nil before the first answer.
        var range: Range<Int64>?
        /// The brokers answered a query for its ends, possibly with an error.
        var isAnswered = false
        var times = OffsetTimes()
        /// Record the time of its next record.
        var wantsTime = true
    }

    private var standings: [TopicPartition: Standing] = [:]
    /// Number of partitions with `wantsTime`; checked at each record.
    private(set) var wantedTimes = 0

    mutating func assign(_ partition: TopicPartition, round: UInt) {
        revoke(partition)
        standings[partition] = Standing(round: round)
        wantedTimes += 1
    }

    mutating func revoke(_ partition: TopicPartition) {
        if standings.removeValue(forKey: partition)?.wantsTime == true { wantedTimes -= 1 }
    }

    /// The group's committed offset at the assignment; nil for none.
    mutating func noteCommittedBefore(_ partition: TopicPartition, _ offset: Int64?) {
        standings[partition]?.isCommittedTold = true
        if let offset { noteCommitted(partition, offset) }
    }

    /// A commit succeeded.
    mutating func noteCommitted(_ partition: TopicPartition, _ offset: Int64) {
        guard let standing = standings[partition], offset >= standing.committed ?? 0 else { return }
        standings[partition]?.committed = offset
        standings[partition]?.isCommittedTold = true
        standings[partition]?.times.forget(below: offset)
    }

    /// Brokers answered a query of that moment (Unix ms) with the partition's first offset and end; nil for an error.
    ///
    /// - Parameter round: the assignment of the query. A partition that is kept through a later assignment has an
    ///   earlier one.
    mutating func noteRange(_ partition: TopicPartition, _ range: Range<Int64>?, round: UInt, askedMs: Int64) {
        guard let assigned = standings[partition]?.round, assigned <= round else { return }
        standings[partition]?.isAnswered = true
        guard let range else { return }
        standings[partition]?.range = range
        standings[partition]?.times.note(offset: range.upperBound, ms: askedMs)
    }

    /// The end from the last answer.
    func end(of partition: TopicPartition) -> Int64? { standings[partition]?.range?.upperBound }

    /// Requests the time of each partition's next record.
    mutating func wantTimes() {
        for partition in standings.keys { standings[partition]?.wantsTime = true }
        wantedTimes = standings.count
    }

    mutating func noteRecord(_ partition: TopicPartition, offset: Int64, ms: Int64?) {
        guard standings[partition]?.wantsTime == true else { return }
        standings[partition]?.wantsTime = false
        wantedTimes -= 1
        if let ms { standings[partition]?.times.note(offset: offset, ms: ms) }
    }

    /// For all assigned partitions of a topic; nil while the brokers have not reported enough.
    func lag(ofTopic topic: Int) -> GroupLag? {
        var lag = GroupLag(records: 0, oldestMs: nil)
        for (partition, standing) in standings where partition.topic == topic {
            guard standing.isCommittedTold, standing.isAnswered else { return nil }
            // An error of the partition itself: it has no leader, so nobody reads it.
            guard let range = standing.range else { continue }
            let next = max(standing.committed ?? range.lowerBound, range.lowerBound)
            guard next < range.upperBound else { continue }
            lag.records &+= range.upperBound - next
            if let ms = standing.times.ms(at: next) { lag.oldestMs = min(lag.oldestMs ?? ms, ms) }
        }
        return lag
    }
}

/// A group's lag.
public struct GroupLag: Equatable, Sendable {
    /// Records between the committed position and the end.
    public var records: Int64
    /// Time of the oldest of them, Unix ms, with the accuracy of the queries; nil if there is none.
    public var oldestMs: Int64?

    public init(records: Int64, oldestMs: Int64?) {
        self.records = records
        self.oldestMs = oldestMs
    }

    /// Age of the oldest uncommitted record; 0 if there is none.
    public func seconds(nowMs: Int64) -> Double {
        oldestMs.map { Double(max(0, nowMs &- $0)) / 1000 } ?? 0
    }
}
