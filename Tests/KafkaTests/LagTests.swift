// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

@testable import Kafka

/// How far a group is behind: end minus committed, in records and since when.
@Suite("Lag", .timeLimit(.minutes(10)))
struct LagTests {
    private static let zero = TopicPartition(topic: 0, partition: 0)

    @Test func lagIsUnknownUntilTheBrokersReportCommitAndEnd() {
        var table = LagTable()
        #expect(table.lag(ofTopic: 0) == GroupLag(records: 0, oldestMs: nil), "of no partition")
        table.assign(Self.zero, round: 2)
        #expect(table.lag(ofTopic: 0) == nil)
        table.noteRange(Self.zero, 0..<100, round: 2, askedMs: 1_000)
        #expect(table.lag(ofTopic: 0) == nil, "what is committed is not told")
        table.assign(Self.zero, round: 3)
        table.noteCommittedBefore(Self.zero, 100)
        table.noteRange(Self.zero, 0..<100, round: 2, askedMs: 1_000)
        #expect(table.lag(ofTopic: 0) == nil, "an answer of an earlier assignment")
        table.noteRange(Self.zero, 0..<100, round: 3, askedMs: 1_000)
        #expect(table.lag(ofTopic: 0) == GroupLag(records: 0, oldestMs: nil), "all that is kept is committed")
        table.revoke(Self.zero)
        #expect(table.lag(ofTopic: 0) == GroupLag(records: 0, oldestMs: nil) && table.wantedTimes == 0)
    }

    @Test func aPartitionKeptThroughALaterAssignmentTakesAnswersToLaterQuestions() {
        var table = LagTable()
        table.assign(Self.zero, round: 1)
        table.noteCommittedBefore(Self.zero, 10)
        table.assign(TopicPartition(topic: 0, partition: 1), round: 2)
        table.noteCommittedBefore(TopicPartition(topic: 0, partition: 1), 0)
        table.noteRange(Self.zero, 0..<30, round: 2, askedMs: 1_000)
        table.noteRange(TopicPartition(topic: 0, partition: 1), 0..<5, round: 2, askedMs: 1_000)
        #expect(table.lag(ofTopic: 0)?.records == 25)
    }

    @Test func anEndIsUnknownOnlyIfBothConsumersHaveNone() {
        #expect(KafkaReach.none.and(.none) == .none && KafkaReach.whole.and(.whole) == .whole)
        #expect(KafkaReach.none.and(.whole) == .partial && KafkaReach.partial.and(.unknown) == .partial)
        #expect(KafkaReach.whole.and(.unknown) == .unknown)
    }

    @Test func aGroupWithoutOffsetsOrBehindRetentionHasWhatIsKeptBeforeIt() {
        var table = LagTable()
        table.assign(Self.zero, round: 1)
        table.noteCommittedBefore(Self.zero, nil)
        table.noteRange(Self.zero, 40..<100, round: 1, askedMs: 1_000)
        #expect(table.lag(ofTopic: 0)?.records == 60)
        table.noteCommitted(Self.zero, 30)
        #expect(table.lag(ofTopic: 0)?.records == 60, "30 to 39 are gone")
        table.noteCommitted(Self.zero, 70)
        #expect(table.lag(ofTopic: 0)?.records == 30)
        table.noteCommitted(Self.zero, 60)
        #expect(table.lag(ofTopic: 0)?.records == 30, "an older outcome that comes late")
    }

    @Test func itsAgeIsThatOfTheOldestRecordNotCommitted() {
        var table = LagTable()
        table.assign(Self.zero, round: 1)
        table.noteCommittedBefore(Self.zero, 10)
        table.noteRange(Self.zero, 0..<30, round: 1, askedMs: 900_000)
        #expect(table.lag(ofTopic: 0)?.oldestMs == 900_000, "since the first look, before a record tells more")
        table.noteRecord(Self.zero, offset: 10, ms: 500_000)
        table.noteRecord(Self.zero, offset: 11, ms: 510_000)
        #expect(table.lag(ofTopic: 0)?.oldestMs == 500_000)
        #expect(table.wantedTimes == 0, "one record a look")
        table.noteCommitted(Self.zero, 20)
        #expect(table.lag(ofTopic: 0)?.oldestMs == 500_000, "not younger than the last one known before it")
        table.wantTimes()
        table.noteRecord(Self.zero, offset: 20, ms: 700_000)
        #expect(table.lag(ofTopic: 0) == GroupLag(records: 10, oldestMs: 700_000))
        table.noteCommitted(Self.zero, 30)
        #expect(table.lag(ofTopic: 0)?.seconds(nowMs: 2_000_000) == 0)
        // An idle partition: what comes is as old as the last look at which it was not there.
        table.noteRange(Self.zero, 0..<30, round: 1, askedMs: 1_900_000)
        table.noteRange(Self.zero, 0..<31, round: 1, askedMs: 1_905_000)
        #expect(table.lag(ofTopic: 0) == GroupLag(records: 1, oldestMs: 1_900_000))
        #expect(table.lag(ofTopic: 0)?.seconds(nowMs: 1_906_000) == 6)
    }

