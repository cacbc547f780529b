// SPDX-License-Identifier: Apache-2.0
import Kafka
import KafkaModel
import Testing

/// Random worlds: members come, go, crash, rest and drain while brokers fail. In the end each record is settled, and the group
/// has committed everything.
@Suite("Groups in random worlds")
struct GroupSeedTests {
    @Test(arguments: 1...120 as ClosedRange<UInt64>)
    func everyRecordIsSettledBeforeItIsCommitted(seed: UInt64) throws {
        let story = try GroupStory(seed: seed)
        try story.run()
        #expect(story.faults == [], "seed \(seed)")
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func theSameSeedGivesTheSameStory(seed: UInt64) throws {
        let logs = try (0..<2).map { _ in
            let story = try GroupStory(seed: seed)
            try story.run()
            return story.world.log
        }
        #expect(logs[0] == logs[1])
        #expect(logs[0].count > 10)
    }
}

/// One world with its members.
private final class GroupStory {
    let world: ModelWorld
    private(set) var faults: [String] = []
    private let partitions = 4
    private let isCooperative: Bool
    private let isStatic: Bool
    private var nextName = 0
    private var written: [Int] = []
    /// `partition@offset` that some member has settled.
    private var settled: Set<String> = []

    init(seed: UInt64) throws {
        var settings = KafkaModelSettings()
        settings.brokers = 3
        world = ModelWorld(seed: seed, settings)
        isCooperative = world.chance(0.5)
        isStatic = world.chance(0.3)
        if world.chance(0.3) { world.model.settings.lostGroupCalls = 0.05 }
        if world.chance(0.3) { world.model.settings.lateAnswers = 0.3 }
        world.model.createTopic("events", partitions: partitions)
        written = Array(repeating: 0, count: partitions)
    }

    func run() throws {
        for _ in 0..<3 { try join() }
        for _ in 0..<60 {
            try step()
            world.run(Double(world.pick(0...4000)) / 1000) { [self] in
                work()
                return false
            }
        }
        heal()
        let isDone = world.run(900) { [self] in
            work()
            return isCommitted
        }
        if !isDone { faults.append("not committed: \(commits), written \(written), \(world.members.map(state))") }
        for partition in 0..<partitions {
            for offset in 0..<Int(commits[partition]) where !settled.contains("\(partition)@\(offset)") {
                faults.append("\(partition)@\(offset) was committed and never settled")
            }
        }
    }

    private func state(_ member: GroupMember) -> String {
        "\(member.name) has \(member.consumer.assignment.sorted()), drains \(member.consumer.pendingRevocation)"
    }

    private var commits: [Int64] {
        (0..<partitions).map { world.model.committed("g", "events", $0)?.offset ?? 0 }
    }

    private var isCommitted: Bool { commits == written.map(Int64.init) }

    // MARK: - Steps

    private func join() throws {
        nextName += 1
        var options = ["partition.assignment.strategy": isCooperative ? "cooperative-sticky" : "range"]
        if isStatic { options["group.instance.id"] = "static-\(nextName)" }
        let member = try world.member("m\(nextName)", options: options)
        member.settlesAll = false
        member.answer = world.chance(0.5) ? .deferred : .complete
    }

    private func step() throws {
        write()
        let member = world.members.isEmpty ? nil : world.members[world.pick(0...(world.members.count - 1))]
        switch world.pick(0...11) {
        case 0: if world.members.count < 5 { try join() }
        case 1: if let member { world.crash(member.name) }
        case 2: if let member, !world.isPaused(member.name) { member.consumer.beginClose() }
        case 3: if let member { world.pause(member.name) }
        case 4, 5: for member in world.members { world.goOn(member.name) }
        case 6: world.model.setDown(world.pick(0...2), true)
        case 7, 8: for broker in 0..<3 { world.model.setDown(broker, false) }
        case 9: world.model.forgetMembers(of: "g")
        case 10: if let member, !world.isPaused(member.name) { member.consumer.pause(member.consumer.assignment) }
        default: break
        }
        if world.members.isEmpty { try join() }
        for member in world.members where world.chance(0.5) && !world.isPaused(member.name) {
            member.consumer.resume(member.consumer.paused)
        }
    }

    private func write() {
        let partition = world.pick(0...(partitions - 1))
        let count = world.pick(0...30)
        world.write("events", partition, (0..<count).map { "v\($0)" })
        written[partition] += count
    }

    /// Members settle some of what they hold, in any order; drains end when nothing is left, or after a while.
    private func work() {
        for member in world.members where !world.isPaused(member.name) {
            for slot in member.slots where world.chance(0.2) {
                settled.insert("\(slot.partition.partition)@\(slot.offset)")
                member.settle(slot.partition, slot.offset)
            }
            let drained = member.consumer.pendingRevocation
            if !drained.isEmpty, world.chance(0.05) || !member.slots.contains(where: { drained.contains($0.partition) })
            {
                member.consumer.completeRevocation()
            }
            if member.isClosed { world.remove(member) }
        }
    }

    private func heal() {
        for broker in 0..<3 { world.model.setDown(broker, false) }
        world.model.settings.lostGroupCalls = 0
        world.model.settings.lateAnswers = 0
        for member in world.members {
            world.goOn(member.name)
            member.consumer.resume(member.consumer.paused)
        }
        // The others may all be about to leave.
        try? join()
    }
}
