// SPDX-License-Identifier: Apache-2.0
import JSON
import Kafka
import LocalServers
import Processes
import StageWords
import Support
import Testing
import Worker

/// `carillon dlq` against a broker, and a worker that takes what it brings back.
struct DLQTests {
    /// One dead letter, as the worker writes it.
    private struct Letter {
        var key: String? = "k"
        var value: String
        var error = BadRecord(.unknownApp, "unknown app", at: "$.app", byte: 26).header
        var topic: String? = "im.events"
        var offset = 0
        var headers: [KafkaHeader] = []
        var atMs: Int64
    }

    private static func write(_ letters: [Letter], to world: LocalCluster) throws {
        let writer = try KafkaTopicWriter(world.kafka, topic: "push.dead-letter")
        for letter in letters {
            var headers = letter.headers + [KafkaHeader(name: "carillon-error", text: letter.error)]
            if let topic = letter.topic { headers.append(KafkaHeader(name: "carillon-topic", text: topic)) }
            headers.append(KafkaHeader(name: "carillon-partition", text: "0"))
            headers.append(KafkaHeader(name: "carillon-offset", text: String(letter.offset)))
            let refused = Array((letter.key ?? "").utf8).withUnsafeBytes { key in
                Array(letter.value.utf8).withUnsafeBytes { value in
                    writer.write(
                        key: letter.key == nil ? nil : key, value: value, headers: headers, partition: 0,
                        timestampMs: letter.atMs)
                }
            }
            if let refused { throw refused }
        }
        guard writer.finish() else { throw SetupFault("the broker took too long") }
    }

