// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

@testable import Kafka

/// A topic that was created again, or a leader without the log's end, gives offsets that were read before.
@Suite("Epochs of a partition", .timeLimit(.minutes(5)))
struct PartitionEpochTests {
    private struct Outcome: Sendable {
        var restarts: [Member.Restart] = []
        var seen: [Int64] = []
        var skipped: [Int64] = []
        var committed: Int64?
        var lag: Int64?
    }

    private static let zero = TopicPartition(topic: 0, partition: 0)

    /// The library begins at the oldest record where a broker refuses the offset that it asks for.
    @Test func aBrokerThatRefusesTheOffsetBeginsANewEpoch() async throws {
        let outcome = try await offPool { () throws -> Outcome in
            var outcome = Outcome()
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 1)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", (0..<6).map { (nil, "v\($0)", 0) })
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            member.storesAll = true
            _ = pump([member]) { member.committedTo(6) }
            // 1: OFFSET_OUT_OF_RANGE.
            broker.pushErrors(api: .fetch, [1])
            _ = pump([member]) { !member.restarts.isEmpty }
            try write(producer, "events", [(nil, "v6", 0)])
            _ = pump([member]) { member.seen.count == 13 && member.committedTo(7) }
            outcome.restarts = member.restarts
            outcome.seen = member.seen.map(\.offset)
            return outcome
        }
        #expect(outcome.restarts == [Member.Restart(due: 6, offset: 0)])
        #expect(outcome.seen == [0, 1, 2, 3, 4, 5] + [0, 1, 2, 3, 4, 5, 6])
    }

    /// What the group committed is of an earlier epoch, and so is the list of what is settled beyond it.
    @Test func aCommittedOffsetBeyondTheEndIsOfAnEarlierEpoch() async throws {
        let outcome = try await offPool { () throws -> Outcome in
            var outcome = Outcome()
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 1)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", [(nil, "v0", 0)])
            do {
                let before = try Member(broker.bootstrap, group: "g", topics: ["events"])
                _ = pump([before]) { before.seen.count == 1 }
                before.store(Self.zero, next: 3, settled: [4, 5])
                _ = pump([before]) { before.committedTo(3) }
                _ = before.consumer.close(timeoutMs: 15_000)
            }
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            _ = pump([member]) { member.seen.count == 1 }
            try write(producer, "events", (1..<6).map { (nil, "v\($0)", 0) })
            _ = pump([member]) { member.seen.count == 6 }
            outcome.restarts = member.restarts
            outcome.seen = member.seen.map(\.offset)
            outcome.skipped = member.settledBefore
            return outcome
        }
        #expect(outcome.restarts == [Member.Restart(due: 3, offset: 0)])
        #expect(outcome.seen == [0, 1, 2, 3, 4, 5])
        #expect(outcome.skipped == [])
    }

    /// The log grew past the committed offset again before anybody read it: records at listed offsets are newer than the list.
    @Test func aListOfSettledOffsetsThatIsOlderThanItsRecordsIsOfAnEarlierEpoch() async throws {
        let outcome = try await offPool { () throws -> Outcome in
            var outcome = Outcome()
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 1)
            do {
                let before = try Member(broker.bootstrap, group: "g", topics: ["events"])
                _ = pump([before]) { before.assignments == 1 }
                before.store(Self.zero, next: 3, settled: [4, 5], newestMs: 1_000)
                _ = pump([before]) { before.committedTo(3) }
                _ = before.consumer.close(timeoutMs: 15_000)
            }
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", (0..<8).map { (nil, "v\($0)", 0) })
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            _ = pump([member]) { !member.restarts.isEmpty && member.seen.last?.offset == 7 }
            outcome.restarts = member.restarts
            outcome.seen = member.seen.map(\.offset)
            outcome.skipped = member.settledBefore
            return outcome
        }
        #expect(outcome.restarts.map(\.offset) == [0])
        #expect(outcome.seen.suffix(8) == [0, 1, 2, 3, 4, 5, 6, 7])
        #expect(outcome.skipped == [])
    }

    /// An empty topic has no record that would show it.
    @Test func anEndBelowTheCommittedOffsetBeginsANewEpoch() async throws {
        let outcome = try await offPool { () throws -> Outcome in
            var outcome = Outcome()
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 1)
            do {
                let before = try Member(broker.bootstrap, group: "g", topics: ["events"])
                _ = pump([before]) { before.assignments == 1 }
                before.store(Self.zero, next: 60)
                _ = pump([before]) { before.committedTo(60) }
                _ = before.consumer.close(timeoutMs: 15_000)
            }
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            _ = pump([member]) { !member.restarts.isEmpty }
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", (0..<4).map { (nil, "v\($0)", 0) })
            _ = pump([member]) { member.seen.count == 4 }
            member.consumer.endsEveryMs = 100
            _ = pump([member]) {
                member.consumer.watchLag()
                return member.consumer.lag(ofTopic: 0)?.records == 4
            }
            outcome.lag = member.consumer.lag(ofTopic: 0)?.records
            outcome.restarts = member.restarts
            outcome.seen = member.seen.map(\.offset)
            return outcome
        }
        #expect(outcome.restarts == [Member.Restart(due: 60, offset: 0)])
        #expect(outcome.seen == [0, 1, 2, 3])
        #expect(outcome.lag == 4, "the group's committed offset is of the earlier epoch")
    }
}
