// SPDX-License-Identifier: Apache-2.0
import KafkaModel
import Testing

@testable import Kafka

/// Rebalances of the real `KafkaConsumer`, over the model.
@Suite("Rebalances over the model")
struct GroupRowTests {
    private static let strategies = ["range,roundrobin", "cooperative-sticky"]

    private static func world(seed: UInt64 = 1, partitions: Int = 4) -> ModelWorld {
        let world = ModelWorld(seed: seed)
        world.model.createTopic("events", partitions: partitions)
        return world
    }

    private static func fill(_ world: ModelWorld, each count: Int = 5) {
        for partition in 0..<world.model.partitionCount(of: "events") {
            world.write("events", partition, (0..<count).map { "v\($0)" })
        }
    }

    @Test(arguments: strategies, [1, 2, 3] as [UInt64])
    func aMemberReadsAndCommitsEverything(strategy: String, seed: UInt64) throws {
        let world = Self.world(seed: seed)
        Self.fill(world)
        let one = try world.member("one", options: ["partition.assignment.strategy": strategy])
        #expect(world.run { (0..<4).allSatisfy { world.model.committed("g", "events", $0)?.offset == 5 } })
        #expect(one.seen.byPartition == (0..<4).flatMap { p in (0..<5).map { "events/\(p)@\($0)=v\($0)" } })
        #expect(one.ends.count == 4)
    }

    @Test(arguments: strategies, [1, 2, 3] as [UInt64])
    func aSecondMemberTakesItsShareAndNothingIsReadTwice(strategy: String, seed: UInt64) throws {
        let world = Self.world(seed: seed)
        let options = ["partition.assignment.strategy": strategy]
        Self.fill(world)
        let one = try world.member("one", options: options)
        #expect(world.run { one.seen.count == 20 })
        let two = try world.member("two", options: options)
        #expect(world.run { one.consumer.assignment.count == 2 && two.consumer.assignment.count == 2 })
        Self.fill(world)
        #expect(world.run { one.seen.count + two.seen.count == 40 })
        world.run(5)
        #expect(one.seen.count + two.seen.count == 40)
        #expect(Set(one.seen + two.seen).count == 40)
        #expect(one.revocations.allSatisfy { !$0.lost } && two.revocations.allSatisfy { !$0.lost })
        #expect(one.revocations.count == 1)
        #expect(one.revocations.first?.partitions.count == (strategy == "cooperative-sticky" ? 2 : 4))
    }

    @Test func aPartitionThatIsPausedWhileTheClientAsksWhereToBeginIsReadAfterwards() throws {
        let world = Self.world(partitions: 1)
        Self.fill(world)
        let client = try ModelClients(world.host("one")).group(
            KafkaConfiguration(brokers: "model", group: "g"), topics: ["events"], reportsEnds: true)
        let one = GroupMember("one", KafkaConsumer(client))
        world.members.append(one)
        #expect(world.run { world.model.committed("g", "events", 0)?.offset == 5 })
        let partition = TopicPartition(topic: 0, partition: 0)
        _ = client.assign([PartitionStart(partition: partition, place: .committed)])
        client.pause([partition])
        world.run(1)
        client.resume([partition])
        world.write("events", 0, ["v5"])
        #expect(world.run { one.seen.count == 6 })
    }

    @Test(arguments: strategies)
    func theGroupWaitsForAMemberThatDrains(strategy: String) throws {
        let world = Self.world()
        let options = ["partition.assignment.strategy": strategy]
        Self.fill(world)
        let one = try world.member("one", options: options)
        one.answer = .deferred
        one.settlesAll = false
        #expect(world.run { one.seen.count == 20 })
        let two = try world.member("two", options: options)
        #expect(world.run { !one.consumer.pendingRevocation.isEmpty })
        world.run(20)
        #expect(two.consumer.assignment.isEmpty, "the first one still drains")
        one.settle(Set(0..<5))
        one.consumer.completeRevocation()
        #expect(world.run { two.consumer.assignment.count == 2 })
        world.run(5)
        #expect(two.seen == [], "all of it was settled before it went")
    }

