// SPDX-License-Identifier: Apache-2.0
import CRdkafka
import Support
import Testing

@testable import Kafka

@Suite("Records through a broker", .timeLimit(.minutes(10)))
struct RoundTripTests {
    @Test func keysHeadersAndNullPayloadsArriveAsWritten() async throws {
        struct Outcome { var seen: [Member.Seen], reports: [DeliveryReport], arrived: Bool, closed: Bool, fatal: Bool }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 1)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            guard let topic = producer.topic("events") else { throw Broken("no topic") }
            let headers = [
                KafkaHeader(name: "carillon-error", text: "invalid: é"), KafkaHeader(name: "null", value: nil),
                KafkaHeader(name: "empty", value: []),
            ]
            _ = producer.produce(
                to: topic, keyBytes: Array("k".utf8), valueBytes: Array("v".utf8), headers: headers, opaque: 7)
            _ = producer.produce(to: topic, keyBytes: nil, valueBytes: nil, opaque: 8)
            _ = producer.produce(to: topic, keyBytes: [], valueBytes: [], opaque: UInt64.max)
            var reports: [DeliveryReport] = []
            _ = producer.flush(timeoutMs: 15_000) { reports.append($0) }
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            let arrived = pump([member]) { member.seen.count == 3 }
            let closed = member.consumer.close(timeoutMs: 15_000)
            return Outcome(
                seen: member.seen, reports: reports, arrived: arrived, closed: closed,
                fatal: producer.fatalError != nil)
        }
        #expect(outcome.arrived)
        #expect(outcome.closed)
        #expect(!outcome.fatal)
        #expect(outcome.reports.map(\.opaque) == [7, 8, .max])
        #expect(outcome.reports.allSatisfy { $0.error == nil })
        #expect(outcome.reports.map(\.offset) == [0, 1, 2])
        try #require(outcome.seen.count == 3)
        #expect(outcome.seen[0].key == "k")
        #expect(outcome.seen[0].value == "v")
        #expect(outcome.seen[0].headers == ["carillon-error": "invalid: é", "null": "null", "empty": ""])
        #expect(outcome.seen[0].hasTime)
        #expect(outcome.seen[1].key == nil)
        #expect(outcome.seen[1].value == nil)
        #expect(outcome.seen[1].headers.isEmpty)
        #expect(outcome.seen[2].key == "")
        #expect(outcome.seen[2].value == "")
    }

    @Test func storedOffsetsAreCommittedAndResumedAndUnsettledOnesAreNot() async throws {
        struct Outcome { var first: Bool, resumed: [Int64], committed: Int64?, untouched: Int64?, resumedAll: Bool }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 2)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", (0..<20).map { (nil, "v\($0)", Int32($0 % 2)) })
            let one = TopicPartition(topic: 0, partition: 0)
            let two = TopicPartition(topic: 0, partition: 1)
            let first = try Member(broker.bootstrap, group: "g", topics: ["events"])
            let read = pump([first]) { first.seen.count == 20 }
            // Of partition 0 the records 0…3 are settled; of partition 1 none is.
            first.store(one, next: 4)
            _ = first.consumer.close(timeoutMs: 15_000)

            let second = try Member(broker.bootstrap, group: "g", topics: ["events"])
            let resumedAll = pump([second]) { second.seen.count >= 16 }
            let committed = try second.native.committed([one, two], timeoutMs: 5000)
            let resumed = second.seen.filter { $0.partition == one }.map(\.offset)
            _ = second.consumer.close(timeoutMs: 15_000)
            return Outcome(
                first: read, resumed: resumed, committed: committed.first?.offset, untouched: committed.last?.offset,
                resumedAll: resumedAll)
        }
        #expect(outcome.first)
        #expect(outcome.resumedAll)
        #expect(outcome.resumed == [4, 5, 6, 7, 8, 9])
        #expect(outcome.committed == 4)
        #expect(outcome.untouched == nil)
    }

    @Test func withResetErrorANewGroupReadsNothingAndSaysWhy() async throws {
        struct Outcome { var told: Bool, seen: Int }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 1)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", [(nil, "old", 0)])
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"], reset: .error)
            let told = pump([member]) { member.failures.contains { $0.isOffsetLost } }
            return Outcome(told: told, seen: member.seen.count)
        }
        #expect(outcome.told)
        #expect(outcome.seen == 0)
    }

    @Test func aShortPollLeavesTheDescriptorReadable() async throws {
        struct Outcome { var counts: [Int], position: Int64? }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 1)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", (0..<30).map { (nil, "v\($0)", 0) })
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            let zero = TopicPartition(topic: 0, partition: 0)
            var counts: [Int] = []
            while member.seen.count < 30, waitReadable(member.consumer.wakeFD) {
                let count = member.consumer.poll(max: 10)
                if count == 0 { continue }
                counts.append(count)
            }
            return Outcome(counts: counts, position: member.consumer.position(zero))
        }
        // The broker may have them in batches, and tell one of them first.
        #expect(outcome.counts.count >= 3 && outcome.counts.allSatisfy { $0 <= 10 }, "\(outcome.counts)")
        #expect(outcome.counts.reduce(0, +) == 30)
        #expect(outcome.position == 30)
    }

    @Test func aDeadClientIsReportedOnce() async throws {
        struct Outcome { var told: Bool, fatals: [KafkaError] }
        let outcome = try await offPool { () throws -> Outcome in
            let member = try Member("127.0.0.1:1", group: "g", topics: ["events"])
            rd_kafka_test_fatal_error(
                try member.native.raw, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, "fenced by a test")
            let told = pump([member]) { member.failures.contains { $0.isFatal } }
            _ = pump([member], seconds: 0.5) { false }
            return Outcome(told: told, fatals: member.failures.filter(\.isFatal))
        }
        #expect(outcome.told)
        #expect(outcome.fatals.map(\.name) == ["FENCED_INSTANCE_ID"])
    }
}
