// SPDX-License-Identifier: Apache-2.0
import JSON
import Kafka
import LocalServers
import Processes
import Simulator
import StageWords
import Support
import Testing
import Worker

/// Brokers that go and come, members that go and come.
@Suite struct KafkaFaultTests {
    @Test func aBrokerThatGoesAwayUnderLoadLosesNothing() async throws {
        try await Stage.with { stage in
            let crowd = Crowd(name: "broker", count: 400)
            try await stage.play(state: crowd.binds)
            try await stage.writeEvents(crowd.messages)
            try stage.world.broker.setDown(broker: 1)
            try await Task.sleep(for: .seconds(2), tolerance: .zero)
            try stage.world.broker.setUp(broker: 1)
            try await until("everyone has a result") {
                let seen = try await stage.look()
                return Set(seen.results.compactMap { $0["uid"]?.string }).count == crowd.count
            }
            let seen = try await stage.look()
            crowd.expectOnceEach(
                seen, "work in hand ends, and its records are written when the broker is back",
                mayBeToldAgain: try await stage.metric("carillon_kafka_rebalances_total") > 0)
        }
    }

    /// The broker refuses the offset that is due, as one does after its topic was created again: all is read from the oldest
    /// record, and what was finished before is not repeated.
    @Test func aPartitionThatBeginsAgainIsReadWholeAndNothingIsRepeated() async throws {
        try await Stage.with { stage in
            let crowd = Crowd(name: "epoch", count: 60)
            try await stage.play(state: crowd.binds, events: crowd.messages)
            let before = try await stage.look()
            // 1: OFFSET_OUT_OF_RANGE, for a fetch of each consumer.
            stage.world.broker.pushErrors(api: .fetch, Array(repeating: 1, count: 12))
            try await until("a partition began again") {
                try await stage.metric("carillon_kafka_partition_restarts_total") > 0
            }
            stage.world.broker.clearErrors(api: .fetch)
            try await until("/readyz shows it") {
                let page = try await stage.page("/readyz")
                return page.status == 200 && page.text.contains("kafka: degraded: began again at a lower offset")
            }
            #expect(try stage.logText().contains("a partition began again at a lower offset"))
            try await stage.writeEvents([.message("epoch-new", to: ["epoch-0"])])
            try await until("the next message is out") { !(try await stage.look()).outcomes(of: "epoch-new").isEmpty }
            let after = try await stage.look()
            #expect(after.results.count == before.results.count + 1 && after.doubled.isEmpty)
        }
    }

    /// The worker is a process of its own: a client whose broker is away may outlive its owner.
    @Test func theEndComesWithinItsTimeWhileNoBrokerAnswers() async throws {
        var settings = Self.membersComeAndGo
        settings.drainSeconds = 6
        try await Stage.bare(settings) { stage in
            let crowd = Crowd(name: "outage", count: 400)
            try await stage.writeState(crowd.binds)
            let worker = try await WorkerRun(stage)
            try await worker.awaitState()
            try await stage.writeEvents(crowd.messages)
            try await until("somebody is pushed") {
                crowd.accepted(await stage.world.simulator.entries).contains { $0 > 0 }
            }
            try stage.world.broker.setDown(broker: 1)
            // Only the limit `drain_s` can end it: nothing becomes settled while no broker answers.
            let code = try await worker.drain()
            #expect(try code != nil && worker.logText.contains(#""drained":false"#))
            try stage.world.broker.setUp(broker: 1)
        }
    }

