// SPDX-License-Identifier: Apache-2.0
import Kafka
import Support
import Testing

@Suite("Retention", .timeLimit(.minutes(5)))
struct RetentionTests {
    @Test func recordsThatWereGoneBeforeTheFirstFetchAreCounted() async throws {
        struct Outcome { var first: Int64, skipped: UInt64 }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 1)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", [(nil, "read", 0)])
            let before = try Member(broker.bootstrap, group: "g", topics: ["events"])
            before.storesAll = true
            _ = pump([before]) { before.committedTo(1) }
            _ = before.consumer.close(timeoutMs: 10_000)
            // The broker keeps 5 MiB of a partition.
            let large = String(repeating: "x", count: 500_000)
            for _ in 0..<20 { try write(producer, "events", [(nil, large, 0)]) }
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            _ = pump([member]) {
                member.consumer.watchLag()
                return !member.seen.isEmpty && member.consumer.lostRecords > 0
            }
            return Outcome(first: member.seen.first?.offset ?? -1, skipped: member.consumer.lostRecords)
        }
        #expect(outcome.first > 1)
        // Offset 1 was to be read next.
        #expect(outcome.skipped == UInt64(max(0, outcome.first - 1)))
    }

    @Test func aGroupWithoutOffsetsAndOneWithoutAGapCountNothing() async throws {
        struct Outcome { var known: [PartitionOffset], skipped: UInt64 }
        let outcomes = try await offPool { () throws -> [Outcome] in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 1)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", (0..<3).map { (nil, "\($0)", 0) })
            var outcomes: [Outcome] = []
            for round in 0..<2 {
                let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
                member.storesAll = true
                _ = pump([member]) { member.seen.count == 3 - round * 3 && !member.committedAtStart.isEmpty }
                outcomes.append(Outcome(known: member.committedAtStart, skipped: member.consumer.lostRecords))
                _ = member.consumer.close(timeoutMs: 10_000)
            }
            return outcomes
        }
        let partition = TopicPartition(topic: 0, partition: 0)
        #expect(
            outcomes.map(\.known) == [
                [PartitionOffset(partition: partition, offset: nil)],
                [PartitionOffset(partition: partition, offset: 3)],
            ])
        #expect(outcomes.map(\.skipped) == [0, 0])
    }
}
