// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Kafka

/// Watches one shard's progress in user state for `StateProgress`: it notes the ends of its partitions, and once all
/// before them is settled, everything that was in the topic at that time is applied.
final class StateWatch {
    /// Interval of the checks: a missing ack is detected later by this time at most.
    static let lookNanos: UInt64 = 100_000_000

    private let intake: Intake
    private let progress: StateProgress
    private let shardIndex: Int
    private var noted: (nanos: UInt64, ends: [TopicPartition: Int64])?

    init(_ intake: Intake, _ progress: StateProgress, shardIndex: Int) {
        self.intake = intake
        self.progress = progress
        self.shardIndex = shardIndex
    }

    /// The assignment changed: the noted ends are invalid for the new partitions.
    func restart() { noted = nil }

    func noteProgress(nowNanos: UInt64) {
        if let noted {
            guard intake.hasSettled(noted.ends) else { return }
            progress.advance(shard: shardIndex, toNanos: noted.nanos)
            self.noted = nil
        }
        guard intake.isAssigned, let ends = intake.knownEnds() else { return }
        noted = (nowNanos, ends)
    }
}
