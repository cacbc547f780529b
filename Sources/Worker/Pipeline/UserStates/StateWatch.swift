import EventLoop
import Kafka

/// Watches how far one shard's user state is applied, and tells `StateProgress`: the ends of its partitions are noted, and
/// once all before them is settled, everything that stood there at that time is applied.
final class StateWatch {
    /// How often it looks: an ack is missed so much later at most.
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

    /// The assignment changed: what was noted says nothing of the new partitions.
    func restart() { noted = nil }

    func look(nowNanos: UInt64) {
        if let noted {
            guard intake.hasSettled(noted.ends) else { return }
            progress.advance(shard: shardIndex, toNanos: noted.nanos)
            self.noted = nil
        }
        guard intake.isAssigned, let ends = intake.knownEnds() else { return }
        noted = (nowNanos, ends)
    }
}
