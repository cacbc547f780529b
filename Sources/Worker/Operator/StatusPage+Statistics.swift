// SPDX-License-Identifier: Apache-2.0
import Fleet
import PushCore

/// The statistics on the page: outcomes by hour and by day, of all apps and workers.
extension StatusPage {
    private static let (hourMs, dayMs): (Int64, Int64) = (3_600_000, 86_400_000)
    static let hoursShown: Int64 = 48
    static let daysShown: Int64 = 31

    var statistics: Markup {
        let accepted = FigureText.number(Double(today.accepted))
        let note: Markup = facts.statistics == nil ? "" : "\(accepted) in 24 h"
        return PageFrame.section("stats", "Hour by hour", note: note, isWide: true, folds: true, charts)
    }

    private var hour: Int64 { facts.atMs / Self.hourMs * Self.hourMs }

    /// The last 24 hours.
    private var today: StatisticsNumbers {
        facts.statistics?.sum(from: hour - 23 * Self.hourMs, to: hour + Self.hourMs) ?? StatisticsNumbers()
    }

    private var charts: Markup {
        guard let numbers = facts.statistics else {
            return "<p class=\"quiet\">The worker is reading them from Redis.</p>"
        }
        let old: Markup =
            numbers.fault.map { "<p>\(PageState.warning.badge("\($0): these numbers are old"))</p>" } ?? ""
        let day = facts.atMs / Self.dayMs * Self.dayMs
        let hours = (0..<Self.hoursShown).reversed().map { numbers.hours[hour - $0 * Self.hourMs] }
        let days = (0..<Self.daysShown).reversed().map { back in
            numbers.sum(from: day - back * Self.dayMs, to: day - (back - 1) * Self.dayMs)
        }
        let all = days.reduce(StatisticsNumbers(), +)
        return """
            \(old)<div class="tiles two">\
            \(tile("By hour", today.accepted, "accepted in 24 h", hours, "an hour", ["−48 h", "−36 h", "−24 h", "−12 h", "now"]))\
            \(tile("By day", all.accepted, "accepted in 31 days", days, "a day", ["−30 d", "−20 d", "−10 d", "today"]))\
            </div><ul class="facts"><li class="quiet">all workers, UTC, in 24 h:</li>\(Self.legend(today))\(Self.rates(today))</ul>\
            <p class="quiet"><code>carillon stats</code> shows the numbers by app, task, template and reason.</p>
            """
    }

    private func tile(
        _ title: Markup, _ count: Int64, _ unit: Markup, _ bars: [StatisticsNumbers?], _ each: Markup, _ axis: [Markup]
    ) -> Markup {
        """
        <div class="tile"><h3>\(title)</h3><p class="figure">\(FigureText.number(Double(count)))\
        <span class="unit"> \(unit)</span></p>\
        \(StatisticsBars.markup(bars.map { $0 ?? StatisticsNumbers() }, title, each))\
        <p class="axis" aria-hidden="true">\(axis.map { "<span>\($0)</span>" as Markup }.joined())</p></div>

        """
    }

    /// The outcomes of the last 24 hours.
    private static func legend(_ numbers: StatisticsNumbers) -> Markup {
        StatisticsBars.parts.filter { numbers[keyPath: $0.number] > 0 }.map { verdict, number -> Markup in
            """
            <li><span class="key \(verdict.rawValue)" aria-hidden="true"></span>\(verdict.rawValue) \
            <b>\(FigureText.number(Double(numbers[keyPath: number])))</b></li>
            """
        }.joined()
    }

    private static func rates(_ numbers: StatisticsNumbers) -> Markup {
        let rates: [(Markup, Double)] = [
            ("arrived", numbers.arrivalRate ?? 0), ("opened", numbers.openRate ?? 0),
        ]
        return rates.filter { $0.1 > 0 }.map { name, rate -> Markup in
            "<li>\(name) <b>\(FigureText.percent(rate))</b> <span class=\"quiet\">of alerts</span></li>"
        }.joined()
    }
}

/// Outcomes as stacked bars, oldest first, as inline SVG.
enum StatisticsBars {
    static let parts: [(verdict: Verdict, number: any KeyPath<StatisticsNumbers, Int64> & Sendable)] = [
        (.accepted, \.accepted), (.online, \.online), (.suppressed, \.suppressed), (.expired, \.expired),
        (.rejected, \.rejected),
    ]
    private static let (width, height) = (480.0, 40.0)

    /// - Parameters:
    ///   - title: for screen readers, as `each`: the time of a bar.
    static func markup(_ bars: [StatisticsNumbers], _ title: Markup, _ each: Markup) -> Markup {
        let sums = bars.map { bar in parts.reduce(0) { $0 + max(0, Double(bar[keyPath: $1.number])) } }
        let most = sums.max() ?? 0
        let step = width / Double(max(1, bars.count))
        var shapes: Markup = ""
        for (index, bar) in bars.enumerated() where most > 0 {
            let (left, right) = (step * Double(index) + step * 0.1, step * Double(index + 1) - step * 0.1)
            var base = height
            for part in parts where bar[keyPath: part.number] > 0 {
                let top = base - Double(bar[keyPath: part.number]) / most * (height - 1)
                let corners = [(x: left, y: base), (x: left, y: top), (x: right, y: top), (x: right, y: base)]
                shapes += "<polygon class=\"\(part.verdict.rawValue)\" points=\"\(Markup(points: corners))\"/>"
                base = top
            }
        }
        let words: Markup = "peak \(FigureText.number(most)) \(each)"
        return """
            <p class="most" aria-hidden="true">\(words)</p>\
            <svg class="bars" role="img" viewBox="0 0 480 40" preserveAspectRatio="none" \
            aria-label="\(title): outcomes, \(words)">\(shapes)</svg>
            """
    }
}
