import Synchronization

/// What the shards of a process share beside the metrics and the log.
final class ProcessShared: Sendable {
    /// Which devices have a push out; nil where there is one shard, which needs nobody to ask.
    let occupancy: DeviceOccupancy?
    let share = PartitionShare()
    let conversations = ConversationsInHand()
    /// Names the process among all workers.
    let mark = String(UInt64.random(in: 0 ... .max), radix: 36)
    /// How far user state is applied.
    let stateProgress: StateProgress
    /// Whether shards tell how long each stage takes.
    let timesStages: Bool

    let wallClock: WallClock

    init(shardCount: Int, timesStages: Bool = false, wallClock: WallClock = WallClock()) {
        self.wallClock = wallClock
        self.timesStages = timesStages
        occupancy = shardCount > 1 ? DeviceOccupancy() : nil
        stateProgress = StateProgress(shardCount: shardCount)
    }
}

/// How much of all topics that workers read this process has: where it has all partitions no other worker pushes anybody.
/// What is parked is pushed by who has its partition, and a read mark may push the number alone.
///
/// The topics' partition count is asked of the broker after each assignment (`KafkaConsumer.countPartitions`), and only
/// then: librdkafka notices new partitions by itself, and assigns anew. It is unknown until the first answer.
final class PartitionShare: Sendable {
    private let assigned = Atomic<Int>(0)
    private let partitions = Atomic<Int>(0)
    private let isDue = Atomic<Bool>(false)
    private let isAsking = Atomic<Bool>(false)

    /// All partitions are assigned to this process. False also while their number is not known.
    var isWhole: Bool {
        let partitions = partitions.load(ordering: .relaxed)
        return partitions > 0 && assigned.load(ordering: .relaxed) >= partitions
    }

    /// A shard got so many partitions more, or lost as many where negative.
    func add(_ change: Int) {
        if change == 0 { return }
        assigned.add(change, ordering: .relaxed)
        isDue.store(true, ordering: .relaxed)
    }

    /// True: the caller is to ask for the number of partitions now, and to tell `learn`.
    func beginAsking() -> Bool {
        guard isDue.load(ordering: .relaxed), assigned.load(ordering: .relaxed) > 0 else { return false }
        guard !isAsking.exchange(true, ordering: .relaxed) else { return false }
        isDue.store(false, ordering: .relaxed)
        return true
    }

    /// - Parameter count: of the topic; nil: the broker did not say, and is to be asked again.
    func learn(_ count: Int?) {
        if let count { partitions.store(count, ordering: .relaxed) } else { isDue.store(true, ordering: .relaxed) }
        isAsking.store(false, ordering: .relaxed)
    }
}