    @Test(arguments: strategies)
    func recordsThatAreNotSettledComeAgainAfterACrash(strategy: String) throws {
        let world = Self.world(partitions: 1)
        let options = ["partition.assignment.strategy": strategy]
        Self.fill(world)
        let one = try world.member("one", options: options)
        one.settlesAll = false
        #expect(world.run { one.seen.count == 5 })
        one.settle([0, 1, 3])
        #expect(world.run { world.model.committed("g", "events", 0)?.offset == 2 })
        world.crash("one")
        let two = try world.member("two", options: options)
        #expect(world.run { two.seen.count == 2 })
        #expect(two.seen == ["events/0@2=v2", "events/0@4=v4"])
        #expect(two.skipped == ["events/0@3=v3"], "the commit's metadata names it")
    }

    @Test(arguments: strategies)
    func aPausedMemberIsEvictedAndLearnsItLater(strategy: String) throws {
        let world = Self.world()
        let options = ["partition.assignment.strategy": strategy]
        Self.fill(world)
        let one = try world.member("one", options: options)
        one.settlesAll = false
        #expect(world.run { one.seen.count == 20 })
        world.pause("one")
        let two = try world.member("two", options: options)
        #expect(world.run { two.seen.count == 20 })
        let generation = two.assignments.count
        // What it settles now is of partitions that are not its own any more.
        one.settle(Set(0..<5))
        world.goOn("one")
        #expect(world.run { one.revocations.contains { $0.lost } })
        #expect(world.run { one.consumer.assignment.count == 2 && two.consumer.assignment.count == 2 })
        #expect(two.assignments.count >= generation)
        #expect(world.run { world.model.committed("g", "events", 0)?.offset == 5 })
    }

    @Test func aLateCommitOfAnEvictedMemberIsRefused() throws {
        let world = Self.world(partitions: 1)
        Self.fill(world)
        let one = try world.member("one")
        one.settlesAll = false
        #expect(world.run { one.seen.count == 5 })
        world.model.forgetMembers(of: "g")
        one.settle([0, 1])
        one.consumer.commitNow()
        #expect(world.run { one.commits.contains { $0.error != nil } })
        #expect(one.commits.first?.error?.code == 25, "UNKNOWN_MEMBER_ID")
        #expect(world.model.committed("g", "events", 0) == nil)
        #expect(world.run { one.assignments.count == 2 })
        #expect(one.revocations.first?.lost == true)
    }

    @Test(arguments: strategies)
    func aMemberThatLeavesGivesItsShareAtOnce(strategy: String) throws {
        let world = Self.world()
        let options = ["partition.assignment.strategy": strategy]
        let one = try world.member("one", options: options)
        let two = try world.member("two", options: options)
        #expect(world.run { one.consumer.assignment.count == 2 && two.consumer.assignment.count == 2 })
        Self.fill(world)
        #expect(world.run { one.seen.count + two.seen.count == 20 })
        one.consumer.beginClose()
        let begun = world.nowNanos
        #expect(world.run { one.isClosed && two.consumer.assignment.count == 4 })
        #expect(world.nowNanos - begun < 3_000_000_000, "no session has to end")
        world.run(5)
        #expect(two.seen.count + one.seen.count == 20)
    }

    @Test(arguments: strategies)
    func aLostAssignmentIsNotDrained(strategy: String) throws {
        let world = Self.world()
        Self.fill(world)
        let one = try world.member("one", options: ["partition.assignment.strategy": strategy])
        one.answer = .deferred
        one.settlesAll = false
        #expect(world.run { one.seen.count == 20 })
        world.model.forgetMembers(of: "g")
        #expect(world.run { one.assignments.count == 2 && one.consumer.assignment.count == 4 })
        #expect(one.revocations.map(\.lost) == [true])
    }

    @Test func aCommitThatFailedIsSentAgainWithoutANewRecord() throws {
        let world = Self.world(partitions: 1)
        Self.fill(world)
        let one = try world.member("one", options: ["session.timeout.ms": "60000"])
        one.settlesAll = false
        #expect(world.run { one.seen.count == 5 })
        world.model.setDown(0, true)
        one.settle(Set(0..<5))
        #expect(world.run { one.commits.contains { $0.error != nil } })
        world.model.setDown(0, false)
        #expect(world.run { world.model.committed("g", "events", 0)?.offset == 5 })
        #expect(one.assignments.count == 1)
    }

