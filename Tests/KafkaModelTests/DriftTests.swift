// SPDX-License-Identifier: Apache-2.0
import Kafka
import KafkaModel
import Support
import Testing

/// The same scenario over librdkafka with its own broker and over the model: what members and producers see is equal.
@Suite("The model does what librdkafka and its broker do", .timeLimit(.minutes(5)))
struct DriftTests {
    private static func compare(_ scenario: @escaping @Sendable (any DriftCluster) throws -> [String]) async throws {
        let model = try scenario(ModelCluster(world: ModelWorld()))
        let mock = try await offPool { try scenario(try MockCluster()) }
        #expect(model == mock)
        #expect(!model.isEmpty)
    }

    private static let values: [(key: String?, value: String?, partition: Int32?)] = (0..<24).map { index in
        (key: "user-\(index % 7)", value: index % 5 == 0 ? nil : "v\(index)", partition: nil)
    }

    @Test func recordsGoToTheSamePartitionsAndComeInTheSameOrder() async throws {
        try await Self.compare { cluster in
            try cluster.createTopic("events", partitions: 4)
            let reports = try cluster.send(Self.values + [(nil, "alone", 2)])
            let one = try cluster.member("one", [:])
            #expect(cluster.run([one]) { one.seen.count == 25 && one.ends.count == 4 })
            let ends = one.ends.sorted { $0.key < $1.key }.map { "\($0.key) ends at \($0.value)" }
            return reports + one.seen.byPartition + ends
        }
    }

    @Test func recordsSettledBeyondTheCommitAreKnownToTheNextMember() async throws {
        try await Self.compare { cluster in
            try cluster.createTopic("events", partitions: 1)
            _ = try cluster.send((0..<8).map { (nil, "v\($0)", 0) })
            let one = try cluster.member("one", [:])
            one.settlesAll = false
            #expect(cluster.run([one]) { one.seen.count == 8 })
            one.settle([0, 1, 3, 6])
            one.consumer.beginClose()
            #expect(cluster.run([one]) { one.isClosed })
            let two = try cluster.member("two", [:])
            #expect(cluster.run([two]) { two.seen.count == 4 && two.skipped.count == 2 })
            let learned = two.learned.map { "\($0.partition) at \($0.offset ?? -1)" }
            return one.revocations.map { "\($0.partitions) \($0.lost)" } + learned + two.seen + two.skipped
        }
    }

    @Test func recordsComeAgainAfterACrash() async throws {
        try await Self.compare { cluster in
            try cluster.createTopic("events", partitions: 2)
            _ = try cluster.send((0..<10).map { (nil, "v\($0)", Int32($0 % 2)) })
            var one: GroupMember? = try cluster.member("one", [:])
            one?.settlesAll = false
            #expect(cluster.run([one].compactMap { $0 }) { one?.seen.count == 10 })
            one?.settle([0, 1])
            #expect(cluster.run([one].compactMap { $0 }) { one?.commits.isEmpty == false })
            let commits = one?.commits.first?.offsets.sorted { $0.partition < $1.partition } ?? []
            cluster.crash(&one)
            let two = try cluster.member("two", [:])
            #expect(cluster.run([two]) { two.seen.count == 6 })
            return commits.map { "\($0.partition) \($0.offset ?? -1)" } + two.seen.byPartition
        }
    }

    @Test func twoMembersShareAndHandOver() async throws {
        try await Self.compare { cluster in
            try cluster.createTopic("events", partitions: 4)
            _ = try cluster.send((0..<12).map { (nil, "v\($0)", Int32($0 % 4)) })
            let one = try cluster.member("one", [:])
            #expect(cluster.run([one]) { one.seen.count == 12 })
            let two = try cluster.member("two", [:])
            #expect(
                cluster.run([one, two]) {
                    one.consumer.assignment.count == 2 && two.consumer.assignment.count == 2
                })
            _ = try cluster.send((12..<24).map { (nil, "v\($0)", Int32($0 % 4)) })
            #expect(cluster.run([one, two]) { one.seen.count + two.seen.count >= 24 })
            // The mock sometimes needs a second round.
            let revoked = one.revocations.prefix(1).map { "revoked \($0.partitions.count) lost \($0.lost)" }
            one.consumer.beginClose()
            #expect(cluster.run([one, two]) { one.isClosed && two.consumer.assignment.count == 4 })
            let last = one.revocations.last.map { "at the end \($0.partitions.count) lost \($0.lost)" }
            return revoked + [last ?? "none"] + (one.seen + two.seen).byPartition
        }
    }

    @Test func anEndBelowTheCommittedOffsetBeginsANewEpoch() async throws {
        try await Self.compare { cluster in
            try cluster.createTopic("events", partitions: 1)
            let one = try cluster.member("one", [:])
            one.commitsAt = 60
            #expect(cluster.run([one]) { one.commits.contains { $0.error == nil } })
            one.consumer.beginClose()
            #expect(cluster.run([one]) { one.isClosed })
            _ = try cluster.send((0..<4).map { (nil, "v\($0)", 0) })
            let two = try cluster.member("two", [:])
            #expect(cluster.run([two]) { two.seen.count == 4 })
            return two.restarts.map { "due \($0.due) at \($0.at)" } + two.seen
        }
    }
}

