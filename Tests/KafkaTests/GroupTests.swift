// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

@testable import Kafka

@Suite("Consumer group", .timeLimit(.minutes(10)))
struct GroupTests {
    @Test func aSecondMemberWaitsForTheDrainAndNothingIsLost() async throws {
        struct Outcome {
            var started: Bool, asked: Bool, stored: Bool, waited: Bool, shared: Bool, disjoint: Bool
            var all: Bool, missing: Int
        }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 4)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", (0..<200).map { (nil, "a\($0)", Int32($0 % 4)) })
            let one = try Member(broker.bootstrap, group: "g", topics: ["events"])
            one.revocationAnswer = .deferred
            let started = pump([one]) { one.seen.count == 200 }

            let two = try Member(broker.bootstrap, group: "g", topics: ["events"])
            two.storesAll = true
            let asked = pump([one, two]) { one.willRevoke == 1 }
            // What comes now is for the next owner, not for a member about to leave.
            try write(producer, "events", (0..<40).map { (nil, "b\($0)", Int32($0 % 4)) })
            let waited = !pump([one, two], seconds: 1) { !two.consumer.assignment.isEmpty || one.seen.count > 200 }
            let stored = (0..<4).allSatisfy {
                one.store(TopicPartition(topic: 0, partition: $0), next: 50)
            }
            one.storesAll = true
            // The group may be rebalanced once more, and then nobody would end a drain.
            one.revocationAnswer = .complete
            one.consumer.completeRevocation()
            let shared = pump([one, two]) {
                one.consumer.assignment.count == 2 && two.consumer.assignment.count == 2
            }
            let disjoint = one.consumer.assignment.isDisjoint(with: two.consumer.assignment)
            let expected = Set((0..<200).map { "a\($0)" } + (0..<40).map { "b\($0)" })
            let all = pump([one, two]) { Set((one.seen + two.seen).compactMap(\.value)).isSuperset(of: expected) }
            let missing = expected.subtracting((one.seen + two.seen).compactMap(\.value)).count
            return Outcome(
                started: started, asked: asked, stored: stored, waited: waited, shared: shared, disjoint: disjoint,
                all: all, missing: missing)
        }
        #expect(outcome.started)
        #expect(outcome.asked)
        #expect(outcome.waited)
        #expect(outcome.stored)
        #expect(outcome.shared)
        #expect(outcome.disjoint)
        #expect(outcome.all)
        #expect(outcome.missing == 0)
    }

    @Test(.enabled(if: KafkaConfiguration.allowsCooperative, "librdkafka 2.10.1 or newer: make test-newer-kafka"))
    func aCooperativeGroupThatTakesBackMoreDuringADrainGetsAllOfIt() async throws {
        struct Outcome: Sendable { var isTold: Bool, isShared: Bool, left: [TopicPartition] }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try MockBroker()
            let topics = ["events", "more"]
            for topic in topics { try broker.createTopic(topic, partitions: 2) }
            let options = [
                "partition.assignment.strategy": "cooperative-sticky", "topic.metadata.refresh.interval.ms": "300",
            ]
            let one = try Member(broker.bootstrap, group: "g", topics: topics, options: options)
            _ = pump([one]) { one.consumer.assignment.count == 4 }
            one.revocationAnswer = .deferred
            let two = try Member(broker.bootstrap, group: "g", topics: topics, options: options)
            _ = pump([one, two]) { !one.consumer.pendingRevocation.isEmpty }
            // 3: UNKNOWN_TOPIC_OR_PART.
            broker.setError(topic: "more", 3)
            let isTold = pump([one, two]) { one.willRevoke >= 2 }
            one.revocationAnswer = .complete
            one.consumer.completeRevocation()
            let isShared = pump([one, two]) {
                one.consumer.assignment.count == 1 && two.consumer.assignment.count == 1
                    && one.consumer.assignment != two.consumer.assignment
            }
            return Outcome(isTold: isTold, isShared: isShared, left: Array(one.consumer.assignment))
        }
        #expect(outcome.isTold && outcome.isShared, "\(outcome)")
    }

    /// The protocols in which a member keeps what it may keep: two members share, one leaves, and every record is seen.
    @Test(
        .enabled(if: KafkaConfiguration.allowsCooperative, "librdkafka 2.10.1 or newer: make test-newer-kafka"),
        arguments: [["partition.assignment.strategy": "cooperative-sticky"], ["group.protocol": "consumer"]])
    func aMemberKeepsWhatItMayKeep(options: [String: String]) async throws {
        let (isShared, isKept, isTaken) = try await offPool { () throws -> (Bool, Bool, Bool) in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 4)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            let one = try Member(broker.bootstrap, group: "g", topics: ["events"], options: options)
            one.storesAll = true
            _ = pump([one]) { one.consumer.assignment.count == 4 }
            let two = try Member(broker.bootstrap, group: "g", topics: ["events"], options: options)
            two.storesAll = true
            let isShared = pump([one, two]) {
                one.consumer.assignment.count == 2 && two.consumer.assignment.count == 2
            }
            let isKept = one.revocations.allSatisfy { $0.partitions.count <= 2 }
            try write(producer, "events", (0..<40).map { (nil, "a\($0)", Int32($0 % 4)) })
            _ = pump([one, two]) { one.seen.count + two.seen.count >= 40 }
            two.consumer.beginClose()
            _ = pump([one, two]) { two.isClosed }
            try write(producer, "events", (0..<40).map { (nil, "b\($0)", Int32($0 % 4)) })
            let wanted = Set((0..<40).flatMap { ["a\($0)", "b\($0)"] })
            let isTaken = pump([one]) { Set((one.seen + two.seen).compactMap(\.value)) == wanted }
            return (isShared, isKept, isTaken)
        }
        #expect(isShared && isKept && isTaken, "\(options): shared \(isShared), kept \(isKept), taken over \(isTaken)")
    }

    @Test func aLostAssignmentIsReportedAndTheGroupIsJoinedAgain() async throws {
        struct Outcome { var lost: Bool, again: Bool, stored: Bool, reread: Bool }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 1)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", [(nil, "x", 0)])
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            // An owner that would drain must not be waited for: the partitions are gone.
            member.revocationAnswer = .deferred
            _ = pump([member]) { member.seen.count == 1 }
            // 25: UNKNOWN_MEMBER_ID, what a member hears that the group gave up on.
            broker.pushErrors(api: .heartbeat, [25])
            let lost = pump([member]) { member.revocations.contains { $0.lost } }
            let stored = member.store(TopicPartition(topic: 0, partition: 0), next: 1)
            let again = pump([member]) { member.assignments == 2 }
            let reread = pump([member]) { member.seen.count == 2 }
            return Outcome(lost: lost, again: again, stored: stored, reread: reread)
        }
        #expect(outcome.lost)
        #expect(!outcome.stored)
        #expect(outcome.again)
        #expect(outcome.reread)
    }

    @Test func pausedPartitionsRestAndAPauseDoesNotOutliveTheAssignment() async throws {
        struct Outcome { var rested: Bool, resumed: Bool, after: Bool, stillPaused: Int, order: [Int64] }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 2)
            let zero = TopicPartition(topic: 0, partition: 0)
            let other = TopicPartition(topic: 0, partition: 1)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", [(nil, "a", 0), (nil, "b", 1)])
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            member.storesAll = true
            _ = pump([member]) { member.seen.count == 2 }
            member.consumer.pause([zero])
            // Neither is a transition, so neither may reach the library.
            member.consumer.pause([zero])
            member.consumer.resume([other])
            try write(producer, "events", [(nil, "c", 0), (nil, "d", 1)])
            _ = pump([member]) { member.seen.contains { $0.value == "d" } }
            let rested = !pump([member], seconds: 0.5) { member.seen.contains { $0.value == "c" } }
            member.consumer.resume([zero])
            let resumed = pump([member]) { member.seen.contains { $0.value == "c" } }
            // Paused again, then the assignment is lost and comes back: it must flow.
            member.consumer.pause([zero])
            broker.pushErrors(api: .heartbeat, [25])
            _ = pump([member]) { member.assignments == 2 }
            try write(producer, "events", [(nil, "e", 0)])
            let after = pump([member]) { member.seen.contains { $0.value == "e" } }
            return Outcome(
                rested: rested, resumed: resumed, after: after, stillPaused: member.consumer.paused.count,
                order: member.seen.filter { $0.partition == zero }.map(\.offset))
        }
        #expect(outcome.rested)
        #expect(outcome.resumed)
        #expect(outcome.after)
        #expect(outcome.stillPaused == 0)
        #expect(outcome.order.last == 2)
    }

    @Test func closingOffersTheDrainAndCommitsWhatWasStored() async throws {
        struct Outcome { var asked: Int, closed: Bool, told: Bool, rest: [String?], silent: Bool }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 1)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", (0..<5).map { (nil, "v\($0)", 0) })
            let one = try Member(broker.bootstrap, group: "g", topics: ["events"])
            one.revocationAnswer = .deferred
            _ = pump([one]) { one.seen.count == 5 }
            one.consumer.beginClose()
            _ = pump([one]) { one.willRevoke == 1 }
            one.store(TopicPartition(topic: 0, partition: 0), next: 3)
            let silent = !one.isClosed
            one.consumer.completeRevocation()
            let closed = pump([one]) { one.isClosed }
            let two = try Member(broker.bootstrap, group: "g", topics: ["events"])
            _ = pump([two]) { two.seen.count == 2 }
            return Outcome(
                asked: one.willRevoke, closed: closed, told: one.consumer.isClosed, rest: two.seen.map(\.value),
                silent: silent)
        }
        #expect(outcome.asked == 1)
        #expect(outcome.silent)
        #expect(outcome.closed)
        #expect(outcome.told)
        #expect(outcome.rest == ["v3", "v4"])
    }

    /// librdkafka 2.0.2 and 2.16 notice a resumed partition up to a second later if nothing else is fetched from its broker.
    @Test func recordsOfAPausedPartitionArriveAtOnceWhenItIsResumed() async throws {
        struct Outcome { var assigned = false, rested = true, shortest = Double.infinity }
        let outcome = try await offPool { () throws -> Outcome in
            var outcome = Outcome()
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 1)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            outcome.assigned = pump([member]) { member.consumer.assignment.count == 1 }
            for round in 0..<5 {
                try write(producer, "events", [(nil, "a", 0)])
                _ = pump([member]) { member.seen.count == 2 * round + 1 }
                member.consumer.pause(member.consumer.assignment)
                // The fetch on its way when the pause came.
                _ = pump([member], seconds: 0.1) { false }
                try write(producer, "events", [(nil, "b", 0)])
                outcome.rested = outcome.rested && member.seen.count == 2 * round + 1
                let begun = now()
                member.consumer.resume(member.consumer.assignment)
                _ = pump([member]) { member.seen.count == 2 * round + 2 }
                outcome.shortest = min(outcome.shortest, now() - begun)
            }
            return outcome
        }
        #expect(outcome.assigned && outcome.rested)
        #expect(outcome.shortest < 0.4)
    }

    @Test func aMemberForgottenDuringItsDrainComesBack() async throws {
        struct Outcome { var asked: Bool, revoked: Bool, again: Bool, all: Bool }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 2)
            // In each round the mock waits a second less than the session for the member that it forgot.
            let options = ["session.timeout.ms": "3000"]
            let one = try Member(broker.bootstrap, group: "g", topics: ["events"], options: options)
            one.revocationAnswer = .deferred
            _ = pump([one]) { one.consumer.assignment.count == 2 }
            let two = try Member(broker.bootstrap, group: "g", topics: ["events"], options: options)
            let asked = pump([one, two]) { one.willRevoke == 1 }
            broker.pushErrors(api: .heartbeat, [25])
            _ = pump([one, two], seconds: 2) { false }
            one.revocationAnswer = .complete
            one.consumer.completeRevocation()
            let revoked = !one.revocations.isEmpty
            let again = pump([one, two]) {
                one.consumer.assignment.count == 1 && two.consumer.assignment.count == 1
            }
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", [(nil, "a", 0), (nil, "b", 1)])
            let all = pump([one, two]) { Set((one.seen + two.seen).compactMap(\.value)) == ["a", "b"] }
            return Outcome(asked: asked, revoked: revoked, again: again, all: all)
        }
        #expect(outcome.asked)
        #expect(outcome.revoked)
        #expect(outcome.again)
        #expect(outcome.all)
    }
}