    @Test func aLongStandstillKeepsBoundedMarksAndNeverShowsAYoungerAge() {
        var times = OffsetTimes()
        for second in Int64(1)...10_000 { times.note(offset: second * 100, ms: second * 1_000) }
        #expect(times.marks.count <= 128)
        #expect(times.marks == times.marks.sorted { $0.offset < $1.offset })
        #expect(times.ms(at: 100) == 1_000 && times.ms(at: 1_000_000) == 10_000_000)
        for offset in stride(from: Int64(100), through: 1_000_000, by: 9_999) {
            let ms = times.ms(at: offset) ?? .max
            #expect(ms <= offset / 100 * 1_000, "\(offset)")
        }
        times.forget(below: 500_000)
        #expect((times.ms(at: 500_000) ?? .max) <= 5_000_000)
        #expect(times.marks.dropFirst().allSatisfy { $0.offset > 500_000 })
        #expect(OffsetTimes().ms(at: 5) == nil)
    }

    @Test func withEverythingCommittedItIsZeroAfterARestartAndGrowsWhilePaused() async throws {
        struct Outcome {
            var steps: [String] = []
            var beforeAssignment: GroupLag?
            var afterRestart: GroupLag?
            var paused: GroupLag?
            var received = 0
        }
        let outcome = try await offPool { () throws -> Outcome in
            var outcome = Outcome()
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 2)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            func write(_ count: Int) throws {
                try KafkaTests.write(producer, "events", (0..<count).map { (nil, "v\($0)", Int32($0 % 2)) })
            }
            try write(40)
            func step(_ name: String, _ member: Member, until condition: () -> Bool) {
                let done = pump([member]) {
                    member.consumer.watchLag()
                    return condition()
                }
                if !done { outcome.steps.append("\(name) did not happen") }
            }
            let first = try Member(broker.bootstrap, group: "g", topics: ["events"])
            first.storesAll = true
            step("committed", first) {
                Set(
                    first.commits.filter { $0.error == nil }.flatMap(\.offsets).filter { $0.offset == 20 }.map(
                        \.partition)
                )
                .count == 2
            }
            step("caught up", first) { first.consumer.lag(ofTopic: 0) == GroupLag(records: 0, oldestMs: nil) }
            _ = first.consumer.close(timeoutMs: 10_000)

            let again = try Member(broker.bootstrap, group: "g", topics: ["events"])
            again.consumer.endsEveryMs = 50
            outcome.beforeAssignment = again.consumer.lag(ofTopic: 0)
            step("known", again) {
                outcome.afterRestart = again.consumer.lag(ofTopic: 0)
                return outcome.afterRestart != nil
            }
            again.consumer.pause(again.consumer.assignment)
            let received = again.seen.count
            try write(30)
            step("told while paused", again) {
                outcome.paused = again.consumer.lag(ofTopic: 0)
                return outcome.paused?.records == 30
            }
            outcome.received = again.seen.count - received
            return outcome
        }
        #expect(outcome.steps == [])
        #expect(outcome.beforeAssignment == nil)
        #expect(outcome.afterRestart == GroupLag(records: 0, oldestMs: nil), "40 records are kept, and committed")
        #expect(outcome.paused?.records == 30 && outcome.paused?.oldestMs != nil)
        #expect(outcome.received == 0)
    }

    @Test func unreachableBrokersAreReportedAndTheLagIsUnknown() async throws {
        struct Outcome {
            var steps: [String] = []
            var lag: GroupLag?
        }
        let outcome = try await offPool { () throws -> Outcome in
            var outcome = Outcome()
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 1)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", (0..<10).map { (nil, "v\($0)", 0) })
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            member.consumer.endsEveryMs = 50
            func step(_ name: String, until condition: () -> Bool) {
                let done = pump([member]) {
                    member.consumer.watchLag()
                    return condition()
                }
                if !done { outcome.steps.append("\(name) did not happen") }
            }
            step("known") { member.consumer.reach == .whole && member.consumer.lag(ofTopic: 0)?.records == 10 }
            try broker.setDown(broker: 1)
            step("away") { member.consumer.reach == .none }
            outcome.lag = member.consumer.lag(ofTopic: 0)
            // As often as was asked, while librdkafka tells of an outage once.
            let counted = member.consumer.errorCounts.values.reduce(0, +)
            step("counted again") { member.consumer.errorCounts.values.reduce(0, +) >= counted + 2 }
            try broker.setUp(broker: 1)
            step("back") { member.consumer.reach == .whole }
            return outcome
        }
        #expect(outcome.steps == [])
        #expect(outcome.lag.map { $0.records == 10 } ?? true, "unknown once the session is over")
    }

    /// librdkafka 2.0.2 ends the process where a question of its admin interface is over before the coordinator is back.
    @Test func aBrokerThatGoesAtTheAssignmentLeavesAQuestionOpenAndEndsNothing() async throws {
        let steps = try await offPool { () throws -> [String] in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 2)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", (0..<10).map { (nil, "v\($0)", Int32($0 % 2)) })
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            try member.native.committedQuery.patienceMs = 300
            var steps: [String] = []
            func step(_ name: String, until condition: () -> Bool) {
                if !pump([member], seconds: 40, until: condition) { steps.append("\(name) did not happen") }
            }
            try broker.setRTT(broker: 1, milliseconds: 50)
            step("asked") { member.consumer.pendingAssignment != nil }
            try broker.setDown(broker: 1)
            step("given up") { member.assignments == 1 }
            try broker.setRTT(broker: 1, milliseconds: 0)
            try broker.setUp(broker: 1)
            step("read") { member.seen.count >= 10 }
            return steps
        }
        #expect(steps == [])
    }
}
