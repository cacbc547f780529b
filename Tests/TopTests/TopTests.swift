// SPDX-License-Identifier: Apache-2.0
import Console
import Foundation
import JSON
import Testing

@testable import Fleet
@testable import Top

/// Two looks at workers, as `/metrics` and `/statusz` would have told them.
enum Looks {
    static func look(
        _ address: String, at seconds: Double, _ metrics: String, status: String = #"{"ready":true,"shards":[{}]}"#
    ) throws -> WorkerLook {
        WorkerLook(
            address: address, atNanos: UInt64(seconds * 1e9),
            answer: .facts(
                MetricsPage(Array(metrics.utf8)),
                StatusFacts(try JSONTree(parsing: Array(status.utf8)))))
    }

    static func away(_ address: String, _ why: String) -> WorkerLook {
        WorkerLook(address: address, atNanos: 0, answer: .away(why))
    }
}

@Suite struct MetricsPageTests {
    @Test(
        arguments: [
            ("carillon_pending_events 3", 3), ("carillon_pending_events{} 3.5e1 1700000000000", 35),
            ("# TYPE carillon_pending_events gauge\ncarillon_pending_events{a=\"b\"} 1\ncarillon_pending_events 2", 3),
            // Not this name, no number, no end of a label, more than a line may hold.
            ("carillon_pending_events_more 3", nil), ("carillon_pending_events x", nil),
            ("carillon_pending_events NaN\ncarillon_pending_events +Inf", nil), ("carillon_pending_events", nil),
            ("carillon_pending_events{a=\"b 3", nil), ("carillon_pending_events{a} 3", nil), ("", nil),
            ("\n\n{} 1", nil),
            ("carillon_pending_events{\(String(repeating: "a=\"b\",", count: 40))} 3", nil),
        ] as [(String, Double?)])
    func aSeriesIsReadOrPassedOver(text: String, sum: Double?) {
        #expect(MetricsPage(Array(text.utf8)).sum("carillon_pending_events") == sum)
    }

    @Test func aLabelsEscapesAreUndone() {
        let text = #"carillon_ready_not 1"# + "\n" + #"carillon_breaker_state{app="a\"}\\ b",scope="x\ny"} 2"#
        let series = MetricsPage(Array(text.utf8)).series(FleetMetrics.breaker)
        #expect(series.first?["app"] == #"a"}\ b"# && series.first?["scope"] == "x\ny" && series.first?.value == 2)
    }

    @Test func endlessSeriesAreCut() {
        let text = String(repeating: "carillon_pending_events 1\n", count: 30_000)
        #expect(MetricsPage(Array(text.utf8)).sum("carillon_pending_events") == 20_000)
    }

    /// What is read under another name than it is exported would be missing in silence.
    @Test func everyNameIsOneThatWorkersExport() throws {
        let root = #filePath.dropLast("/Tests/TopTests/TopTests.swift".count)
        let list = try ["metrics.txt", "metrics-cluster.txt"]
            .map { try String(contentsOfFile: root + "/deploy/monitoring/" + $0, encoding: .utf8) }.joined()
        let exported = Set(list.split(separator: "\n").compactMap { $0.split(separator: " ").first.map(String.init) })
        for name in FleetMetrics.all {
            #expect(exported.contains(name), "\(name)")
        }
    }
}

@Suite struct FleetViewTests {
    private static func view(_ now: [WorkerLook], after before: [WorkerLook] = []) -> FleetView {
        FleetView(now, after: before, wallSeconds: 1_000_000)
    }

    @Test func ratesAreOfAllWorkersThatCountOn() throws {
        let before = [
            try Looks.look("a", at: 10, "process_start_time_seconds 1\ncarillon_events_consumed_total 100"),
            try Looks.look("b", at: 10, "process_start_time_seconds 1\ncarillon_events_consumed_total 1000"),
            try Looks.look("c", at: 10, "process_start_time_seconds 1\ncarillon_events_consumed_total 5"),
            Looks.away("d", "refused"),
        ]
        let now = [
            try Looks.look("a", at: 12, "process_start_time_seconds 1\ncarillon_events_consumed_total 120"),
            // Begun anew: its counter is another one.
            try Looks.look("b", at: 12, "process_start_time_seconds 11\ncarillon_events_consumed_total 2000"),
            Looks.away("c", "refused"),
            try Looks.look("d", at: 12, "process_start_time_seconds 1\ncarillon_events_consumed_total 9"),
        ]
        let view = Self.view(now, after: before)
        #expect(view.consumedRate == 10 && view.settledRate == nil && view.intervalSeconds == 2)
        #expect(view.workers.map(\.state) == [.ready, .ready, .away, .ready])
        #expect(Self.view(now).consumedRate == nil && Self.view(now).intervalSeconds == nil)
    }

