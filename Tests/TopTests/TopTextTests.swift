// SPDX-License-Identifier: Apache-2.0
import Console
import JSON
import Testing

@testable import Fleet
@testable import Top

@Suite struct TopTextTests {
    private static func view() throws -> FleetView {
        let page = """
            process_start_time_seconds 1
            carillon_events_consumed_total 100
            carillon_pending_events 12
            carillon_kafka_lag_records{topic="im.events"} 1234567
            carillon_kafka_lag_seconds{topic="im.events"} 75
            carillon_decisions_total{app="汉汉\u{1b}[31m",verdict="rejected",reason="\(String(repeating: "x", count: 200))"} 3
            carillon_apns_connections{app="im",env="production",credential="main",state="ready"} 0
            carillon_pending_pushes{app="im",env="production",credential="main"} 4
            """
        let status = #"{"ready":false,"missing":["no \u001b[2J partition"],"notes":["a note"],"shards":[{}]}"#
        let looks = [
            try Looks.look("127.0.0.1:1", at: 2, page, status: status), Looks.away("h:2", "Connection refused"),
        ]
        return FleetView(looks, after: [], wallSeconds: 0)
    }

    @Test(arguments: [1, 24, 30, 36, 60, 80, 120, 300])
    func noLineIsWiderThanTheTerminal(width: Int) throws {
        let lines = TopText.lines(try Self.view(), width: width)
        for line in lines { #expect(TopLayout.cells(line.text) <= max(width, 24), "\(width): \(line.text)") }
        let text = lines.map(\.text).joined(separator: "\n")
        for word in ["down", "away", "12 events in work", "queued", "im.events", "reasons"] {
            #expect(text.contains(word), "\(width) \(word)")
        }
        #expect(!text.contains("\u{1b}[2J") && !text.contains("\u{1b}[31m"))
    }

    @Test func downOrUnknownIsNotShownAsZero() throws {
        let page = """
            process_start_time_seconds 1
            carillon_kafka_assigned_partitions 0
            carillon_kafka_lag_records{topic="im.events"} 0
            carillon_dlq_records_total{reason="broken_json"} 3
            carillon_log_lines_dropped_total 28
            """
        let status = #"{"ready":false,"missing":["redis: down"],"notes":[],"shards":[{}]}"#
        let first = [try Looks.look("127.0.0.1:1", at: 2, page, status: status)]
        let second = [try Looks.look("127.0.0.1:1", at: 4, page, status: status)]
        let text = TopText.lines(FleetView(second, after: first, wallSeconds: 0), width: 120).map(\.text)
            .joined(separator: "\n")
        for words in [
            "what is down", "not known: no partition is assigned", "dead letter broken_json: 3 in all",
            "28 log lines lost",
        ] {
            #expect(text.contains(words), "\(words)\n\(text)")
        }
    }

    /// `rejected` is the verdict of a push that ended, so tries have another word.
    @Test func aTryThatAPNsDidNotAcceptIsRefusedAndNotRejected() throws {
        func look(at: Double, _ count: Int) throws -> WorkerLook {
            let page = ["accepted", "rejected", "refused", "ambiguous"].map {
                "carillon_push_attempts_total{app=\"im\",env=\"production\",result=\"\($0)\"} \(count)\n"
            }.joined()
            return try Looks.look("127.0.0.1:1", at: at, "process_start_time_seconds 1\n" + page)
        }
        let view = FleetView([try look(at: 4, 20)], after: [try look(at: 2, 0)], wallSeconds: 0)
        let text = TopText.lines(view, width: 200).map(\.text).joined(separator: "\n")
        for words in ["10/s accepted", "10/s refused", "10/s not processed", "10/s without an answer"] {
            #expect(text.contains(words), "\(words)\n\(text)")
        }
        #expect(!text.contains("rejected"))
    }

    @Test func itemsAreBrokenBetweenAndCutWhereTheyAreTooLong() {
        let items = ["one", "two", "汉汉汉", "a very long one that fits nowhere at all"].map { TopLayout.Item($0) }
        let lines = TopLayout.lines([TopLayout.Row(label: "label", items: items)], width: 36).map(\.text)
        #expect(
            lines == ["label       one   two   汉汉汉", "            a very long one that fi…"])
        let narrow = TopLayout.lines([TopLayout.Row(label: "label", items: items)], width: 24).map(\.text)
        #expect(narrow == ["label", "  one   two   汉汉汉", "  a very long one that …"])
    }

    @Test(
        arguments: [
            (0, "0"), (0.004, "0"), (0.25, "0.25"), (0.999, "1.0"), (1, "1"), (4.26, "4.3"), (9.96, "10"),
            (812.4, "812"),
            (9_999, "9999"), (9_999.7, "10.0k"), (12_440, "12.4k"), (999_960, "1.0M"), (3.14e6, "3.1M"), (7e9, "7.0G"),
            (1e300, "1000000000.0G"),
        ])
    func aNumberHasThreeDigits(value: Double, text: String) {
        #expect(FigureText.number(value) == text)
    }

    @Test(
        arguments: [
            (0, "0 ms"), (0.0004, "0.40 ms"), (0.0123, "12 ms"), (0.95, "950 ms"), (1.25, "1.3 s"), (75, "75 s"),
            (150, "2 min"), (1e300, "11574074 d"), (-5, "0 ms"),
        ])
    func aTimeHasAUnitThatFits(seconds: Double, text: String) {
        #expect(FigureText.duration(seconds) == text)
    }

    @Test func programsGetOneObjectWithoutWhatIsNotKnown() throws {
        let line = TopJSON.line(try Self.view(), atMs: 7)
        let tree = try JSONTree(parsing: Array(line.utf8))
        #expect(line.hasSuffix("}\n") && line.filter { $0 == "\n" }.count == 1)
        #expect(tree["workers"]?[0]?["state"]?.string == "not_ready" && tree["workers"]?[1]?["state"]?.string == "away")
        #expect(tree["interval_s"] == nil && tree["per_s"]?["consumed"] == nil && tree["pending_events"]?.double == 12)
        #expect(tree["lag"]?[0]?["seconds"]?.double == 75 && tree["apns"]?[0]?["queued"]?.double == 4)
    }
}
