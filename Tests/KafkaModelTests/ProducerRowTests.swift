// SPDX-License-Identifier: Apache-2.0
import Kafka
import KafkaModel
import Testing

/// The real `KafkaProducer` over the model.
@Suite("Producers over the model")
struct ProducerRowTests {
    private final class Reports {
        var all: [DeliveryReport] = []
        var opaques: [UInt64] { all.map(\.opaque) }
    }

    private static func world(_ change: (inout KafkaModelSettings) -> Void = { _ in }) -> ModelWorld {
        var settings = KafkaModelSettings()
        change(&settings)
        let world = ModelWorld(settings)
        world.model.createTopic("out", partitions: 3)
        return world
    }

    private static func send(_ producer: KafkaProducer, _ count: Int, key: String? = "k") throws {
        let topic = try #require(producer.topic("out"))
        for index in 0..<count {
            let outcome = producer.produce(
                to: topic, keyBytes: key.map { Array($0.utf8) }, valueBytes: Array("v\(index)".utf8),
                opaque: UInt64(index) + 1)
            #expect(outcome == .queued)
        }
    }

    private static func run(_ world: ModelWorld, _ producer: KafkaProducer, _ count: Int) -> Reports {
        let reports = Reports()
        world.run(600) {
            producer.pollReports(max: 100) { reports.all.append($0) }
            return reports.all.count == count
        }
        return reports
    }

    private static func values(_ world: ModelWorld) -> [String] {
        (0..<3).flatMap { world.model.records("out", $0) }.map { String(decoding: $0.value ?? [], as: UTF8.self) }
    }

    @Test func `another cluster receives nothing that was sent to the former one`() throws {
        let world = Self.world()
        let producer = try world.producer()
        try Self.send(producer, 3)
        #expect(world.model.nextNanos != nil)
        world.model.becomeOther("mirror")
        #expect(world.model.nextNanos == nil && world.model.committed("g", "out", 0) == nil)
        _ = Self.run(world, producer, 3)
        #expect(Self.values(world).isEmpty)
    }

    @Test func recordsOfOneKeyStayInOrderAndEachHasOneReport() throws {
        let world = Self.world()
        let producer = try world.producer()
        try Self.send(producer, 100)
        let reports = Self.run(world, producer, 100)
        #expect(reports.opaques == Array(1...100))
        #expect(reports.all.map(\.offset) == (0..<100).map { $0 })
        #expect(Self.values(world) == (0..<100).map { "v\($0)" })
        #expect(producer.pendingCount == 0)
    }

    @Test(arguments: [true, false])
    func aLostAnswerRepeatsRecordsOnlyWithoutIdempotence(isIdempotent: Bool) throws {
        let world = Self.world { settings in
            settings.lostWriteAnswers = 0.4
            settings.lostWrites = 0.2
        }
        let producer = try world.producer(options: ["enable.idempotence": "\(isIdempotent)"])
        let topic = try #require(producer.topic("out"))
        let reports = Reports()
        for index in 0..<50 {
            _ = producer.produce(to: topic, keyBytes: [1], valueBytes: Array("v\(index)".utf8))
            world.run(60) {
                producer.pollReports(max: 100) { reports.all.append($0) }
                return reports.all.count == index + 1
            }
        }
        let values = Self.values(world)
        #expect(Set(values).count == 50)
        #expect((values.count == 50) == isIdempotent)
    }

    @Test func aFullQueueTakesNothing() throws {
        let world = Self.world()
        let producer = try world.producer(options: ["queue.buffering.max.messages": "3"])
        try Self.send(producer, 3)
        let topic = try #require(producer.topic("out"))
        #expect(producer.produce(to: topic, keyBytes: nil, valueBytes: [1]) == .queueFull)
        _ = Self.run(world, producer, 3)
        #expect(producer.produce(to: topic, keyBytes: nil, valueBytes: [1]) == .queued)
    }

    @Test func aRefusedRecordComesBackWithItsContents() throws {
        let world = Self.world()
        world.model.refuse("out", code: 29)
        let producer = try world.producer()
        try Self.send(producer, 2)
        let reports = Self.run(world, producer, 2)
        #expect(reports.all.map { $0.error?.code } == [29, 29])
        #expect(reports.all.first?.failedRecord?.value == Array("v0".utf8))
    }

    @Test func onlyTheRecordThatIsTooLargeFails() throws {
        let world = Self.world()
        world.model.limitRecords("out", bytes: 10)
        let producer = try world.producer()
        let topic = try #require(producer.topic("out"))
        for (index, size) in [1, 20, 2].enumerated() {
            _ = producer.produce(
                to: topic, keyBytes: [1], valueBytes: Array(repeating: 7, count: size), opaque: UInt64(index))
        }
        let reports = Self.run(world, producer, 3)
        #expect(reports.all.map { $0.error?.isTooLarge ?? false } == [false, true, false])
    }

    @Test func aRecordThatNoBrokerTakesInTimeFails() throws {
        let world = Self.world()
        world.model.setDown(0, true)
        let producer = try world.producer(options: ["message.timeout.ms": "5000"])
        try Self.send(producer, 2)
        let reports = Self.run(world, producer, 2)
        #expect(reports.all.map { $0.error?.code } == [-192, -192])
    }

    @Test func aFailedProducerGivesItsRecordsBackWhenItIsPurged() throws {
        let world = Self.world()
        let producer = try world.producer()
        try Self.send(producer, 3)
        for client in world.model.producers(of: world.host("producer")) { client.fail(code: 45) }
        #expect(producer.fatalError?.code == 45)
        let topic = try #require(producer.topic("out"))
        #expect(producer.produce(to: topic, keyBytes: nil, valueBytes: [1]) != .queued)
        world.run(5)
        producer.purge()
        let reports = Self.run(world, producer, 3)
        #expect(reports.all.allSatisfy { $0.failedRecord != nil })
        #expect(producer.pendingCount == 0)
    }
}
