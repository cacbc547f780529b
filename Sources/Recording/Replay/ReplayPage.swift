// SPDX-License-Identifier: Apache-2.0
internal import Telemetry

/// The report of a replay as one HTML page with inline style and plots, without scripts or external parts, for light
/// and dark mode.
public struct ReplayPage {
    private let report: ReplayReport
    private let comparison: ReportComparison?

    public init(_ report: ReplayReport, comparedBy comparison: ReportComparison? = nil) {
        self.report = report
        self.comparison = comparison
    }

    /// The figures that two runs are compared by.
    public static let figures: [ReportComparison.Figure] = [
        .init("records a second", "rate"), .init("seconds in all", "seconds_all"),
        .init("written → outcome, p50 ms", "worker", "latency_ms", "written_to_outcome", "p50"),
        .init("written → outcome, p99 ms", "worker", "latency_ms", "written_to_outcome", "p99"),
        .init("accepted, since Kafka's time, p99 ms", "worker", "latency_ms", "accepted_in_worker", "p99"),
        .init("recipients with an outcome", "worker", "recipients", "with_outcome"),
        .init("lost", "worker", "recipients", "lost"), .init("duplicates", "worker", "duplicates"),
    ]

    public var html: String {
        ReportPage.html(
            title: "Replay of \(report.file)",
            heading: "Replay of <code>\(HTMLText.escaped(report.file))</code>", verdict: ReplayVerdict.sentence(report),
            succeeded: report.succeeded, origin: report.origin,
            body: [tiles, comparison?.html(report.json) ?? "", flow, lag, outcomes, latencies, recipients, failures]
                .joined(separator: "\n"))
    }

    // MARK: Parts

    private var tiles: String {
        var tiles = [
            ("written", ReportPage.number(report.writtenCount)),
            ("a second", ReportPage.number(Int(min(report.rate, 1e15)))),
            ("seconds of writing", ReportPage.decimal(report.writingSeconds)),
        ]
        if report.passes > 1 { tiles.append(("passes", ReportPage.number(report.passes))) }
        if let worker = report.worker {
            tiles.append(("settled of \(ReportPage.number(worker.wanted))", ReportPage.number(worker.settled)))
            tiles.append(("recipients with an outcome", ReportPage.number(worker.answered + worker.endedWhole)))
            tiles.append(("repeats", ReportPage.number(worker.repeats + worker.repeatedInFile)))
            tiles.append(("lost", ReportPage.number(worker.lost)))
            tiles.append(("duplicates", ReportPage.number(worker.duplicates)))
        }
        return ReportPage.tiles(tiles)
    }

    /// The rate is averaged over this time, because a group commits only about once a second.
    private static let windowSeconds = 3.0

    private var flow: String {
        let samples = report.samples
        guard samples.count > 1 else { return "" }
        func rates(_ value: (ReplayReport.Sample) -> Int) -> [(Double, Double)] {
            var first = 0
            return samples.indices.dropFirst().map { index in
                while first + 1 < index, samples[index].seconds - samples[first + 1].seconds >= Self.windowSeconds {
                    first += 1
                }
                let (before, after) = (samples[first], samples[index])
                let seconds = max(after.seconds - before.seconds, 1e-3)
                return (after.seconds, Double(max(0, value(after) - value(before))) / seconds)
            }
        }
        var series = [PlotSeries(name: "written", style: "one", points: rates(\.written))]
        if report.worker != nil {
            series.append(PlotSeries(name: "settled", style: "two", points: rates(\.settled)))
            series.append(PlotSeries(name: "outcomes", style: "three", points: rates(\.outcomes)))
        }
        return ReportPage.section("Records a second", Plot(series: series, unit: "/s").figure)
    }

    private var lag: String {
        let points = report.samples.compactMap { sample in sample.lag.map { (sample.seconds, Double($0)) } }
        guard points.count > 1 else { return "" }
        let series = PlotSeries(name: "records that the group has not settled", style: "two", points: points)
        return ReportPage.section("Lag", Plot(series: [series], unit: "").figure)
    }

    private var outcomes: String {
        guard let worker = report.worker, !worker.outcomes.isEmpty else { return "" }
        let rows = worker.outcomes.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        return ReportPage.section("Outcomes by reason", PlotBars(rows: rows.map { ($0.key, $0.value) }).figure)
    }

    private var latencies: String {
        guard let worker = report.worker, worker.fromWriting.count > 0 else { return "" }
        var spreads = [
            ("written → outcome", worker.fromWriting), ("accepted, since Kafka's time", worker.inWorker),
        ]
        spreads += worker.lanes.sorted { $0.key < $1.key }.map { ("lane \($0.key)", $0.value) }
        let heads = ReplayReport.shares.map { "<th>\($0.name)</th>" }.joined()
        let rows = spreads.map { name, spread in
            "<tr><td>\(HTMLText.escaped(name))</td><td>\(ReportPage.number(spread.count))</td>"
                + ReplayReport.shares.map { "<td>\(spread.percentile($0.share).map { "\($0)" } ?? "–")</td>" }.joined()
                + "<td>\(spread.maxMs)</td></tr>"
        }
        let table =
            "<div class=\"scroll\"><table><tr><th>milliseconds</th><th>count</th>\(heads)<th>max</th></tr>"
            + rows.joined() + "</table></div>"
        return ReportPage.section("Latency", table)
            + ReportPage.section(
                "From writing to outcome, in milliseconds", PlotBars(spread: worker.fromWriting).figure)
    }

    private var recipients: String {
        guard let worker = report.worker else {
            return "<p class=\"note\">\(HTMLText.escaped(report.unwatched))</p>"
        }
        let rows = worker.recipientCounts.map { name, count in
            "<tr><td>\("\(name)".replacing("_", with: " "))</td><td>\(ReportPage.number(count))</td></tr>"
        }
        let more = [
            ("contradictions", worker.contradictions), ("uninvited", worker.uninvited),
            ("duplicates", worker.duplicates), ("records of other events", worker.foreign),
        ].map { "<tr><td>\($0.0)</td><td>\(ReportPage.number($0.1))</td></tr>" }
        return ReportPage.section("Recipients", "<div class=\"scroll\"><table>\((rows + more).joined())</table></div>")
    }

    private var failures: String {
        if report.failures.isEmpty { return "" }
        let rows = report.failures.sorted { $0.key < $1.key }.map {
            "<tr><td>\(HTMLText.escaped($0.key))</td><td>\(ReportPage.number($0.value))</td></tr>"
        }
        return ReportPage.section("Not written", "<div class=\"scroll\"><table>\(rows.joined())</table></div>")
    }
}