    @Test(arguments: strategies)
    func aPauseDoesNotOutliveTheAssignment(strategy: String) throws {
        let world = Self.world(partitions: 1)
        let one = try world.member("one", options: ["partition.assignment.strategy": strategy])
        #expect(world.run { one.assignments.count == 1 })
        one.consumer.pause(one.consumer.assignment)
        world.model.forgetMembers(of: "g")
        #expect(world.run { one.assignments.count == 2 && one.consumer.assignment.count == 1 })
        #expect(one.consumer.paused == [])
        one.consumer.pause(one.consumer.assignment)
        Self.fill(world)
        #expect(!world.run(10) { !one.seen.isEmpty }, "paused again")
        one.consumer.resume(one.consumer.paused)
        #expect(world.run { one.seen.count == 5 })
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func membersThatLeaveWhileAnswersAreLateLeaveNothingUnread(seed: UInt64) throws {
        let world = Self.world(seed: seed)
        world.model.settings.lateAnswers = 1
        Self.fill(world)
        let members = try ["one", "two", "three"].map { try world.member($0) }
        world.run(1)
        for member in members.dropLast() {
            member.consumer.beginClose()
            world.run(Double(world.pick(0...3000)) / 1000)
        }
        let last = members[2]
        #expect(world.run { last.consumer.assignment.count == 4 })
        Self.fill(world)
        #expect(world.run { (0..<4).allSatisfy { world.model.committed("g", "events", $0)?.offset == 10 } })
    }

    @Test func aStaticMemberThatReturnsGetsItsShareWithoutARebalance() throws {
        let world = Self.world()
        let one = try world.member("one", options: ["group.instance.id": "a"])
        let two = try world.member("two", options: ["group.instance.id": "b"])
        #expect(world.run { one.consumer.assignment.count == 2 && two.consumer.assignment.count == 2 })
        let had = one.consumer.assignment
        let before = two.assignments.count
        world.crash("one")
        let again = try world.member("one", options: ["group.instance.id": "a"])
        #expect(world.run { again.consumer.assignment.count == 2 })
        #expect(again.consumer.assignment == had)
        #expect(two.assignments.count == before)
    }

    @Test func aStaticMemberWhosePlaceIsTakenFailsForGood() throws {
        let world = Self.world()
        let one = try world.member("one", options: ["group.instance.id": "a"])
        #expect(world.run { one.consumer.assignment.count == 4 })
        let two = try world.member("two", options: ["group.instance.id": "a"])
        #expect(world.run { two.consumer.assignment.count == 4 && one.fatal != nil })
        #expect(one.fatal?.code == 82, "FENCED_INSTANCE_ID")
    }

    @Test func anOwnerThatDoesNotPollIsOutAndComesBackWhenItPolls() throws {
        let world = Self.world()
        let one = try world.member("one", options: ["max.poll.interval.ms": "10000"])
        #expect(world.run { one.consumer.assignment.count == 4 })
        world.members = []
        world.run(30)
        #expect(world.model.memberCount(of: "g") == 0)
        world.members = [one]
        #expect(world.run { one.assignments.count == 2 })
        #expect(one.revocations.first?.lost == true)
        #expect(one.failures.contains { $0.code == -147 }, "MAX_POLL_EXCEEDED")
    }

    @Test(arguments: strategies)
    func aCoordinatorThatIsAwayHoldsCommitsAndLosesNothing(strategy: String) throws {
        var settings = KafkaModelSettings()
        settings.brokers = 3
        let world = ModelWorld(settings)
        world.model.createTopic("events", partitions: 3)
        let one = try world.member("one", options: ["partition.assignment.strategy": strategy])
        #expect(world.run { one.consumer.assignment.count == 3 })
        for broker in 0..<3 { world.model.setDown(broker, true) }
        Self.fill(world)
        world.run(20)
        for broker in 0..<3 { world.model.setDown(broker, false) }
        #expect(world.run { (0..<3).allSatisfy { world.model.committed("g", "events", $0)?.offset == 5 } })
        #expect(Set(one.seen).count == 15)
    }
}
