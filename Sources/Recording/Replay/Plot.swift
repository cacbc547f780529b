// SPDX-License-Identifier: Apache-2.0
internal import Telemetry

/// One line of a plot.
struct PlotSeries {
    var name: String
    /// A colour of the page: `one`, `two`, `three`.
    var style: String
    /// Seconds and values, in order of time.
    var points: [(seconds: Double, value: Double)]
}

/// Lines over time, as SVG.
struct Plot {
    var series: [PlotSeries]
    var unit: String

    private static let (width, height) = (720.0, 220.0)
    private static let (left, right, top, bottom) = (56.0, 8.0, 8.0, 22.0)

    var figure: String {
        let seconds = max(series.flatMap { $0.points.map(\.seconds) }.max() ?? 1, 0.1)
        let top = Self.ceiling(series.flatMap { $0.points.map(\.value) }.max() ?? 1)
        let names = series.map(\.name).joined(separator: ", ")
        var svg = "<svg viewBox=\"0 0 720 220\" role=\"img\" aria-label=\"\(HTMLText.escaped(names)) over time\">"
        for share in [0.0, 0.5, 1.0] {
            let y = Self.y(share * top, top)
            svg += "<line class=\"grid\" x1=\"56\" x2=\"712\" y1=\"\(y)\" y2=\"\(y)\"/>"
            svg += "<text x=\"50\" y=\"\(ReportPage.decimal(Self.top + (1 - share) * Self.plotHeight + 4))\" "
            svg += "text-anchor=\"end\">\(Self.short(share * top))\(unit)</text>"
        }
        for share in [0.0, 0.5, 1.0] {
            let anchor = share == 0 ? "start" : share == 1 ? "end" : "middle"
            svg += "<text x=\"\(Self.x(share * seconds, seconds))\" y=\"216\" text-anchor=\"\(anchor)\">"
            svg += "\(ReportPage.decimal(share * seconds)) s</text>"
        }
        for line in series {
            let points = line.points.map { "\(Self.x($0.seconds, seconds)),\(Self.y($0.value, top))" }
            svg += "<polyline class=\"l \(line.style)\" points=\"\(points.joined(separator: " "))\"/>"
        }
        svg += "</svg>"
        let keys = series.map {
            "<i class=\"k\" style=\"background:var(--\($0.style))\"></i>\(HTMLText.escaped($0.name))"
        }
        return "<figure>\(svg)<figcaption class=\"key\">\(keys.joined())</figcaption></figure>"
    }

    private static var plotHeight: Double { height - top - bottom }

    private static func x(_ seconds: Double, _ all: Double) -> String {
        ReportPage.decimal(left + seconds / all * (width - left - right))
    }

    private static func y(_ value: Double, _ highest: Double) -> String {
        ReportPage.decimal(top + (1 - value / highest) * plotHeight)
    }

    /// The smallest of 1, 2, 5, 10, 20 … that is at least the value.
    static func ceiling(_ value: Double) -> Double {
        var step = 1.0
        while step < value, step < 1e15 {
            for factor in [2.0, 5.0, 10.0] where step * factor >= value { return step * factor }
            step *= 10
        }
        return step
    }

    static func short(_ value: Double) -> String {
        if value >= 10_000_000 { return "\(Int(min(value, 1e15) / 1_000_000)) M" }
        if value >= 10_000 { return "\(Int(value / 1000)) k" }
        return value == value.rounded() ? "\(Int(value))" : ReportPage.decimal(value)
    }
}

/// Named bars with their values, as SVG.
struct PlotBars {
    var rows: [(name: String, count: Int)]
    private static let rowsMax = 40

    init(rows: [(String, Int)]) {
        self.rows = rows.map { (name: $0.0, count: $0.1) }
    }

    /// Merges neighbouring buckets if there are too many to show.
    init(spread: LatencySpread) {
        var bars = spread.bars
        while bars.count > Self.rowsMax {
            bars = stride(from: 0, to: bars.count, by: 2).map { index in
                let next = index + 1 < bars.count ? bars[index + 1] : nil
                return (bars[index].fromMs, next?.toMs ?? bars[index].toMs, bars[index].count + (next?.count ?? 0))
            }
        }
        rows = bars.map { bar in
            (bar.fromMs == bar.toMs ? "\(bar.fromMs)" : "\(bar.fromMs)–\(bar.toMs)", bar.count)
        }
    }

    var figure: String {
        let shown = rows.prefix(Self.rowsMax)
        let bars = ReportPage.bars(shown.map { ($0.name, Double($0.count), ReportPage.number($0.count)) })
        let rest = rows.count - shown.count
        return rest > 0 ? bars + "<p class=\"note\">and \(rest) more</p>" : bars
    }
}
