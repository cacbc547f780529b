// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Kafka
import Redis
import Telemetry

/// The times at which the statistics of a shard are written: the layer above `Statistics` and `Intakes`.
final class CountWriter {
    private let shard: ShardContext
    private let intakes: Intakes
    private let otherGroup: OtherGroup

    init(_ shard: ShardContext, _ intakes: Intakes, otherGroup: OtherGroup) {
        self.shard = shard
        self.intakes = intakes
        self.otherGroup = otherGroup
    }

    /// Writes the counts, or asks for the positions of new partitions.
    ///
    /// - Parameter writes: false: only asks.
    func writeOrAsk(writes: Bool = true) {
        // The partitions' counts are those of the other group.
        if otherGroup.seen != nil { return }
        shard.statistics.writeOrAsk(nowMs: shard.nowMs, nowNanos: shard.nowNanos, writes: writes) { place, partition in
            guard let intake = intakes.all.first(where: { $0.reads(place) }) else { return (nil, nil) }
            return (intake.progress(of: partition), intake.newestMs(partition))
        }
        readOnceCounted()
    }

    /// The records of new partitions are read when their positions are known, or when Redis has not said them in time.
    private func readOnceCounted() {
        let waits = shard.statistics.isBeginning(shard.nowNanos)
        for intake in intakes.all { intake.block(.statistics, waits) }
    }

    /// Some counts are not in Redis and should be before the end.
    var hasUncounted: Bool { waitsForCounts && shard.statistics.hasUnwritten }

    /// Counts of these partitions are not in Redis, and should be before the partitions go.
    func hasUncounted(_ intake: Intake, _ partitions: Set<TopicPartition>) -> Bool {
        waitsForCounts && partitions.contains { shard.statistics.hasUnwritten(intake.countedPlace($0)) }
    }

    /// While Redis does not answer, or takes no writes, nothing waits for the counts.
    private var waitsForCounts: Bool {
        !shard.statistics.isHeldUp(shard.nowNanos) && !shard.writes.refusesSome(nowNanos: shard.nowNanos)
    }

    /// Counts that a partition waits for, before it goes, are written at once.
    func writeForRevocations() {
        let waits = intakes.all.contains { intake in
            intake.revocation.map { hasUncounted(intake, $0.partitions) } ?? false
        }
        if waits { writeOrAsk() }
    }

    func didBeginCounting(_ reply: borrowing RedisReply) {
        shard.statistics.didBegin(reply)
        // More partitions may have been assigned since the question.
        writeOrAsk(writes: false)
        shard.requestTurn()
    }

    func didCount(_ reply: borrowing RedisReply) {
        guard shard.statistics.didCount(reply, nowNanos: shard.nowNanos) else { return writeOrAsk() }
        // User state is committed after its next beat.
        for intake in intakes.all {
            if intake !== intakes.userState { intake.consumer.commitChanges() }
            intake.mayEndRevocation()
        }
        writeOrAsk(writes: false)
    }

    func didFail(_ fault: RedisFault) {
        let wasOff = shard.statistics.isOff
        shard.statistics.didFail(fault)
        readOnceCounted()
        if shard.statistics.isOff, !wasOff {
            shard.log.error(
                "Redis does not run the scripts of the statistics: nothing is counted",
                ["error": .string(fault.publicText)])
        }
    }
}