    @Test func backpressureIsAShareOfTheShardsTime() throws {
        func page(_ redis: Double, _ window: Double) -> String {
            """
            process_start_time_seconds 1
            carillon_backpressure_seconds_total{cause="redis"} \(redis)
            carillon_backpressure_seconds_total{cause="window"} \(window)
            carillon_backpressure_seconds_total{cause="breaker"} 7
            """
        }
        let status = #"{"ready":true,"shards":[{},{}]}"#
        let view = Self.view(
            [try Looks.look("a", at: 14, page(13, 5.2), status: status)],
            after: [try Looks.look("a", at: 10, page(10, 5), status: status)])
        #expect(view.limits.map(\.cause) == ["redis", "window"])
        #expect(abs(view.limits[0].share - 0.375) < 1e-9 && abs(view.limits[1].share - 0.025) < 1e-9)
    }

    @Test func theLagIsReportedByTopicOrAsAWhole() throws {
        let old = Self.view([try Looks.look("a", at: 1, "carillon_kafka_lag_records 7")])
        #expect(old.lags == [FleetView.Lag(topic: nil, records: 7)])
        let page = """
            carillon_kafka_lag_records{topic="im.events"} 7
            carillon_kafka_lag_seconds{topic="im.events"} 1.5
            carillon_kafka_lag_records{topic="im.user-state"} 1
            """
        let both = Self.view([try Looks.look("a", at: 1, page), try Looks.look("b", at: 1, page)])
        #expect(
            both.lags == [
                FleetView.Lag(topic: "im.events", records: 14, seconds: 1.5),
                FleetView.Lag(topic: "im.user-state", records: 2),
            ])
    }

    @Test func quantilesAreOfTheIntervalOnly() throws {
        func page(_ counts: [Int]) -> String {
            let bounds = ["0.1", "0.2", "1", "+Inf"]
            let buckets = zip(bounds, counts).map {
                "carillon_push_latency_seconds_bucket{app=\"im\",le=\"\($0)\"} \($1)"
            }
            return (["process_start_time_seconds 1"] + buckets).joined(separator: "\n")
        }
        let before = try Looks.look("a", at: 1, page([1000, 1000, 1000, 1000]))
        let after = try Looks.look("a", at: 2, page([1040, 1080, 1100, 1100]))
        let spread = try #require(Self.view([after], after: [before]).pushLatency)
        #expect(abs(spread.p50 - 0.125) < 1e-9 && abs(spread.p99 - 0.96) < 1e-9)
        // Beyond the last bound there is no number but the bound, and of nothing there is none.
        let slow = try Looks.look("a", at: 2, page([1000, 1000, 1000, 1010]))
        #expect(Self.view([slow], after: [before]).pushLatency?.p99 == 1)
        #expect(
            Self.view([before], after: [try Looks.look("a", at: 0, page([1000, 1000, 1000, 1000]))]).pushLatency == nil)
    }

    @Test func reasonsAreThoseOfTheIntervalTheMostFrequentFirst() throws {
        func page(_ ok: Int, _ bad: Int, _ dnd: Int) -> String {
            """
            process_start_time_seconds 1
            carillon_decisions_total{app="im",verdict="accepted",reason="ok"} \(ok)
            carillon_decisions_total{app="im",verdict="rejected",reason="BadDeviceToken"} \(bad)
            carillon_decisions_total{app="im",verdict="suppressed",reason="dnd"} \(dnd)
            """
        }
        let first = try Looks.look("a", at: 1, page(9, 1, 8))
        let second = try Looks.look("a", at: 2, page(20, 5, 8))
        let view = Self.view([second], after: [first])
        #expect(view.outcomes.map(\.reason) == ["BadDeviceToken"] && view.outcomes.first?.rate == 4)
        #expect(view.verdictRates.map(\.verdict) == ["accepted", "rejected", "suppressed"])
        // Where there is no rate, or nothing came meanwhile, what was counted since the start.
        let idle = Self.view([try Looks.look("a", at: 3, page(30, 5, 8))], after: [second])
        #expect(idle.outcomes.map(\.reason) == ["dnd", "BadDeviceToken"])
        #expect(idle.outcomes.allSatisfy { $0.rate == nil })
        #expect(Self.view([first]).outcomes.map(\.reason) == ["dnd", "BadDeviceToken"])
    }

    @Test func clientsAreSummedOverWorkersAndTheWorstBreakerCounts() throws {
        let page = """
            carillon_apns_connections{app="im",env="production",credential="main",state="ready"} 2
            carillon_apns_connections{app="im",env="production",credential="main",state="opening"} 5
            carillon_inflight_pushes{app="im",env="production",credential="main"} 10
            carillon_concurrency_limit{app="im",env="production",credential="main"} 40
            carillon_breaker_state{app="im",env="production",credential="main",scope="app"} 0
            carillon_breaker_state{app="im",env="production",credential="main",scope="token"} 2
            carillon_credential_expiry_timestamp_seconds{app="im",credential="main"} 1086400
            carillon_credential_replacement_refused{app="im",credential="main"} 1
            carillon_credential_replacement_refused{app="other",credential="main"} 0
            """
        let one = try Looks.look("a", at: 1, page)
        let other = try Looks.look("b", at: 1, page.replacing("scope=\"token\"} 2", with: "scope=\"token\"} 1"))
        let client = try #require(Self.view([one, other]).clients.first)
        #expect(Self.view([one, other]).clients.count == 1)
        #expect(client.connections == 4 && client.inFlight == 20 && client.limit == 80 && client.breaker == 2)
        #expect(client.daysLeft == 1 && !client.isPaused && client.isReplacementRefused && client.isTroubled)
    }

    @Test func laggingPartitionsAreListedSlowestFirst() throws {
        func status(_ partitions: String) -> String { #"{"ready":true,"shards":[{"partitions":[\#(partitions)]}]}"# }
        let one = status(
            #"{"topic":"t","partition":1,"unsettled":0,"lag":0,"paused":false},"#
                + #"{"topic":"t","partition":2,"unsettled":3,"oldest_s":0.5,"lag":9,"paused":false}"#)
        let other = status(
            #"{"topic":"t","partition":3,"unsettled":1,"oldest_s":40,"paused":true},"#
                + #"{"topic":"t","partition":4,"unsettled":0,"lag":900,"paused":false},{}"#)
        let view = Self.view([
            try Looks.look("a", at: 1, "", status: one), try Looks.look("b", at: 1, "", status: other),
        ])
        #expect(view.slowest.map(\.partition) == [3, 2, 4])
        let text = TopText.lines(view, width: 200).map(\.text).joined(separator: "\n")
        #expect(
            text.contains("t[3], 40 s old, paused   t[2] 9 records behind, 500 ms old   t[4] 900 records behind"),
            "\(text)")
    }

    @Test func redisNodesAreListedOnceWithRatesTroubledOnesFirst() throws {
        func page(_ moved: Int, _ timeouts: Int) -> String {
            """
            process_start_time_seconds 1
            carillon_redis_redirects_total{code="moved",node="a:1"} \(moved)
            carillon_redis_redirects_total{code="ask",node="a:1"} 2
            carillon_redis_errors_total{code="timeout",node="b:2"} \(timeouts)
            """
        }
        let good = #"{"place":"redis://a:1/0","node":"a:1","ready":true,"waiting":3}"#
        let away = #"{"place":"redis://b:2/0","node":"b:2","ready":false,"waiting":0,"fault":"refused"}"#
        let status = #"{"ready":true,"shards":[{"redis_nodes":[\#(good),\#(away)]},{"redis_nodes":[\#(good),{}]}]}"#
        let first = [try Looks.look("a", at: 1, page(5, 1), status: status)]
        let second = [try Looks.look("a", at: 3, page(9, 7), status: status)]
        let nodes = Self.view(second, after: first).redisNodes
        #expect(nodes.map(\.place) == ["?", "redis://b:2/0", "redis://a:1/0"])
        #expect(nodes[1].connected == 0 && nodes[1].shards == 1)
        #expect(nodes[1].why == "refused" && nodes[1].errorRate == 3)
        #expect(nodes[2].connected == 2 && nodes[2].waiting == 6)
        #expect(nodes[2].redirectRate == 2 && nodes[2].errorRate == 0)
        // Without a look before there is no rate, and of one server there never is: its row has it.
        #expect(Self.view(first).redisNodes.allSatisfy { $0.errorRate == nil && $0.redirectRate == nil })
        let text = TopText.lines(Self.view(second, after: first), width: 200).map(\.text).joined(separator: "\n")
        for words in [
            "redis://b:2/0   0 of 1 shards connected   0 commands wait   3/s errors   refused",
            "redis://a:1/0   2 of 2 shards connected   6 commands wait   2/s redirected or deferred",
        ] {
            #expect(text.contains(words), "\(words)\n\(text)")
        }
        let tree = try JSONTree(parsing: Array(TopJSON.line(Self.view(second, after: first), atMs: 7).utf8))
        let node = tree["redis"]?["nodes"]?[2]
        #expect(node?["place"]?.string == "redis://a:1/0" && node?["connected"]?.int == 2)
        #expect(node?["redirects_per_s"]?.double == 2 && node?["fault"] == nil)
    }

    @Test func oneServerHasNoRowOfItsOwn() throws {
        let status =
            #"{"ready":true,"shards":[{"redis_ready":true,"redis_nodes":[{"place":"redis://a:1/0","ready":true}]}]}"#
        let view = Self.view([try Looks.look("a", at: 1, "", status: status)])
        let lines = TopText.lines(view, width: 200).map(\.text)
        #expect(lines.contains { $0.contains("1 of 1 shards connected") })
        #expect(!lines.contains { $0.contains("redis://") })
        #expect(view.redisNodes == [FleetView.RedisNode(place: "redis://a:1/0", connected: 1, shards: 1)])
    }

    @Test func lanesHaveTheirOwnLatencies() throws {
        func page(_ direct: Int) -> String {
            """
            process_start_time_seconds 1
            carillon_event_end_to_end_seconds_bucket{lane="direct",le="0.1"} \(direct)
            carillon_event_end_to_end_seconds_bucket{lane="direct",le="+Inf"} \(direct)
            carillon_event_end_to_end_seconds_count{lane="direct"} \(direct)
            carillon_event_end_to_end_seconds_bucket{lane="bulk",le="0.1"} 4
            carillon_event_end_to_end_seconds_bucket{lane="bulk",le="+Inf"} 4
            carillon_event_end_to_end_seconds_count{lane="bulk"} 4
            """
        }
        let view = Self.view([try Looks.look("a", at: 2, page(100))], after: [try Looks.look("a", at: 1, page(0))])
        // Nothing came in the other lane meanwhile.
        let text = TopText.lines(view, width: 200).map(\.text)
        #expect(text.contains("lanes       direct 50 ms (p50), 99 ms (p99)"), "\(text)")
        let tree = try JSONTree(parsing: Array(TopJSON.line(view, atMs: 7).utf8))
        #expect(tree["lanes"]?.array?.count == 1 && tree["lanes"]?[0]?["lane"]?.string == "direct")
        #expect(tree["lanes"]?[0]?["p50_s"]?.double == 0.05)
    }

    @Test func aStatusOfAnyFormIsRead() throws {
        for text in ["{}", "[]", "3", #"{"shards":7,"missing":{"a":1},"notes":[1,null,"n"],"ready":"yes"}"#] {
            let view = Self.view([try Looks.look("a", at: 1, "", status: text)])
            #expect(view.workers.map(\.state) == [.notReady], "\(text)")
        }
        let draining = #"{"ready":false,"draining":true,"shards":[{"redis_ready":false,"redis_fault":"refused"}]}"#
        let view = Self.view([try Looks.look("a", at: 1, "", status: draining)])
        #expect(view.workers.first?.state == .draining && view.redisFaults == ["refused"] && view.redisReady == 0)
    }
}
