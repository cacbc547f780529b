// SPDX-License-Identifier: Apache-2.0
import APNs
import Foundation
import Kafka
import Telemetry
import Testing

@testable import Worker

/// What is exported before anything happened: a rate needs a first value.
@Suite struct FirstMetricsTests {
    private static func lines(_ registry: MetricsRegistry) -> [String] {
        String(decoding: registry.exposition(), as: UTF8.self).split(separator: "\n").map(String.init)
    }

    @Test func countersStandAtZeroFromTheStart() {
        let registry = MetricsRegistry()
        let metrics = PipelineMetrics(registry)
        let app = AppMetrics(registry, app: "im")
        let client = APNsMetrics(registry: registry, app: "im")
        let lines = Self.lines(registry)
        for line in [
            #"carillon_dlq_records_total{reason="wrong_type"} 0"#,
            #"carillon_kafka_errors_total{code="_ALL_BROKERS_DOWN"} 0"#,
            #"carillon_decisions_total{app="im",reason="ok",verdict="accepted"} 0"#,
            #"carillon_tokens_invalidated_total{app="im",reason="Unregistered"} 0"#,
            #"carillon_token_removals_withheld_total{app="im",reason="410"} 0"#,
            #"carillon_user_state_total{app="im",outcome="applied"} 0"#,
            #"carillon_user_state_total{app="im",outcome="stale"} 0"#,
            #"carillon_apns_goaway_total{app="im",reason="none"} 0"#,
            #"carillon_apns_goaway_total{app="im",reason="Shutdown"} 0"#,
        ] {
            #expect(lines.contains(line), "\(line)")
        }
        #expect(PipelineMetrics.boundsSeconds.contains(2), "the bound that is promised")
        withExtendedLifetime((metrics, app, client)) {}
    }

    @Test func theVersionIsTheTopmostOfTheChangelog() throws {
        let root = String(#filePath.dropLast("/Tests/WorkerTests/Process/FirstMetricsTests.swift".count))
        let text = try String(contentsOfFile: root + "/CHANGELOG.md", encoding: .utf8)
        let versions = text.split(separator: "\n").filter { $0.hasPrefix("## [") && !$0.contains("[Unreleased]") }
        let topmost = try #require(versions.first).dropFirst(4).prefix { $0 != "]" }
        #expect(WorkerProcess.version == topmost)
    }

    @Test func aTopicsLagHasNoSeriesBeforeItIsKnown() {
        let registry = MetricsRegistry()
        let metrics = PipelineMetrics(registry)
        #expect(!Self.lines(registry).contains { $0.hasPrefix("carillon_kafka_lag_") })
        metrics.lag(ofTopic: "im.events").set(GroupLag(records: 7, oldestMs: 1_000), nowMs: 3_500)
        let lines = Self.lines(registry)
        #expect(lines.contains(#"carillon_kafka_lag_records{topic="im.events"} 7"#))
        #expect(lines.contains(#"carillon_kafka_lag_seconds{topic="im.events"} 2.5"#))
        metrics.lag(ofTopic: "im.events").setUnknown()
        #expect(!Self.lines(registry).contains { $0.hasPrefix("carillon_kafka_lag_") }, "its partitions went elsewhere")
    }

    @Test func brokersAreNamedByIDIfThereIsOrWasAConnection() {
        var states = BrokerStates()
        func read(_ text: String) -> [Int64: Bool] { Array(text.utf8).withUnsafeBytes { states.read($0) } }
        let text = #"""
            {"name":"c","brokers":{"b:1/bootstrap":{"nodeid":-1,"state":"UP"},"b:1/1":{"nodeid":1,"state":"UP"},
            "b:2/2":{"nodeid":2,"state":"DOWN"},"b:3/3":{"nodeid":3,"state":"INIT"},"b:4/4":{"nodeid":4,"state":"UPDATE"},
            "b:5/5":{"nodeid":5,"state":"TRY_CONNECT"},"GroupCoordinator":{"nodeid":1,"state":"CONNECT"},"odd":[]},
            "topics":{}}
            """#
        #expect(read(text) == [1: true, 2: false, 4: true, 5: false])
        for wrong in ["", "{", #"{"brokers":7}"#] { #expect(read(wrong) == [:]) }
    }

    @Test func aBrokerIsUpIfAnyConsumerIsConnectedToIt() {
        let registry = MetricsRegistry()
        let (one, other) = (BrokerMetrics(registry), BrokerMetrics(registry))
        one.set(1, isUp: true)
        other.set(1, isUp: false)
        #expect(Self.lines(registry).contains(#"carillon_kafka_broker_up{broker="1"} 1"#))
        one.set(1, isUp: false)
        #expect(Self.lines(registry).contains(#"carillon_kafka_broker_up{broker="1"} 0"#))
    }

    @Test func errorsHaveTheirNamesAndBrokersABound() {
        let registry = MetricsRegistry()
        let (metrics, brokers) = (KafkaMetrics(registry), BrokerMetrics(registry))
        for _ in 0..<3 { metrics.failed(.queueFull) }
        for id in Int64(1)...60 { brokers.set(id, isUp: id % 2 == 0) }
        let lines = Self.lines(registry)
        #expect(lines.contains(#"carillon_kafka_errors_total{code="_QUEUE_FULL"} 3"#))
        #expect(lines.count { $0.hasPrefix("carillon_kafka_broker_up{") } == 50)
    }
}
