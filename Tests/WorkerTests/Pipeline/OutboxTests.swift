// SPDX-License-Identifier: Apache-2.0
import Kafka
import Support
import Telemetry
import Testing

@testable import Worker

@Suite("Outbox", .timeLimit(.minutes(5)))
struct OutboxTests {
    /// OUT_OF_ORDER_SEQUENCE_NUMBER, after which an idempotent producer never writes again.
    private static let deadly: Int32 = 45

    @Test func recordsGoOutAfterTheirProducerDiedForGood() async throws {
        try await withOutbox { world in
            try await world.send(1)
            try await world.settled([1])
            world.broker.pushErrors(api: .produce, [Self.deadly])
            try await world.send(2)
            try await world.settled([2])
            try await world.send(3)
            try await world.settled([3])
            #expect(try await world.replacements == 1)
            #expect(await world.pendingCount == 0)
        }
    }

    @Test func recordsOfADeadProducerAreSentByItsSuccessor() async throws {
        try await withOutbox { world in
            try await world.send(0)
            try await world.settled([0])
            world.broker.pushErrors(api: .produce, [Self.deadly])
            let tags = Set(1...500 as ClosedRange<UInt64>)
            for tag in tags.sorted() { try await world.send(tag) }
            try await world.settled(tags)
            #expect(try await world.written() == tags.union([0]))
            #expect(try await world.replacements == 1)
        }
    }

    @Test func anImpossibleReplacementIsReported() async throws {
        try await withOutbox(replacementsMax: 0) { world in
            try await world.send(1)
            try await world.settled([1])
            world.broker.pushErrors(api: .produce, [Self.deadly])
            try await world.send(2)
            _ = try await world.facts.first { $0 == .failed }
            #expect(try await world.replacements == 0)
        }
    }

    @Test func aClusterThatKillsEachProducerIsReportedAfterFiveTries() async throws {
        try await withOutbox { world in
            world.broker.pushErrors(api: .produce, Array(repeating: Self.deadly, count: 100))
            try await world.send(1)
            _ = try await world.facts.first { $0 == .failed }
            #expect(try await world.replacements == 5)
        }
    }

    @Test func aRefusedRecordIsSentAgain() async throws {
        try await withOutbox(options: ["enable.idempotence": "false"]) { world in
            // 87: INVALID_RECORD, which the client does not try again by itself.
            world.broker.pushErrors(api: .produce, [87])
            try await world.send(1)
            try await world.settled([1])
            #expect(try await world.written() == [1])
            #expect(try await world.replacements == 0)
        }
    }
}

private func withOutbox(
    options: [String: String] = [:], replacementsMax: Int = .max, _ body: (OutboxWorld) async throws -> Void
) async throws {
    let world = try await OutboxWorld(options, replacementsMax: replacementsMax)
    do { try await body(world) } catch {
        await world.end()
        throw error
    }
    await world.end()
}

/// An outbox on a loop of its own, before a broker of its own.
private struct OutboxWorld {
    enum Fact: Equatable, Sendable {
        case settled(UInt64), failed
    }

    let broker: MockBroker
    let loop: TestLoop
    let facts = Facts<Fact>()
    let registry = MetricsRegistry()
    private let box = Box()

    init(_ options: [String: String], replacementsMax: Int) async throws {
        broker = try MockBroker()
        try broker.createTopic("push.results", partitions: 1)
        loop = try TestLoop("outbox")
        let configuration = KafkaConfiguration(
            brokers: broker.bootstrap, options: options.merging(["linger.ms": "1"]) { $1 })
        let (facts, registry, box) = (facts, registry, box)
        try await loop.run { me in
            var made = 0
            let producers = try OutProducers { _ throws(KafkaFault) in
                made += 1
                if made - 2 > replacementsMax { throw .wakeup(errno: 24) }
                return try KafkaProducer(configuration)
            }
            let topics = try OutTopics(Configuration.Topics(), producers: producers)
            box.topics = topics
            let outbox = Outbox(
                producers: producers, loop: me.loop, log: .off, metrics: OutboxMetrics(registry))
            try outbox.start(
                topics, didSettle: { facts.record(.settled($0)) }, didFail: { facts.record(.failed) })
            box.outbox = outbox
        }
    }

    func send(_ tag: UInt64) async throws {
        let box = box
        await loop.run { _ in box.send(tag) }
    }

    /// Waits until all of these were settled, each once.
    func settled(_ tags: Set<UInt64>) async throws {
        var missing = tags
        while !missing.isEmpty {
            guard case .settled(let tag) = try await facts.next() else { throw Wrong("a failure was told") }
            if missing.remove(tag) == nil { throw Wrong("\(tag) was settled twice, or before it was sent") }
        }
    }

    var pendingCount: Int? {
        get async {
            let box = box
            return await loop.run { _ in box.outbox?.pendingCount }
        }
    }

    var replacements: Int {
        get async throws {
            let line = String(decoding: registry.exposition(), as: UTF8.self).split(separator: "\n").first {
                $0.hasPrefix("carillon_kafka_producer_replacements_total ")
            }
            guard let word = line?.split(separator: " ").last, let count = Int(word) else { throw Wrong("no line") }
            return count
        }
    }

    /// The tags that the topic holds.
    func written() async throws -> Set<UInt64> {
        let brokers = broker.bootstrap
        return try await Task.detached {
            var tags: Set<UInt64> = []
            let reader = try KafkaTopicReader(KafkaConfiguration(brokers: brokers), topic: "push.results")
            _ = try reader.read { record in
                if let value = record.value, let tag = UInt64(String(decoding: value, as: UTF8.self)) {
                    tags.insert(tag)
                }
                return .goOn
            }
            return tags
        }.value
    }

    func end() async {
        let box = box
        await loop.run { _ in box.close() }
        await loop.end()
    }

    struct Wrong: Error, CustomStringConvertible {
        let description: String
        init(_ description: String) { self.description = description }
    }

    /// Touched on its loop only, hence unchecked.
    private final class Box: @unchecked Sendable {
        var outbox: Outbox?
        var topics: OutTopics?

        func send(_ tag: UInt64) {
            guard let topics else { return }
            outbox?.sendRaw(topics.results, key: [1], value: Array("\(tag)".utf8), headers: [], tag: tag)
        }

        func close() {
            outbox?.cancel()
            outbox = nil
        }
    }
}
