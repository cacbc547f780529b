// SPDX-License-Identifier: Apache-2.0
import Dispatch
import Kafka
import Support
import Telemetry
import Testing

@Suite("Broker faults", .timeLimit(.minutes(10)))
struct BrokerFaultTests {
    @Test func aBrokerThatComesBackIsUsedAgainAndNothingIsLost() async throws {
        struct Outcome { var before: Bool, stuck: Int, told: Bool, flushed: Bool, all: Bool, isFatal: Bool }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 2)
            let options = ["reconnect.backoff.ms": "50", "reconnect.backoff.max.ms": "200"]
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap, options: options))
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"], options: options)
            member.storesAll = true
            try write(producer, "events", (0..<10).map { (nil, "a\($0)", Int32($0 % 2)) })
            let before = pump([member]) { member.seen.count == 10 }
            try broker.setDown(broker: 1)
            guard let topic = producer.topic("events") else { throw Broken("no topic") }
            for index in 0..<10 {
                _ = producer.produce(to: topic, keyBytes: nil, valueBytes: Array("b\(index)".utf8))
            }
            let told = pump([member]) { !member.failures.isEmpty }
            let stuck = producer.pendingCount
            try broker.setUp(broker: 1)
            let flushed = producer.flush(timeoutMs: 60_000) { _ in }
            let all = pump([member]) { Set(member.seen.compactMap(\.value)).count == 20 }
            return Outcome(
                before: before, stuck: stuck, told: told, flushed: flushed, all: all,
                isFatal: producer.fatalError != nil)
        }
        #expect(outcome.before)
        #expect(outcome.told)
        #expect(outcome.stuck >= 10)
        #expect(outcome.flushed)
        #expect(outcome.all)
        #expect(!outcome.isFatal)
    }

    @Test func movedLeadersAndCoordinatorsAreFollowed() async throws {
        struct Outcome { var before: Bool, after: Bool, committed: Bool }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try MockBroker(brokers: 3)
            try broker.createTopic("events", partitions: 1)
            try broker.setLeader(topic: "events", partition: 0, broker: 1)
            try broker.setCoordinator(group: "g", broker: 1)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            member.storesAll = true
            try write(producer, "events", [(nil, "a", 0)])
            let before = pump([member]) { member.seen.count == 1 }
            try broker.setLeader(topic: "events", partition: 0, broker: 2)
            try broker.setCoordinator(group: "g", broker: 3)
            try write(producer, "events", [(nil, "b", 0)])
            let after = pump([member]) { member.seen.contains { $0.value == "b" } }
            let committed = pump([member]) { member.committedTo(2) }
            return Outcome(before: before, after: after, committed: committed)
        }
        #expect(outcome.before)
        #expect(outcome.after)
        #expect(outcome.committed)
    }

    @Test func aRefusedCommitIsMadeUpForByALaterOne() async throws {
        let committed = try await offPool { () throws -> Bool in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 1)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            member.storesAll = true
            // 16: NOT_COORDINATOR, 15: COORDINATOR_NOT_AVAILABLE.
            broker.pushErrors(api: .offsetCommit, [16, 15])
            try write(producer, "events", [(nil, "a", 0)])
            return pump([member]) { member.committedTo(1) }
        }
        #expect(committed)
    }

    @Test func metadataNamesTopicsAndRecordsCarryTheirPlaceInTheSubscription() async throws {
        struct Outcome { var read: Bool, missing: Bool, partitions: [Int32]?, leaderless: [Int32]? }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 3)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", [(nil, "a", 0)])
            let metadata = try ClusterMetadata.fetch(
                KafkaConfiguration(brokers: broker.bootstrap), timeoutMs: 10_000)
            let member = try Member(broker.bootstrap, group: "g", topics: ["missing", "events"])
            let read = pump([member]) { member.seen.first?.partition.topic == 1 }
            return Outcome(
                read: read, missing: metadata.topic("missing") == nil,
                partitions: metadata.topic("events")?.partitions, leaderless: metadata.topic("events")?.leaderless)
        }
        #expect(outcome.missing)
        #expect(outcome.partitions == [0, 1, 2])
        #expect(outcome.leaderless == [])
        #expect(outcome.read)
    }

    @Test func aMemberCountsTheTopicsPartitionsWithoutBlocking() async throws {
        struct Counts {
            var all: Int?, unanswered: Int?
        }
        let counts = try await offPool { () throws -> Counts in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 3)
            try broker.createTopic("chunks", partitions: 2)
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            let alone = try Member("127.0.0.1:1", group: "g", topics: ["events"])
            return Counts(all: count(member, timeoutMs: 10_000), unanswered: count(alone, timeoutMs: 100))
        }
        #expect(counts.all == 5)
        #expect(counts.unanswered == nil)
    }

    private func count(_ member: Member, timeoutMs: Int) -> Int? {
        let answer = Guarded<Int??>(nil)
        let told = DispatchSemaphore(value: 0)
        member.consumer.countPartitions(of: ["events", "chunks"], timeoutMs: timeoutMs) { count in
            answer.withLock { $0 = .some(count) }
            told.signal()
        }
        told.wait()
        return answer.withLock { $0 } ?? nil
    }

    @Test func noBrokerAtAllIsAFaultWithinTheTimeout() async throws {
        let text = try await offPool { () throws -> String in
            do {
                _ = try ClusterMetadata.fetch(KafkaConfiguration(brokers: "127.0.0.1:1"), timeoutMs: 300)
                return "answered"
            } catch { return "\(error)" }
        }
        #expect(text.hasPrefix("listing topics failed"))
    }
}
