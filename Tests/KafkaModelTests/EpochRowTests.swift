// SPDX-License-Identifier: Apache-2.0
import Kafka
import KafkaModel
import Testing

/// Retention, gaps and new epochs of a partition, read by the real `KafkaConsumer`.
@Suite("Epochs of a partition over the model")
struct EpochRowTests {
    private static func world(_ count: Int = 6) -> ModelWorld {
        let world = ModelWorld()
        world.model.createTopic("events", partitions: 1)
        world.write("events", 0, (0..<count).map { "v\($0)" })
        return world
    }

    @Test func aTopicThatIsCreatedAgainIsReadFromItsBeginning() throws {
        let world = Self.world()
        let one = try world.member("one")
        #expect(world.run { world.model.committed("g", "events", 0)?.offset == 6 })
        world.model.recreate("events")
        world.write("events", 0, ["w0", "w1"])
        #expect(world.run { one.seen.count == 8 && world.model.committed("g", "events", 0)?.offset == 2 })
        #expect(one.restarts.map(\.due) == [6] && one.restarts.map(\.at) == [0])
        #expect(one.seen.suffix(2) == ["events/0@0=w0", "events/0@1=w1"])
    }

    @Test func aLogThatLostItsEndIsReadAgain() throws {
        let world = Self.world()
        let one = try world.member("one")
        #expect(world.run { world.model.committed("g", "events", 0)?.offset == 6 })
        world.model.cut("events", 0, to: 3)
        #expect(world.run { one.restarts.count == 1 })
        world.write("events", 0, ["w3"])
        #expect(world.run { one.seen.last == "events/0@3=w3" })
    }

    @Test func recordsThatRetentionTookAreSkipped() throws {
        let world = Self.world(10)
        let one = try world.member("one")
        one.settlesAll = false
        #expect(world.run { one.seen.count == 10 })
        one.settle([0, 1])
        #expect(world.run { world.model.committed("g", "events", 0)?.offset == 2 })
        world.crash("one")
        world.model.trim("events", 0, to: 7)
        let two = try world.member("two")
        #expect(world.run { two.seen.count == 3 })
        #expect(two.seen == ["events/0@7=v7", "events/0@8=v8", "events/0@9=v9"])
    }

    @Test func offsetsWithoutARecordAreNoEpoch() throws {
        let world = Self.world(2)
        world.model.skipOffsets("events", 0, count: 3)
        world.write("events", 0, ["v5"])
        let one = try world.member("one")
        #expect(world.run { world.model.committed("g", "events", 0)?.offset == 6 })
        #expect(one.seen == ["events/0@0=v0", "events/0@1=v1", "events/0@5=v5"])
        #expect(one.restarts.isEmpty)
    }

    @Test func `a marker behind the last record is committed, and leaves no lag`() throws {
        let world = Self.world(2)
        world.model.skipOffsets("events", 0, count: 1)
        let one = try world.member("one")
        #expect(world.run { world.model.committed("g", "events", 0)?.offset == 3 })
        world.model.skipOffsets("events", 0, count: 2)
        #expect(world.run { world.model.committed("g", "events", 0)?.offset == 5 })
        #expect(world.run { one.consumer.lag(ofTopic: 0)?.records == 0 })
        #expect(one.consumer.lostRecords == 0 && one.seen == ["events/0@0=v0", "events/0@1=v1"])
    }

    @Test func `records that retention took are lost, and markers are not`() throws {
        let world = Self.world(4)
        let one = try world.member("one")
        #expect(world.run { world.model.committed("g", "events", 0)?.offset == 4 })
        world.crash("one")
        world.write("events", 0, ["v4", "v5"])
        world.model.skipOffsets("events", 0, count: 1)
        world.write("events", 0, ["v7"])
        world.model.trim("events", 0, to: 5)
        let two = try world.member("two")
        #expect(world.run { two.seen.count == 2 && two.consumer.lostRecords > 0 })
        #expect(two.consumer.lostRecords == 1 && one.consumer.lostRecords == 0)
    }

    @Test func theStrictPolicyStopsAPartitionWithoutAnOffset() throws {
        let world = Self.world()
        let one = try world.member("one", reset: .error)
        #expect(world.run { one.failures.contains { $0.isOffsetLost } })
        #expect(one.seen == [])
    }

    @Test func aPausedPartitionRestsAndGoesOnWhereItWas() throws {
        let world = Self.world(3)
        let one = try world.member("one")
        #expect(world.run { one.seen.count == 3 })
        one.consumer.pause(one.consumer.assignment)
        world.write("events", 0, ["v3", "v4"])
        #expect(!world.run(10) { one.seen.count > 3 })
        one.consumer.resume(one.consumer.paused)
        #expect(world.run { one.seen.count == 5 })
        #expect(one.offsets.values.first == [0, 1, 2, 3, 4] && one.skipped == [])
    }

    @Test func theLagFollowsTheEndOfAPausedPartition() throws {
        let world = Self.world(3)
        let one = try world.member("one")
        #expect(world.run { one.consumer.lag(ofTopic: 0)?.records == 0 && one.seen.count == 3 })
        one.consumer.pause(one.consumer.assignment)
        world.write("events", 0, ["v3", "v4"])
        #expect(world.run { one.consumer.lag(ofTopic: 0)?.records == 2 })
    }
}
