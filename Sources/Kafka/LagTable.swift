/// How far the group is behind in each assigned partition: end minus committed position, in records and since when.
///
/// Pure. What the partition's end is comes from questions to the brokers, not from fetches, so it goes on while the
/// partition is paused.
struct LagTable {
    struct Standing {
        /// The assignment that it belongs to.
        var round: UInt
        /// The group goes on from here; nil: it has committed nothing, or that is not told yet.
        var committed: Int64?
        var isCommittedTold = false
        /// The oldest kept offset, and the one that the next record gets; nil before the first answer.
        var range: Range<Int64>?
        /// The brokers answered a question for its ends, if only with an error.
        var isAnswered = false
        var times = OffsetTimes()
        /// Its next record's time is to be noted.
        var wantsTime = true
    }

    private var standings: [TopicPartition: Standing] = [:]
    /// Partitions whose next record's time is to be noted; asked at each record.
    private(set) var wantedTimes = 0

    mutating func assign(_ partition: TopicPartition, round: UInt) {
        revoke(partition)
        standings[partition] = Standing(round: round)
        wantedTimes += 1
    }

    mutating func revoke(_ partition: TopicPartition) {
        if standings.removeValue(forKey: partition)?.wantsTime == true { wantedTimes -= 1 }
    }

    /// What the group had committed at the assignment; nil: nothing.
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

    /// Brokers answered a question of that moment (Unix ms) with the partition's first offset and its end; nil: an error.
    ///
    /// - Parameter round: in which it was asked. A partition that is kept through a later assignment has an earlier one.
    mutating func noteRange(_ partition: TopicPartition, _ range: Range<Int64>?, round: UInt, askedMs: Int64) {
        guard let assigned = standings[partition]?.round, assigned <= round else { return }
        standings[partition]?.isAnswered = true
        guard let range else { return }
        standings[partition]?.range = range
        standings[partition]?.times.note(offset: range.upperBound, ms: askedMs)
    }

    /// The next record of each partition tells its time.
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

    /// Of all assigned partitions of a topic; nil while the brokers have not told what it takes.
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

/// How far a group is behind.
public struct GroupLag: Equatable, Sendable {
    /// Records between the committed position and the end.
    public var records: Int64
    /// When the oldest of them was written, Unix ms, to the accuracy of the looks; nil: there is none.
    public var oldestMs: Int64?

    public init(records: Int64, oldestMs: Int64?) {
        self.records = records
        self.oldestMs = oldestMs
    }

    /// Age of the oldest record that is not committed; 0: there is none.
    public func seconds(nowMs: Int64) -> Double {
        oldestMs.map { Double(max(0, nowMs &- $0)) / 1000 } ?? 0
    }
}
