internal import Telemetry

/// The report of a replay as one HTML page: style and plots inline, nothing from outside, no script; light and dark.
public struct ReplayPage {
    private let report: ReplayReport

    public init(_ report: ReplayReport) {
        self.report = report
    }

    public var html: String {
        """
        <!doctype html>
        <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
        <title>Replay of \(HTMLText.escaped(report.file))</title>
        <style>\(Self.style)</style></head><body><main>
        <h1>Replay of <code>\(HTMLText.escaped(report.file))</code></h1>
        <p class="verdict \(report.isWell ? "good" : "bad")">\(HTMLText.escaped(ReplayVerdict.sentence(report)))</p>
        \(tiles)
        \(flow)
        \(lag)
        \(outcomes)
        \(latencies)
        \(recipients)
        \(failures)
        </main></body></html>

        """
    }

    private static let style = """
        :root{color-scheme:light dark;--bg:#fff;--ink:#1c2024;--dim:#60646c;--line:#d9d9e0;--one:#0b68cb;--two:#b5470f;\
        --three:#2a7e3b;--good:#2a7e3b;--bad:#c62a2f;--tile:#f5f6f8}
        @media(prefers-color-scheme:dark){:root{--bg:#111316;--ink:#edeef0;--dim:#b0b4ba;--line:#363a3f;--one:#70b8ff;\
        --two:#ffa057;--three:#71d083;--good:#71d083;--bad:#ff9592;--tile:#1c1f23}}
        body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
        main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 3rem}
        h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.05rem;margin:2rem 0 .5rem}
        .verdict{font-weight:600}.good{color:var(--good)}.bad{color:var(--bad)}
        .tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(9rem,1fr));gap:.6rem;padding:0;list-style:none}
        .tiles li{background:var(--tile);border-radius:.4rem;padding:.6rem .8rem}
        .tiles b{display:block;font-size:1.3rem;font-variant-numeric:tabular-nums}.tiles span,figcaption,.note{color:var(--dim)}
        figure{margin:0;overflow-x:auto}svg{width:100%;min-width:34rem;height:auto;display:block}svg text{fill:var(--dim);font:11px system-ui,sans-serif}
        .grid{stroke:var(--line);stroke-width:1}.l{fill:none;stroke-width:2}
        .one{stroke:var(--one)}.two{stroke:var(--two)}.three{stroke:var(--three)}
        .f-one{fill:var(--one)}.f-two{fill:var(--two)}.f-three{fill:var(--three)}
        .scroll{overflow-x:auto}table{border-collapse:collapse;min-width:min(24rem,100%)}
        th,td{text-align:right;padding:.25rem .8rem .25rem 0;border-bottom:1px solid var(--line);\
        font-variant-numeric:tabular-nums}
        th:first-child,td:first-child{text-align:left;min-width:9rem;overflow-wrap:break-word}
        .key i{display:inline-block;width:.9rem;height:.2rem;margin:0 .35rem .2rem .8rem}
        """

    // MARK: Parts

    private var tiles: String {
        var tiles = [
            ("written", Self.number(report.writtenCount)), ("a second", Self.number(Int(min(report.rate, 1e15)))),
            ("seconds of writing", Self.decimal(report.writingSeconds)),
        ]
        if report.passes > 1 { tiles.append(("passes", Self.number(report.passes))) }
        if let worker = report.worker {
            tiles.append(("settled of \(Self.number(worker.wanted))", Self.number(worker.settled)))
            tiles.append(("recipients with an outcome", Self.number(worker.answered + worker.endedWhole)))
            tiles.append(("repeats", Self.number(worker.repeats + worker.repeatedInFile)))
            tiles.append(("lost", Self.number(worker.lost)))
            tiles.append(("duplicates", Self.number(worker.duplicates)))
        }
        return "<ul class=\"tiles\">"
            + tiles.map { "<li><b>\($0.1)</b><span>\(HTMLText.escaped($0.0))</span></li>" }.joined() + "</ul>"
    }

    /// Per second, over as long as passes between some commits of a group: it settles by the second.
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
        return section("Records a second", Plot(series: series, unit: "/s").figure)
    }

    private var lag: String {
        let points = report.samples.compactMap { sample in sample.lag.map { (sample.seconds, Double($0)) } }
        guard points.count > 1 else { return "" }
        let series = PlotSeries(name: "records that the group has yet to settle", style: "two", points: points)
        return section("Lag", Plot(series: [series], unit: "").figure)
    }

    private var outcomes: String {
        guard let worker = report.worker, !worker.outcomes.isEmpty else { return "" }
        let rows = worker.outcomes.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        return section("Outcomes by reason", PlotBars(rows: rows.map { ($0.key, $0.value) }).figure)
    }

    private var latencies: String {
        guard let worker = report.worker, worker.whole.count > 0 else { return "" }
        var spreads = [
            ("written → outcome", worker.whole), ("accepted, in the worker", worker.inWorker),
        ]
        spreads += worker.lanes.sorted { $0.key < $1.key }.map { ("lane \($0.key)", $0.value) }
        let heads = ReplayReport.shares.map { "<th>\($0.name)</th>" }.joined()
        let rows = spreads.map { name, spread in
            "<tr><td>\(HTMLText.escaped(name))</td><td>\(Self.number(spread.count))</td>"
                + ReplayReport.shares.map { "<td>\(spread.percentile($0.share).map { "\($0)" } ?? "–")</td>" }.joined()
                + "<td>\(spread.maxMs)</td></tr>"
        }
        let table =
            "<div class=\"scroll\"><table><tr><th>milliseconds</th><th>count</th>\(heads)<th>max</th></tr>"
            + rows.joined() + "</table></div>"
        return section("Latency", table)
            + section("From writing to outcome, in milliseconds", PlotBars(spread: worker.whole).figure)
    }

    private var recipients: String {
        guard let worker = report.worker else {
            return "<p class=\"note\">\(HTMLText.escaped(report.unwatched))</p>"
        }
        let rows = worker.recipientCounts.map { name, count in
            "<tr><td>\("\(name)".replacing("_", with: " "))</td><td>\(Self.number(count))</td></tr>"
        }
        let more = [
            ("contradictions", worker.contradictions), ("uninvited", worker.uninvited),
            ("duplicates", worker.duplicates), ("records of other events", worker.foreign),
        ].map { "<tr><td>\($0.0)</td><td>\(Self.number($0.1))</td></tr>" }
        return section("Recipients", "<div class=\"scroll\"><table>\((rows + more).joined())</table></div>")
    }

    private var failures: String {
        if report.failures.isEmpty { return "" }
        let rows = report.failures.sorted { $0.key < $1.key }.map {
            "<tr><td>\(HTMLText.escaped($0.key))</td><td>\(Self.number($0.value))</td></tr>"
        }
        return section("Not written", "<div class=\"scroll\"><table>\(rows.joined())</table></div>")
    }

    private func section(_ title: String, _ body: String) -> String {
        "<section><h2>\(HTMLText.escaped(title))</h2>\(body)</section>"
    }

    // MARK: Text

    /// With thin blanks between thousands.
    static func number(_ value: Int) -> String {
        let digits = Array(String(value.magnitude))
        var text = value < 0 ? "-" : ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index).isMultiple(of: 3) { text += "\u{202F}" }
            text.append(digit)
        }
        return text
    }

    /// One digit behind the point.
    static func decimal(_ value: Double) -> String {
        let tenths = Int((min(max(value, 0), 1e15) * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}
