// SPDX-License-Identifier: Apache-2.0
import JSON
import Kafka
import StageWords
import Testing
import VirtualStage
import Worker

/// Records and topics that are legal at a broker, and that no careful producer or operator would make.
@Suite struct OddKafkaTests {
    private static let events = Configuration.Topics().events
    private static let results = Configuration.Topics().results

    // MARK: Times

    @Test(arguments: [1000, nil] as [Int64?])
    func `a message with a Kafka time in seconds, or of 1, is pushed, and its topic is named`(divisor: Int64?) throws {
        try Stage.with { stage in
            try stage.play(state: [.bind("u")])
            var line = Line.message("odd", to: ["u"])
            line.timestampMs = divisor.map { nowMs / $0 } ?? 1
            let seen = try stage.play(events: [line])
            #expect(seen.outcomes(of: "odd") == ["u/phone accepted ok 1"])
            let latency = try #require(seen.result(of: "odd")?["latency_ms"]?.int)
            #expect(latency < 60_000)
            #expect(
                try stage.page("/readyz").text.contains(
                    "kafka: degraded: Kafka times of im.events are not in milliseconds"))
            #expect(try stage.metric("carillon_kafka_odd_times_total", #"topic="im.events""#) == 1)
            #expect(try stage.metric("carillon_kafka_odd_times_total", #"topic="im.user-state""#) == 0)
        }
    }

    @Test func `a read with a Kafka time of 1 has its effect`() throws {
        try Stage.with { stage in
            try stage.play(state: [.bind("u")])
            var line = Line.read("u", #""up_to_ms":\#(nowMs)"#)
            line.timestampMs = 1
            let earlier = nowMs - 1000
            try stage.play(state: [line])
            let seen = try stage.play(events: [.message("before", to: ["u"], sentMs: earlier)])
            #expect(seen.outcomes(of: "before").first?.contains("already_read") == true)
        }
    }

    @Test func `a phone waits for its desktop again after a restart if nobody knows when its message came`() throws {
        try Stage.bare(.oneShard) { stage in
            try stage.redis([
                Gateway.lease("gw-e"), Gateway.presence("u", "pc", platform: "pc", gateway: "gw-e"),
            ])
            try stage.writeState([
                .bind("u"), .ack("u", "pc", ["held"]),
                .state("settings", "u", #""push_when_desktop_online":false,"hold_s":25"#),
            ])
            let first = try stage.startWorker(waits: false)
            try stage.awaitState(first)
            var line = Line.message("held", to: ["u"])
            line.timestampMs = 1
            try stage.writeEvents([line])
            _ = try stage.look(until: "the desktop is done") { $0.outcomes(of: "held") == ["u/pc online acked"] }
            #expect(try stage.stop(first))
            let second = try stage.startWorker(waits: false)
            try stage.awaitState(second)
            stage.wait(.seconds(10))
            #expect(try stage.look().accepted(token("u", "phone")).isEmpty)
            let pushed = try stage.look(until: "the phone is pushed") { !$0.accepted(token("u", "phone")).isEmpty }
            #expect(pushed.accepted(token("u", "phone")).count == 1)
            stage.kill(second)
        }
    }

    // MARK: Markers

    @Test func `a transactional producer causes neither an alarm nor a lasting lag`() throws {
        try Stage.with { stage in
            try stage.play(state: [.bind("u")])
            for turn in 0..<3 {
                try stage.writeEvents([.message("m\(turn)", to: ["u"], conv: "c", seq: Int64(turn))])
                // The commit marker.
                let partition = stage.kafka.partition(of: Array("c".utf8), in: Self.events)
                stage.kafka.skipOffsets(Self.events, partition, count: 1)
                stage.wait(.seconds(2))
            }
            stage.wait(.seconds(20))
            #expect(try stage.look().results.count == 3)
            #expect(try stage.metric("carillon_kafka_gap_records_total") == 0)
            #expect(try stage.metric("carillon_kafka_lag_records", #"topic="im.events""#) == 0)
            #expect(try stage.page("/readyz").text.hasPrefix("kafka: ok\n"))
        }
    }

    // MARK: New partitions

    @Test func `partitions that no client has noticed are told, until the group reads them`() throws {
        try Stage.with { stage in
            stage.wait(.seconds(60))
            #expect(try stage.page("/readyz").text.hasPrefix("kafka: ok\n"))
            stage.kafka.addPartitions(4, to: Self.events)
            try until("/readyz names the topic") {
                stage.wait(.seconds(1))
                return try stage.page("/readyz").text.contains(
                    "kafka: degraded: im.events has 8 partitions, and the group reads 4 of them")
            }
            // The group forms again.
            try stage.startWorker(waits: false)
            try until("the group reads them") {
                stage.wait(.seconds(1))
                return try stage.page("/readyz").text.hasPrefix("kafka: ok\n")
            }
        }
    }

    // MARK: Results that are too large

    @Test func `a result above the topic's limit loses its reason, then goes to the dead letters`() throws {
        try Stage.with { stage in
            try stage.play(state: [.bind("u")])
            stage.kafka.limitRecords(Self.results, bytes: 170)
            try stage.play(events: [.message("short", to: ["nobody"])])
            let values = stage.records(of: Self.results).compactMap {
                $0.value.map { String(decoding: $0, as: UTF8.self) }
            }
            let short = try #require(values.first { $0.contains(#""msg_id":"short""#) })
            #expect(!short.contains("reason") && short.contains(#""uid":"nobody","verdict":"suppressed""#))
            #expect(
                try stage.page("/readyz").text.contains("kafka: degraded: push.results: a result exceeds the topic's"))
            stage.kafka.limitRecords(Self.results, bytes: 20)
            let seen = try stage.play(events: [.message("letter", to: ["u"])])
            let letter = try #require(seen.letters.first)
            #expect(letter.headers["carillon-topic"] == Self.results)
            #expect(letter.headers["carillon-error"] == "too_large: exceeds max.message.bytes of push.results")
            #expect(letter.value.map { String(decoding: $0, as: UTF8.self) }?.contains(#""msg_id":"letter""#) == true)
            #expect(try stage.page("/readyz").text.contains("it goes to the dead-letter topic"))
        }
    }

    // MARK: Groups

    @Test func `a worker of a second group on the same Redis ends and names the first`() throws {
        try Stage.with(.oneShard) { stage in
            try stage.play(state: [.bind("u")], events: [.message("m", to: ["u"])])
            let second = try stage.startWorker(group: "other", waits: false)
            try until("it ends") { second.seat.hasFailed }
            let log = try stage.logText()
            #expect(log.contains("another consumer group uses the same Redis"))
            #expect(log.contains(#""group":"other","other":"carillon""#))
            #expect(try stage.look().pushes.count == 1, "it has pushed nothing")
        }
    }
}
