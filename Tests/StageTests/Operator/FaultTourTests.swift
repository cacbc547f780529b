// SPDX-License-Identifier: Apache-2.0
import LocalServers
import Simulator
import StageWords
import Testing
import VirtualStage
import Worker

/// Each of these faults is named on the page's first screen within a minute, with the runbook for it.
@Suite struct FaultTourTests {
    /// A fault, and what the page says of it.
    struct Fault: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// The heading of the card, without its state.
        let part: String
        let runbook: String
        /// Makes the fault, next to the messages of the tour.
        let begin: @Sendable (Stage) throws -> Void

        init(_ name: String, _ part: String, _ runbook: String, _ begin: @escaping @Sendable (Stage) throws -> Void) {
            testDescription = name
            self.part = part
            self.runbook = runbook
            self.begin = begin
        }
    }

    private static let crowd = Crowd(name: "tour", count: 60)

    static let faults = [
        Fault("Redis answers nothing", "Redis", "CarillonRedisDown") { $0.redis.freeze() },
        Fault("Redis is a replica", "Redis", "CarillonRedisRefusesWrites") { $0.redis.becomeReplica() },
        Fault("Redis was emptied", "Redis", "CarillonTokenLoss") { try $0.redis(["FLUSHALL"]) },
        Fault("Redis has an old snapshot", "Redis", "CarillonRedisOlderData") { stage in
            let snapshot = stage.redis.snapshot
            stage.wait(.seconds(20))
            // Otherwise the user state is applied again before anybody looks.
            for partition in 0..<stage.settings.partitions {
                stage.kafka.setLeaderless(Configuration.Topics().userState, partition, true)
            }
            stage.redis.restart(with: snapshot)
        },
        Fault("no broker answers", "Kafka", "CarillonNoAssignment") { stage in
            for broker in 0..<3 { stage.kafka.setDown(broker, true) }
        },
        Fault("the result topic takes no records", "Kafka", "CarillonRecordsRefused") { stage in
            stage.kafka.refuse(Configuration.Topics().results, code: 29)
        },
        Fault("a topic begins again at offset 0", "Kafka", "CarillonPartitionRestarted") { stage in
            stage.kafka.recreate(Configuration.Topics().events, keepsOffsets: true)
        },
        Fault("Kafka deleted records before they were read", "Kafka", "CarillonDataGap") { stage in
            for partition in 0..<stage.settings.partitions {
                let events = Configuration.Topics().events
                stage.kafka.skipOffsets(events, partition, count: 50)
                stage.kafka.trim(events, partition, to: stage.kafka.range(events, partition).upperBound)
            }
        },
        Fault("APNs cannot be reached", "im production", "CarillonApnsUnreachable") { _ = $0.takeAPNsDown() },
        Fault("APNs is unavailable", "im production", "CarillonBreakerOpen") {
            $0.answerPushes(ScenarioAnswer(503, "ServiceUnavailable"))
        },
        Fault("APNs refuses the key", "im production", "CarillonAuthRejected") {
            $0.answerPushes(ScenarioAnswer(403, "InvalidProviderToken"))
        },
        Fault("the topic is another app's", "im production", "CarillonMisconfigured") {
            $0.answerPushes(ScenarioAnswer(400, "TopicDisallowed"))
        },
        Fault("APNs calls the tokens bad", "im production", "CarillonMassInvalidation") {
            $0.answerPushes(ScenarioAnswer(400, "BadDeviceToken"))
        },
        Fault("a producer writes what is no JSON", "Events", "CarillonDeadLetters") { stage in
            try stage.writeEvents((0..<20).map { Line(key: Array("tour-\($0)".utf8), value: Array("{\"v\":1".utf8)) })
        },
        Fault("messages come too late", "Events", "CarillonLossBurn") { stage in
            try stage.writeEvents(
                (0..<20).map {
                    .message("late-\($0)", to: [crowd.uid($0)], #","expire_at_ms":\#(nowMs - 1000)"#)
                })
        },
        Fault("this machine's clock is ten minutes ahead", "Clock", "CarillonClockWrong") {
            try $0.worker.setClock(aheadMs: 600_000)
        },
    ]

    @Test(arguments: faults) func theFirstScreenNamesTheFaultWithinAMinute(fault: Fault) throws {
        try Stage.with { stage in
            try stage.play(state: Self.crowd.binds, events: [.message("before", to: [Self.crowd.uid(0)])])
            // The counts of keys before a loss.
            stage.wait(.seconds(15))
            #expect(try stage.page("/").text.contains("All is well."))
            try fault.begin(stage)
            try stage.writeEvents(Self.crowd.messages)
            let runbook = "runbooks#\(fault.runbook.lowercased())"
            try stage.until("the page names it", within: .seconds(60)) {
                stage.wait(.seconds(1))
                return try Self.cards(of: stage.page("/").text).contains {
                    $0.contains("\(fault.part): ") && $0.contains(runbook)
                }
            }
        }
    }

    private static func cards(of page: String) -> [Substring] {
        Array(page.split(separator: #"<div class="card "#).dropFirst())
    }
}
