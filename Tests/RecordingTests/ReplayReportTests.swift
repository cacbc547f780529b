// SPDX-License-Identifier: Apache-2.0
import JSON
import Testing

@testable import Recording

/// A replay's report as people and programs read it.
@Suite struct ReplayReportTests {
    private static func report(_ fill: Fill = { _ in }) -> ReplayReport {
        var report = ReplayReport(file: "<b>in\u{1b}.ndjson", startedMs: 1_700_000_000_000)
        report.records = 4
        report.written = ["im.events": 3, "im.user-state": 1]
        report.writingSeconds = 2
        var worker = ReplayReport.Worker(group: "carillon")
        (worker.wanted, worker.settled, worker.expected, worker.answered) = (4, 4, 3, 3)
        worker.outcomes = ["accepted ok": 2, "suppressed <i>\"": 1]
        for ms in [3, 30, 300] as [Int64] { worker.fromWriting.add(ms) }
        fill(&worker)
        report.worker = worker
        for second in 0..<5 {
            report.add(
                ReplayReport.Sample(
                    seconds: Double(second), written: second * 10, settled: second * 9, outcomes: second * 8,
                    lag: Int64(second)))
        }
        return report
    }

    private typealias Fill = @Sendable (inout ReplayReport.Worker) -> Void

    private static let rows: [(Fill, Bool, String)] = [
        ({ _ in }, true, "everything is settled, nothing is lost, nothing is doubled"),
        ({ $0.settled = 3 }, false, "1 records are not settled"),
        ({ $0.lost = 2 }, false, "2 recipients are lost"),
        ({ ($0.lost, $0.deleted) = (2, 5) }, false, "2 recipients are lost; the brokers deleted 5 records before"),
        ({ $0.deleted = 5 }, true, "nothing is doubled; the brokers deleted 5 records before they were settled"),
        ({ $0.duplicates = 1 }, false, "1 pushes were accepted twice"),
        ({ $0.contradictions = 1 }, false, "1 recipients have two verdicts"),
        ({ $0.uninvited = 1 }, false, "1 users got messages that were not for them"),
        ({ $0.open = 1 }, true, "1 recipients are still in progress"),
        ({ ($0.repeats, $0.answered) = (3, 0) }, true, "all recipients are repeats"),
        ({ $0.repeats = 1 }, true, "1 recipients are repeats"),
        ({ ($0.unknown, $0.unknownWhy) = (2, "Redis is away") }, true, "2 recipients are unknown: Redis is away"),
    ]

    @Test(arguments: rows.indices) func theVerdictNamesWhatIsWrong(row: Int) throws {
        let (fill, succeeded, words) = Self.rows[row]
        let report = Self.report(fill)
        #expect(report.succeeded == succeeded)
        #expect(ReplayVerdict.sentence(report).contains(words))
        let json = try JSONTree(parsing: Array(report.json.utf8))
        #expect(json["well"]?.bool == succeeded && json["written"]?.int == 4 && json["worker"]?["wanted"]?.int == 4)
    }

    @Test func unwrittenOrStoppedWorkIsNotHealthy() {
        var report = Self.report()
        report.failures = ["_MSG_TIMED_OUT": 2]
        #expect(!report.succeeded && ReplayVerdict.sentence(report).contains("2 records were not written"))
        report = Self.report()
        report.isStopped = true
        #expect(!report.succeeded)
        report = Self.report()
        report.worker = nil
        report.unwatched = "no worker reads these topics"
        #expect(
            report.succeeded && ReplayVerdict.sentence(report) == "everything is written; no worker reads these topics")
    }

    @Test func `a page names date, build, machine and settings, and compares with an earlier run`() throws {
        var earlier = Self.report()
        earlier.writingSeconds = 4
        earlier.origin = ReportOrigin(startedMs: 1_700_000_000_000, version: "0.9", settings: ["rate 1"])
        var report = Self.report { $0.lost = 1 }
        report.origin = ReportOrigin(startedMs: 1_700_000_060_000, version: "1.0.0", settings: ["rate 2", "speed <2>"])
        let comparison = try ReportComparison(Array(earlier.json.utf8), of: "old.json", ReplayPage.figures)
        let page = ReplayPage(report, comparedBy: comparison).html
        #expect(page.contains("<p class=\"note\">2023-11-14 22:14 UTC, carillon 1.0.0 (") && page.contains("processor"))
        #expect(page.contains("<br>rate 2, speed &lt;2&gt;</p>"))
        #expect(page.contains("<td>records a second</td><td>1</td><td>2</td><td>+100 %</td>"), "\(page)")
        #expect(page.contains("<td>lost</td><td>0</td><td>1</td><td>–</td>"))
        #expect(page.contains("The earlier run: 2023-11-14 22:13 UTC, carillon 0.9 ("))
        #expect(page.contains("Its settings are others: rate 1."))
        earlier.origin?.settings = ["rate 2", "speed <2>"]
        let same = try ReportComparison(Array(earlier.json.utf8), of: "old.json", ReplayPage.figures)
        #expect(!ReplayPage(report, comparedBy: same).html.contains("settings are others"))
        #expect(!ReplayPage(Self.report()).html.contains("Compared"))
    }

    @Test(arguments: ["", "{}", "[1]", "no JSON", #"{"rate":"fast"}"#])
    func `what is no report is not compared with`(text: String) {
        #expect(throws: ReportComparison.Fault.self) {
            try ReportComparison(Array(text.utf8), of: "f", ReplayPage.figures)
        }
    }

    /// No address, no script, nothing of the outside's that is not escaped; every element is closed.
    @Test func thePageIsWholeInItself() {
        let page = ReplayPage(Self.report()).html
        for word in ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<b>in", "<i>\"", "\u{1b}"] {
            #expect(!page.contains(word), "\(word)")
        }
        #expect(page.contains("&lt;b&gt;in\\u001b.ndjson") && page.contains("suppressed &lt;i&gt;&quot;"))
        #expect(page.contains("prefers-color-scheme:dark") && page.contains("color-scheme:light dark"))
        for tag in ["svg", "table", "section", "figure", "main", "ul", "li", "tr", "td", "text"] {
            let opened = page.ranges(of: "<\(tag)>").count + page.ranges(of: "<\(tag) ").count
            #expect(opened > 0 && opened == page.ranges(of: "</\(tag)>").count, "\(tag)")
        }
        #expect(!page.contains("nan") && !page.contains("inf,"))
    }

    @Test func anEmptyReplaysPageHasNoPlots() {
        let page = ReplayPage(ReplayReport(file: "f", startedMs: 0)).html
        #expect(!page.contains("<svg") && page.contains("</html>"))
    }

    @Test func aLongRunKeepsABoundedNumberOfLooks() {
        var report = ReplayReport(file: "f", startedMs: 0)
        for second in 0..<100_000 {
            report.add(
                ReplayReport.Sample(seconds: Double(second), written: second, settled: 0, outcomes: 0, lag: nil))
        }
        #expect(report.samples.count <= ReplayReport.samplesMax)
        #expect(report.samples.first?.seconds == 0)
        #expect(zip(report.samples, report.samples.dropFirst()).allSatisfy { $0.seconds < $1.seconds })
    }

    @Test(arguments: [(0.5, 1.0), (1, 1), (1.5, 2), (3, 5), (7, 10), (11, 20), (1e15, 1e15)])
    func anAxisEndsAtARoundNumber(value: Double, end: Double) { #expect(Plot.ceiling(value) == end) }
}