    private static func message(_ id: String, app: String = "im") -> String {
        Line.message(id, to: ["d1"]).text.replacing(#""app":"im""#, with: "\"app\":\"\(app)\"")
    }

    private static func run(_ world: LocalCluster, _ words: String...) async throws -> CommandRun {
        let path = try world.writeConfiguration()
        return try await offPool { try CommandRun(words: ["dlq"] + words + ["--config", path]) }
    }

    /// Four that would be taken today (one twice), one that would not, one that leads elsewhere.
    private static func fill(_ world: LocalCluster, at nowMs: Int64 = nowMs) throws {
        let trace = KafkaHeader(name: "trace", text: "t1")
        try write(
            [
                Letter(value: message("a"), offset: 1, headers: [trace], atMs: nowMs - 7_300_000),
                Letter(value: message("a"), offset: 1, headers: [trace], atMs: nowMs - 7_300_000),
                Letter(key: nil, value: message("b"), offset: 2, atMs: nowMs - 60_000),
                Letter(value: message("c", app: "gone"), offset: 3, atMs: nowMs - 50_000),
                Letter(value: message("d"), topic: "push.results", offset: 4, atMs: nowMs - 40_000),
                Letter(
                    value: "{\u{1b}[2J", error: "bad_event: \u{1b}[31mred at $, byte 0", topic: "im.user-state",
                    offset: 5, atMs: nowMs - 30_000),
            ], to: world)
    }

    @Test func theyAreCountedByCauseAndShownWhole() async throws {
        let world = try await LocalCluster()
        let empty = try await Self.run(world, "list")
        #expect(empty.code == 0 && empty.output == "push.dead-letter holds none\n", "\(empty.errors)")
        let filledMs = nowMs
        try Self.fill(world, at: filledMs)
        let list = try await Self.run(world, "list", "--json")
        let groups = try list.lines.map { try JSONTree(parsing: Array($0.utf8)) }
        #expect(list.code == 0 && groups.map { $0["count"]?.int } == [3, 1, 1, 1], "\(list.output)")
        #expect(groups[0]["cause"]?.string == "unknown app" && groups[0]["path"]?.string == "$.app")
        #expect(groups[0]["topic"]?.string == "im.events" && groups[0]["accepted_today"]?.int == 3)
        let gone = try #require(groups.first { $0["app"]?.string == "gone" })
        #expect(gone["accepted_today"]?.int == 0 && gone["rule_today"]?.string == "unknown_app")
        let people = try await Self.run(world, "list")
        #expect(people.output.contains("6 dead letters") && people.output.contains("unknown app at $.app"))
        #expect(people.output.contains(" to 2 h old"))
        #expect(people.output.contains("would be refused today (unknown_app)"))
        #expect(!people.output.contains("\u{1b}") && people.output.contains(#"\u001b[31mred"#), "\(people.output)")

        let show = try await Self.run(world, "show", "--reason", "red")
        #expect(show.code == 0 && show.output.contains("push.dead-letter 0:5") && !show.output.contains("\u{1b}"))
        #expect(show.output.contains("from     im.user-state partition 0 offset 5"), "\(show.output)")
        #expect(show.output.contains("refused (broken_json)") || show.output.contains("refused (broken_string)"))
        let one = try await Self.run(world, "show", "--at", "0:0", "--json")
        let letter = try JSONTree(parsing: Array(one.output.utf8))
        #expect(one.lines.count == 1 && letter["value"]?["msg_id"]?.string == "a")
        #expect(letter["headers"]?[0]?[0]?.string == "trace" && letter["source_offset"]?.int == 1)
        let none = try await Self.run(world, "show", "--at", "0:99")
        #expect(none.code == 1 && none.errors.contains("contains none of them"))
        let late = try await Self.run(world, "list", "--json", "--from", "time:\(filledMs - 45_000)")
        #expect(late.lines.count == 2, "\(late.output)")
        // Only the stored settings could make it right.
        let dnd = Line.state("settings", "d1", #""dnd":{"on":true,"start":"22:00"}"#).text
        let windowless = Letter(
            value: dnd, error: BadRecord.missingWindow.header, topic: "im.user-state", atMs: filledMs)
        try Self.write([windowless], to: world)
        let stored = try await Self.run(world, "list", "--json", "--from", "time:\(filledMs - 1)")
        #expect(stored.output.contains(#""accepted_today":0"#), "\(stored.output)")
        await world.close()
    }

    @Test func theyGoBackToWhereTheyCameFromOnlyWhereTheyWouldBeTaken() async throws {
        let world = try await LocalCluster()
        try Self.fill(world)
        // Without a reason it says what it would do.
        for words in [["--app", "im"], ["--reason", "unknown app", "--dry-run"]] {
            let path = try world.writeConfiguration()
            let plan = try await offPool { try CommandRun(words: ["dlq", "redrive", "--config", path] + words) }
            #expect(plan.code == 0 && plan.output.contains("2 would go to im.events"), "\(plan.output)\(plan.errors)")
            #expect(plan.errors.contains("--yes") == (words.count == 2))
        }
        #expect(try world.records(of: "im.events").isEmpty)
        let run = try await Self.run(world, "redrive", "--reason", "unknown_app", "--json")
        let report = try JSONTree(parsing: Array(run.output.utf8))
        #expect(run.code == 0 && report["written"]?["im.events"]?.int == 2, "\(run.output)\(run.errors)")
        #expect(report["refused_again"]?["unknown_app"]?.int == 1 && report["repeats"]?.int == 1)
        #expect(report["without_topic"]?.int == 1)
        let records = try world.records(of: "im.events").sorted { ($0.key?.count ?? 0) > ($1.key?.count ?? 0) }
        #expect(records.count == 2 && records.first?.headers == ["trace": "t1"] && records.last?.key == nil)
        let texts = records.map { String(decoding: $0.value ?? [], as: UTF8.self) }
        #expect(texts.map { $0.contains(#""msg_id":"a""#) } == [true, false])
        #expect(try world.records(of: "push.results").isEmpty && world.records(of: "push.dead-letter").count == 6)

        let limited = try await Self.run(world, "redrive", "--limit", "1", "--yes")
        #expect(limited.code == 0 && limited.output.contains("1 selected, 1 written to im.events"), "\(limited.output)")
        let bad = try await Self.run(world, "redrive", "--app", "gone", "--bad-too", "--yes")
        #expect(bad.code == 0 && bad.output.contains("1 written to im.events"), "\(bad.output)")
        let wrong = try await Self.run(world, "redrive", "--at", "0:4", "--to", "not.there")
        #expect(wrong.code == 1 && wrong.errors.contains("topic not.there does not exist"), "\(wrong.errors)")
        #expect(try world.records(of: "im.events").count == 4)
        await world.close()
    }

    /// A bind on the wrong topic is refused by the worker, brought to the right one, and applied.
    @Test func aWorkerTakesWhatIsBroughtBack() async throws {
        try await Stage.with { stage in
            let world = stage.world
            try await stage.play(events: [.bind("d1")])
            #expect(try world.records(of: "push.dead-letter").count == 1)
            let back = try await Self.run(world, "redrive", "--reason", "wrong_topic", "--to", "user-state")
            #expect(
                back.code == 0 && back.output.contains("1 written to im.user-state"), "\(back.output)\(back.errors)")
            try await until("the bind is applied") {
                try await stage.metric("carillon_user_state_total", #"outcome="applied""#) == 1
            }
            // What was brought back the stage has not written, so that its count of settled records is no measure.
            try await stage.writeEvents([.message("m1", to: ["d1"])])
            try await until("the message is pushed") {
                try await stage.look().results.contains {
                    $0["uid"]?.string == "d1" && $0["verdict"]?.string == "accepted"
                }
            }
        }
    }
}
