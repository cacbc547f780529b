// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Data shared by the shards of a process, besides metrics and log.
package final class ProcessShared: Sendable {
    /// The devices with a push in flight; nil with one shard.
    package let occupancy: DeviceOccupancy?
    /// The dedup keys in progress; nil with one shard.
    let dedupKeys: SharedKeys?
    let share = PartitionShare()
    let unread = UnreadPartitions()
    let conversations = ConversationsInHand()
    let parkedOnTheWay = ParkedOnTheWay()
    let unstoredChanges = UnstoredChanges()
    let unstoredCounts = UnstoredCounts()
    /// Names the process among all workers.
    let mark: String
    /// The progress of user state.
    let stateProgress: StateProgress
    /// Whether shards measure the time of each stage.
    let timesStages: Bool

    let wallClock: WallClock

    /// - Parameters:
    ///   - occupancy: nil: of the usual size, by this machine's clock.
    ///   - dedupKeys: nil: of the usual size.
    package init(
        shardCount: Int, timesStages: Bool = false, wallClock: WallClock = WallClock(),
        seed: UInt64 = .random(in: 0 ... .max), occupancy: DeviceOccupancy? = nil,
        dedupKeys: SharedKeys? = nil
    ) {
        mark = String(seed, radix: 36)
        self.wallClock = wallClock
        self.timesStages = timesStages
        self.occupancy = shardCount > 1 ? occupancy ?? DeviceOccupancy() : nil
        self.dedupKeys = shardCount > 1 ? dedupKeys ?? SharedKeys() : nil
        stateProgress = StateProgress(shardCount: shardCount)
    }
}

/// The process's part of all partitions that workers read. With all partitions, no other worker pushes to anybody. The
/// owner of a parked record's partition pushes it, and a read mark may push only the badge.
///
/// After each assignment the broker is asked for the topics' number of partitions (`KafkaConsumer.countPartitions`),
/// and only then: librdkafka notices new partitions by itself and assigns again. Unknown until the first answer.
final class PartitionShare: Sendable {
    private let assigned = Atomic<Int>(0)
    private let partitions = Atomic<Int>(0)
    private let isDue = Atomic<Bool>(false)
    private let isAsking = Atomic<Bool>(false)

    /// All partitions are assigned to this process. False while their number is unknown.
    var isWhole: Bool {
        let partitions = partitions.load(ordering: .relaxed)
        return partitions > 0 && assigned.load(ordering: .relaxed) >= partitions
    }

    /// A shard got this number of partitions, or lost them if negative.
    func add(_ change: Int) {
        if change == 0 { return }
        assigned.add(change, ordering: .relaxed)
        isDue.store(true, ordering: .relaxed)
    }

    /// - Returns: true if the caller must now ask for the number of partitions and then call `learn`.
    func beginAsking() -> Bool {
        guard isDue.load(ordering: .relaxed), assigned.load(ordering: .relaxed) > 0 else { return false }
        guard !isAsking.exchange(true, ordering: .relaxed) else { return false }
        isDue.store(false, ordering: .relaxed)
        return true
    }

    /// - Parameter count: the number; nil if the broker did not answer and must be asked again.
    func learn(_ count: Int?) {
        if let count { partitions.store(count, ordering: .relaxed) } else { isDue.store(true, ordering: .relaxed) }
        isAsking.store(false, ordering: .relaxed)
    }
}
