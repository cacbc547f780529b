// SPDX-License-Identifier: Apache-2.0
import Kafka
import Support
import Testing

@Suite("Producer", .timeLimit(.minutes(10)))
struct ProducerTests {
    @Test func aRecordTheBrokerRefusesIsReportedAndOthersGoThrough() async throws {
        let reports = try await offPool { () throws -> [DeliveryReport] in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 1)
            let producer = try KafkaProducer(
                KafkaConfiguration(brokers: broker.bootstrap, options: ["enable.idempotence": "false"]))
            // 87: INVALID_RECORD, which no retry mends.
            broker.pushErrors(api: .produce, [87])
            let first = try write(producer, "events", [(nil, "bad", 0)])
            let second = try write(producer, "events", [(nil, "good", 0)])
            return [first[1], second[1]].compactMap(\.self)
        }
        try #require(reports.count == 2)
        #expect(reports[0].error?.code == 87)
        #expect(reports[0].error?.name == "INVALID_RECORD")
        #expect(reports[0].offset == nil)
        #expect(reports[1].error == nil)
    }

    @Test func aPassingErrorIsRetriedUnseen() async throws {
        let reports = try await offPool { () throws -> [UInt64: DeliveryReport] in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 1)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            // 7: REQUEST_TIMED_OUT, 6: NOT_LEADER.
            broker.pushErrors(api: .produce, [7, 6, 7])
            return try write(producer, "events", (0..<50).map { ("k\($0)", "v", nil) })
        }
        #expect(reports.count == 50)
        #expect(reports.values.filter { $0.error != nil }.isEmpty)
    }

    @Test func aFullQueueIsAnOutcomeAndNothingBlocks() throws {
        let producer = try KafkaProducer(
            KafkaConfiguration(brokers: "127.0.0.1:1", options: ["queue.buffering.max.messages": "10"]))
        let topic = try #require(producer.topic("events"))
        var outcomes: [ProduceOutcome] = []
        for _ in 0..<12 { outcomes.append(producer.produce(to: topic, keyBytes: nil, valueBytes: [1])) }
        #expect(outcomes.prefix(10).allSatisfy { $0 == .queued })
        #expect(outcomes.suffix(2).allSatisfy { $0 == .queueFull })
        #expect(producer.pendingCount >= 10)
    }

    @Test func anUnwritableRecordIsRefusedAtOnce() throws {
        let producer = try KafkaProducer(
            KafkaConfiguration(brokers: "127.0.0.1:1", options: ["message.max.bytes": "1000"]))
        let topic = try #require(producer.topic("events"))
        let large = [UInt8](repeating: 0, count: 2000)
        let header = KafkaHeader(name: "h", text: "freed by the refusal")
        let outcome = producer.produce(to: topic, keyBytes: nil, valueBytes: large, headers: [header])
        guard case .refused(let error) = outcome else { throw Broken("\(outcome)") }
        #expect(error.name == "MSG_SIZE_TOO_LARGE")
        #expect(producer.topic("") == nil)
        #expect(producer.topic("a\0b") == nil)
        #expect(producer.topic("events") === topic)
    }

    @Test func reportsComeInPartsOfTheWantedSize() async throws {
        let parts = try await offPool { () throws -> [Int] in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 1)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            guard let topic = producer.topic("events") else { throw Broken("no topic") }
            for index in 0..<25 {
                _ = producer.produce(to: topic, keyBytes: nil, valueBytes: [1], opaque: UInt64(index))
            }
            var parts: [Int] = []
            var seen: Set<UInt64> = []
            while seen.count < 25, waitReadable(producer.wakeFD) {
                let taken = producer.pollReports(max: 10) { seen.insert($0.opaque) }
                if taken > 0 { parts.append(taken) }
            }
            return parts
        }
        #expect(parts.reduce(0, +) == 25)
        #expect(parts.allSatisfy { $0 <= 10 })
    }

    @Test func equalKeysMeetTheSamePartitionAsWithTheJavaClient() async throws {
        let reports = try await offPool { () throws -> [UInt64: DeliveryReport] in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 10)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            return try write(producer, "events", [("kafka", "1", nil), ("kafka", "2", nil), ("abc", "3", nil)])
        }
        #expect(reports[1]?.partition == reports[2]?.partition)
        // murmur2("kafka") = 0xd067cf64, murmur2("abc") = 0x1c94f5af; the low 31 bits modulo 10.
        #expect(reports[1]?.partition == Int32(0x5067_cf64 % 10))
    }
}
