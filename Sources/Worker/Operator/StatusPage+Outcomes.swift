// SPDX-License-Identifier: Apache-2.0
import Fleet
import PushCore

/// Outcomes of the last minutes, and dead letters.
extension StatusPage {
    var outcomes: Markup {
        func count(_ verdicts: [Verdict]) -> Double {
            let names = verdicts.map(\.rawValue)
            let rate = facts.verdicts.reduce(0) { $0 + (names.contains($1.verdict) ? $1.rate : 0) }
            return (rate * (facts.recentSeconds ?? 0)).rounded()
        }
        let (all, failed, parked) = (count(Verdict.allCases), count([.rejected, .expired]), count([.parked]))
        var note: Markup =
            all > 0
            ? "\(FigureText.number(all)) in \(FigureText.duration(facts.recentSeconds ?? 0))" : "none yet"
        if failed > 0 { note += ", \(FigureText.number(failed)) failed" }
        if parked > 0 { note += ", \(FigureText.number(parked)) parked" }
        return PageFrame.section(
            "outcomes", "Outcomes", note: note, isWide: true, folds: true, isWell: (failed + parked) * 20 <= all,
            "\(shares)\(reasons)")
    }

    /// Each verdict's share, as a bar and in words.
    private var shares: Markup {
        let all = facts.verdicts.reduce(0) { $0 + $1.rate }
        guard all > 0, let seconds = facts.recentSeconds else { return "" }
        var (bar, legend): (Markup, Markup) = ("", "")
        var start = 0.0
        for verdict in Verdict.allCases {
            guard let rate = facts.verdicts.first(where: { $0.verdict == verdict.rawValue })?.rate, rate > 0 else {
                continue
            }
            let width = rate / all * 1000
            bar += SharesBar.part(verdict, from: start, width: width)
            start += width
            legend += """
                <li><span class="key \(verdict.rawValue)" aria-hidden="true"></span>\(verdict.rawValue) \
                <b>\(FigureText.number((rate * seconds).rounded()))</b> \
                <span class="quiet">\(FigureText.percent(rate / all))</span></li>
                """
        }
        return """
            <svg class="shares" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">\(bar)</svg>
            <ul class="facts">\(legend)</ul>

            """
    }

    /// Outcomes other than pushes accepted by APNs or deliveries by long connection.
    private var reasons: Markup {
        let failed = facts.recent.filter {
            !["accepted", "online", FleetView.Outcome.deadLetter].contains($0.verdict)
        }
        let isRecent = failed.contains { $0.rate != nil }
        let table = PageTable(
            caption: isRecent
                ? "Outcomes without a push or delivery"
                : "Outcomes without a push or delivery since the start; none lately",
            columns: [
                .init("reason"), .init("outcome"), .init("app"), .init("a minute", isNumber: true),
                .init("since the start", isNumber: true),
            ],
            rows: failed.map { outcome in
                let state: PageState =
                    outcome.verdict == "rejected" ? .bad : outcome.verdict == "expired" ? .warning : .quiet
                return [
                    "\(outcome.reason)", state.badge("\(outcome.verdict)"),
                    outcome.app.isEmpty ? "–" : "\(outcome.app)",
                    outcome.rate.map { "\(FigureText.number($0 * 60))" } ?? "–", "\(FigureText.number(outcome.total))",
                ]
            }, nothing: "Everything reached its device.")
        return table.markup
    }

    var deadLetters: Markup {
        let letters = facts.recent.filter { $0.verdict == FleetView.Outcome.deadLetter }
        let table = PageTable(
            caption: "Records that cannot be read, by the rule that they broke",
            columns: [.init("rule"), .init("a minute", isNumber: true), .init("since the start", isNumber: true)],
            rows: letters.map { letter in
                [
                    PageState.bad.badge("\(letter.reason)"),
                    letter.rate.map { "\(FigureText.number($0 * 60))" } ?? "–", "\(FigureText.number(letter.total))",
                ]
            }, nothing: "Every record could be read.")
        let hint: Markup = letters.isEmpty ? "" : "<p class=\"quiet\"><code>carillon dlq list</code> shows each.</p>"
        let total = letters.reduce(0) { $0 + $1.total }
        return PageFrame.section(
            "dead-letters", "Dead letters", note: total > 0 ? "\(FigureText.number(total)) since the start" : "none",
            folds: true, isWell: letters.allSatisfy { $0.rate == nil }, "\(table.markup)\(hint)")
    }
}

/// A bar of shares, as inline SVG.
enum SharesBar {
    /// - Parameter width: of 1000.
    static func part(_ verdict: Verdict, from start: Double, width: Double) -> Markup {
        let corners = [(x: start, y: 0.0), (x: start + width, y: 0), (x: start + width, y: 10), (x: start, y: 10)]
        return "<polygon class=\"\(verdict.rawValue)\" points=\"\(Markup(points: corners))\"/>"
    }
}
