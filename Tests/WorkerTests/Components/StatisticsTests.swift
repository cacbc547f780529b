// SPDX-License-Identifier: Apache-2.0
import APNs
import Kafka
import PushCore
import Redis
import Testing

@testable import Worker

/// The statistics alone: partitions and outcomes in; questions, and flushes with positions out.
struct StatisticsTests {
    private static let partition = TopicPartition(topic: 0, partition: 0)
    private static let place = CountedPlace(.events, 0)

    private final class Counting: Answered {
        let shard: ShardContext
        init(_ shard: ShardContext) { self.shard = shard }

        func didReply(_ tag: Worker.Tag, _ reply: borrowing RedisReply) {
            if tag.question == .beginCounting { return shard.statistics.didBegin(reply) }
            _ = shard.statistics.didCount(reply, nowNanos: shard.nowNanos)
        }

        func didFail(_ tag: Worker.Tag, _ fault: RedisFault, isAbsent: Bool) { shard.statistics.didFail(fault) }
    }

    /// A shard that got the partition, and this position from Redis.
    private static func with(at position: String, _ body: (ScriptedShard, Statistics) throws -> Void) throws {
        try ScriptedShard.with { world in
            let (statistics, counting) = (world.shard.statistics, Counting(world.shard))
            world.component = counting
            #expect(statistics.begin([(place, partition, "im.events")]))
            try look(world)
            world.answer(.strings(position))
            try body(world, statistics)
        }
    }

    private static func look(_ world: ScriptedShard, settledBelow offset: Int64 = 0, newestMs: Int64 = 0) throws {
        try world.turn {
            let shard = world.shard
            shard.statistics.writeOrAsk(nowMs: shard.nowMs, nowNanos: shard.nowNanos, writes: true) { _, partition in
                (PartitionOffset(partition: partition, offset: offset), newestMs)
            }
        }
    }

    /// The outcome of one record counts, and is flushed.
    ///
    /// - Returns: the position in the flush.
    private static func flush(_ world: ScriptedShard, settledBelow offset: Int64, newestMs: Int64) throws -> String? {
        var counted = RecordCounts(
            subject: world.shard.statistics.subject(of: try world.message().app, name: "", task: nil))
        counted.tally.add(CountedOutcome(hour: 1, .accepted, .alert, .direct, reason: 0, isSent: true))
        world.shard.statistics.settled(counted, at: place)
        try look(world, settledBelow: offset, newestMs: newestMs)
        let words = world.redis.open.first ?? []
        world.answer(.empty)
        return words.firstIndex(of: "im.events:0").map { words[$0 + 1] }
    }

    /// Otherwise the next owner would count by their marks what this one read again and has not settled.
    @Test func aFlushKeepsThePositionOfTheEarlierOwner() throws {
        try Self.with(at: "20 900 carillon1:20:Ag") { world, statistics in
            #expect(statistics.isCounted(Self.place, offset: 19, timeMs: 800))
            #expect(!statistics.isCounted(Self.place, offset: 20, timeMs: 850))
            #expect(statistics.isCounted(Self.place, offset: 21, timeMs: 850))
            try #expect(Self.flush(world, settledBelow: 12, newestMs: 850) == "20 900 carillon1:20:Ag")
            #expect(statistics.isCounted(Self.place, offset: 19, timeMs: 800), "all of them are settled later")
            try #expect(Self.flush(world, settledBelow: 30, newestMs: 990) == "30 990 ")
            #expect(!statistics.isCounted(Self.place, offset: 19, timeMs: 800), "they are settled")
        }
    }

    /// Its topic was deleted and made again.
    @Test func aRecordThatIsNewerThanThePositionOfItsOffsetEndsThatPosition() throws {
        try Self.with(at: "20 900 ") { world, statistics in
            #expect(!statistics.isCounted(Self.place, offset: 3, timeMs: 901))
            #expect(!statistics.isCounted(Self.place, offset: 4, timeMs: 800))
            try #expect(Self.flush(world, settledBelow: 5, newestMs: 901) == "5 901 ")
        }
    }

    @Test(arguments: [
        ("5 10 ", "7 9 ", "7 10 "), ("5 10 carillon1:5:Eg", "7 11 ", "7 11 carillon1:7:BA"), ("5 0 ", "7 9 ", "7 0 "),
        ("7 10 carillon1:7:Ag", "7 10 carillon1:7:BA", "7 10 carillon1:7:Bg"), ("9 1 ", "5 1 carillon1:5:Ag", "9 1 "),
    ])
    func aUnionContainsWhatOneOfTwoPositionsContains(_ row: (one: String, other: String, both: String)) throws {
        let (one, other) = (try #require(CountedPosition(row.one)), try #require(CountedPosition(row.other)))
        #expect(one.union(other).text == row.both && other.union(one).text == row.both)
        for offset in 0..<20 as Range<Int64> {
            #expect(one.union(other).contains(offset) == (one.contains(offset) || other.contains(offset)))
        }
    }
}
