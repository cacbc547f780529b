// SPDX-License-Identifier: Apache-2.0
import Console
import Worker

/// Statistics as rows, for people and as CSV.
struct StatisticsTable {
    enum By: String {
        case hour, day, task, template, reason
    }

    private var head: [String]
    private var rows: [[String]] = []
    private let report: StatisticsReport

    init(_ report: StatisticsReport, by: By) {
        self.report = report
        if by == .reason {
            head = ["verdict", "reason", "count"]
            rows = report.reasons.sorted { $0.key < $1.key }.map { [$0.key.verdict, $0.key.reason, String($0.value)] }
            return
        }
        head = [by.rawValue] + StatisticsNumbers.columns.map { "\($0.name)" } + ["arrival_rate", "open_rate"]
        switch by {
        case .hour: rows = Self.times(report.hours)
        case .day: rows = Self.times(report.days, isDay: true)
        case .task: rows = Self.names(report.tasks)
        case .template: rows = Self.names(report.templates)
        case .reason: break
        }
    }

    private static func times(_ numbers: [Int64: StatisticsNumbers], isDay: Bool = false) -> [[String]] {
        numbers.sorted { $0.key < $1.key }.map { time, numbers in
            let text = TimeText.iso(time)
            return [isDay ? String(text.prefix(10)) : text] + cells(numbers)
        }
    }

    /// Those with most pushes first.
    private static func names(_ numbers: [String: StatisticsNumbers]) -> [[String]] {
        numbers.sorted { ($1.value.sent, $0.key) < ($0.value.sent, $1.key) }.map { [$0.key] + cells($0.value) }
    }

    private static func cells(_ numbers: StatisticsNumbers) -> [String] {
        StatisticsNumbers.columns.map { String(numbers[keyPath: $0.number]) }
            + [rate(numbers.arrivalRate), rate(numbers.openRate)]
    }

    /// Empty without an accepted alert.
    private static func rate(_ rate: Double?) -> String { rate.map(StatisticsNumbers.text) ?? "" }

    // MARK: Output

    var csv: String {
        ([head] + rows).map { $0.map(Self.quoted).joined(separator: ",") + "\n" }.joined()
    }

    /// RFC 4180. A spreadsheet takes a text that begins like a formula for one, so such a name begins with an apostrophe.
    private static func quoted(_ cell: String) -> String {
        let isFormula = cell.first.map { "=+@\t\r".contains($0) || ($0 == "-" && cell.count > 1) } ?? false
        let text = isFormula ? "'" + cell : cell
        guard text.contains(where: { ",\"\n\r".contains($0) }) else { return text }
        return "\"" + text.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
    }

    var people: TerminalText {
        let from = TimeText.iso(report.fromMs)
        var text: TerminalText = "\(Style.bold("\(report.app)")) from \(from) to \(TimeText.iso(report.toMs))\n"
        if rows.isEmpty { return text + "\(Style.dim("no numbers in this time"))\n" }
        // What nothing was counted for is left out.
        let shown = head.indices.filter { column in
            column == 0 || rows.contains { $0[column] != "0" && !$0[column].isEmpty }
        }
        let total = head.count > 3 ? [["total"] + Self.cells(report.total)] : []
        let all = rows + total
        let widths = head.indices.map { column in
            all.reduce(head[column].count) { max($0, $1[column].count) }
        }
        text += "\(Style.dim("\(line(head, shown, widths))"))\n"
        for row in rows { text += "\(line(row, shown, widths))\n" }
        for row in total { text += "\(Style.bold("\(line(row, shown, widths))"))\n" }
        return text
    }

    /// Names to the left, numbers to the right.
    private func line(_ cells: [String], _ shown: [Int], _ widths: [Int]) -> String {
        shown.map { column in
            let blanks = String(repeating: " ", count: max(0, widths[column] - cells[column].count))
            let isName = column == 0 || head.count == 3 && column == 1
            return isName ? cells[column] + blanks : blanks + cells[column]
        }.joined(separator: "  ")
    }
}