/// A cluster in which a scenario runs.
private protocol DriftCluster {
    func createTopic(_ name: String, partitions: Int) throws
    func member(_ name: String, _ options: [String: String]) throws -> GroupMember
    func producer() throws -> KafkaProducer
    func run(_ members: [GroupMember], until condition: () -> Bool) -> Bool
    func takeReports(_ producer: KafkaProducer, until condition: () -> Bool, _ visit: (DeliveryReport) -> Void) -> Bool
    /// Ends the member's process without a word.
    func crash(_ member: inout GroupMember?)
}

extension DriftCluster {
    /// Writes to `events`, and tells where each record went.
    fileprivate func send(_ records: [(key: String?, value: String?, partition: Int32?)]) throws -> [String] {
        let producer = try producer()
        let topic = try #require(producer.topic("events"))
        for (index, record) in records.enumerated() {
            let outcome = producer.produce(
                to: topic, keyBytes: record.key.map { Array($0.utf8) }, valueBytes: record.value.map { Array($0.utf8) },
                partition: record.partition, opaque: UInt64(index))
            #expect(outcome == .queued)
        }
        var reports: [DeliveryReport] = []
        #expect(takeReports(producer, until: { reports.count == records.count }) { reports.append($0) })
        return reports.sorted { $0.opaque < $1.opaque }.map {
            "\($0.opaque) to \($0.partition): \($0.error?.code ?? 0)"
        }
    }
}

private struct ModelCluster: DriftCluster {
    let world: ModelWorld

    func createTopic(_ name: String, partitions: Int) { world.model.createTopic(name, partitions: partitions) }

    func member(_ name: String, _ options: [String: String]) throws -> GroupMember {
        try world.member(name, options: options)
    }

    func producer() throws -> KafkaProducer { try world.producer() }

    func run(_ members: [GroupMember], until condition: () -> Bool) -> Bool { world.run(until: condition) }

    func takeReports(
        _ producer: KafkaProducer, until condition: () -> Bool, _ visit: (DeliveryReport) -> Void
    ) -> Bool {
        world.run {
            producer.pollReports(max: 100, visit)
            return condition()
        }
    }

    func crash(_ member: inout GroupMember?) {
        if let member { world.crash(member.name) }
        member = nil
    }
}

/// librdkafka and its own broker.
private struct MockCluster: DriftCluster {
    let broker: MockBroker

    init() throws { broker = try MockBroker() }

    func createTopic(_ name: String, partitions: Int) throws { try broker.createTopic(name, partitions: partitions) }

    func member(_ name: String, _ options: [String: String]) throws -> GroupMember {
        var all = ["session.timeout.ms": "6000", "heartbeat.interval.ms": "500", "fetch.wait.max.ms": "10"]
        all.merge(options) { $1 }
        let configuration = KafkaConfiguration(brokers: broker.bootstrap, group: "g", options: all)
        return GroupMember(name, try KafkaConsumer(configuration, topics: ["events"]))
    }

    func producer() throws -> KafkaProducer { try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap)) }

    func run(_ members: [GroupMember], until condition: () -> Bool) -> Bool {
        for _ in 0..<3000 {
            if condition() { return true }
            for member in members {
                member.consumer.wait(timeoutMs: 10)
                member.consumer.poll(max: 100)
                member.consumer.commitChanges()
            }
        }
        return false
    }

    func takeReports(
        _ producer: KafkaProducer, until condition: () -> Bool, _ visit: (DeliveryReport) -> Void
    ) -> Bool {
        while !condition() { if !producer.flush(timeoutMs: 15_000, visit) { return false } }
        return true
    }

    /// Its last reference goes, so its session ends.
    func crash(_ member: inout GroupMember?) { member = nil }
}