    /// With a short session, since the mock's group waits for one at each beginning.
    @Test func unreachableBrokersAreReportedAndNotTakenForAnEmptyTopic() async throws {
        try await Stage.with(Self.membersComeAndGo) { stage in
            try await until("the lag is known") {
                try await stage.page("/metrics").text.contains("carillon_kafka_lag_records{")
            }
            let before = try await stage.metric("carillon_kafka_errors_total")
            try stage.world.broker.setDown(broker: 1)
            try await until("/readyz tells of it") {
                let page = try await stage.page("/readyz")
                return page.status == 503 && page.text.contains("kafka: down: ")
                    && page.text.contains("no broker answers")
            }
            #expect(try await stage.page("/livez").status == 200)
            #expect(try await stage.metric("carillon_ready", #"part="kafka""#) == 0)
            #expect(try await stage.metric("carillon_kafka_errors_total") > before, "told by what readiness is told by")
            try await until("the statistics tell it") {
                try await stage.metric("carillon_kafka_broker_up", #"broker="1""#) == 0
            }
            try stage.world.broker.setUp(broker: 1)
            try await Self.awaitReady(stage)
            try await until("the statistics tell that it is back") {
                try await stage.metric("carillon_kafka_broker_up", #"broker="1""#) == 1
            }
        }
    }

    private static func awaitReady(_ stage: Stage) async throws {
        var last = ""
        do {
            try await until("/readyz is 200") {
                let page = try await stage.page("/readyz")
                last = page.text
                return page.status == 200
            }
        } catch {
            throw SetupFault("\(error): \(last)")
        }
    }

    /// The records stay in the topic: what was committed of them is nobody's lag.
    @Test func afterARestartWithEverythingCommittedThereIsNoLag() async throws {
        try await Stage.with(Self.membersComeAndGo) { stage in
            let crowd = Crowd(name: "kept", count: 40)
            try await stage.play(state: crowd.binds, events: crowd.messages)
            #expect(await stage.stop(try await stage.worker))
            try await stage.startWorker()
            try await until("the lag is known") {
                try await stage.page("/metrics").text.contains(#"carillon_kafka_lag_records{topic="im.events"}"#)
            }
            // The mock refuses commits while a group joins, which Kafka does not: such records are read once more.
            try await until("there is none") {
                let lag = try await (
                    stage.metric("carillon_kafka_lag_records"), stage.metric("carillon_kafka_lag_seconds")
                )
                return lag.0 == 0 && lag.1 == 0
            }
        }
    }

    @Test func membersShareTheWorkAndOneMayLeaveInTheMiddle() async throws {
        try await Stage.with(Self.membersComeAndGo) { stage in
            let first = try await stage.worker
            let second = try await stage.startWorker()
            let crowd = Crowd(name: "members", count: 1000)
            try await stage.play(state: crowd.binds)
            try await stage.writeEvents(Array(crowd.messages.prefix(500)))
            #expect(await stage.stop(first), "the one that leaves drains")
            try await stage.writeEvents(Array(crowd.messages.suffix(500)))
            try await until("the other takes all partitions") { await Self.partitions(second) == 8 }
            try await until("everyone is pushed") {
                !crowd.accepted(await stage.world.simulator.entries).contains(0)
            }
            #expect(await stage.stop(second))
            let seen = try await stage.look()
            crowd.expectOnceEach(seen, "nothing lost, nothing doubled")
            let committed = try await stage.committedRecords(of: Configuration.Topics().events)
            // The mock refuses commits while a group joins, which Kafka does not: less may be committed than is settled,
            // never more. That all is committed without faults, `KillTests` shows.
            #expect(committed <= crowd.count)
        }
    }

    private static var membersComeAndGo: LocalCluster.Settings {
        var settings = LocalCluster.Settings()
        settings.sessionMs = LocalCluster.Settings.shortSessionMs
        return settings
    }

    private static func partitions(_ worker: WorkerProcess) async -> Int {
        await worker.status().shards.reduce(0) { $0 + $1.assignedPartitions }
    }
}

extension Stage {
    /// The sum of what the group has committed, which is how many records of a topic it will not read again.
    nonisolated func committedRecords(of topic: String) async throws -> Int {
        var client = world.kafka
        client.group = "carillon"
        let configuration = client
        return try await offPool {
            let partitions = try KafkaGroupLag(configuration, topics: [topic]).measure(timeoutMs: 30_000)
            return partitions.reduce(0) { $0 + Int($1.committed ?? 0) }
        }
    }
}
