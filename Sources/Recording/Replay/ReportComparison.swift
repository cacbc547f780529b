// SPDX-License-Identifier: Apache-2.0
internal import JSON
internal import Telemetry

/// The comparison of a report with that of an earlier run.
public struct ReportComparison: Sendable {
    /// A number of the report's JSON. Of a list it is the median.
    public struct Figure: Sendable {
        let name: String
        let path: [String]

        public init(_ name: String, _ path: String...) {
            self.name = name
            self.path = path
        }

        fileprivate func value(in report: JSONTree) -> Double? {
            func value(_ tree: JSONTree, _ path: ArraySlice<String>) -> Double? {
                if let list = tree.array {
                    let values = list.compactMap { value($0, path) }.sorted()
                    if values.isEmpty { return nil }
                    let middle = values.count / 2
                    return values.count % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2
                }
                guard let key = path.first else { return tree.double }
                return tree[key].flatMap { value($0, path.dropFirst()) }
            }
            return value(report, path[...])
        }
    }

    public struct Fault: Error, CustomStringConvertible {
        public let description: String
    }

    private let earlier: [UInt8]
    private let figures: [Figure]

    /// - Parameter path: the file with the `--json` of the earlier run.
    public init(readingFrom path: String, _ figures: [Figure]) throws(Fault) {
        switch SmallFile.read(path) {
        case .unreadable(let why): throw Fault(description: "\(path): \(why)")
        case .bytes(let bytes): try self.init(bytes, of: path, figures)
        }
    }

    init(_ earlier: [UInt8], of path: String, _ figures: [Figure]) throws(Fault) {
        self.earlier = earlier
        self.figures = figures
        guard let report = try? JSONTree(parsing: earlier), figures.contains(where: { $0.value(in: report) != nil })
        else { throw Fault(description: "\(path): not the --json of such a run") }
    }

    /// The figures that both have.
    ///
    /// - Parameter json: this run's report.
    public func html(_ json: String) -> String {
        guard let now = try? JSONTree(parsing: Array(json.utf8)), let before = try? JSONTree(parsing: earlier) else {
            return ""
        }
        let rows = figures.compactMap { figure -> [String]? in
            guard let one = figure.value(in: before), let other = figure.value(in: now) else { return nil }
            return [figure.name, Self.text(one), Self.text(other), Self.change(from: one, to: other)]
        }
        let (origin, mine) = (ReportOrigin(before), ReportOrigin(now))
        let note = origin.map { "The earlier run: \($0.text)." } ?? "The earlier run does not say where it ran."
        let differs = origin.map { $0.settings != mine?.settings } ?? true
        let settings = origin?.settings.joined(separator: ", ") ?? ""
        let warning = differs ? " Its settings are others: \(settings.isEmpty ? "not known" : settings)." : ""
        return ReportPage.section(
            "Compared with an earlier run", ReportPage.table([["figure", "earlier", "now", "change"]] + rows))
            + "<p class=\"note\">\(HTMLText.escaped(note + warning))</p>"
    }

    private static func text(_ value: Double) -> String {
        let size = min(abs(value), 1e15)
        if size >= 100 || size == size.rounded() { return ReportPage.number(Int(size.rounded())) }
        let hundredths = Int((size * 100).rounded())
        return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
    }

    private static func change(from one: Double, to other: Double) -> String {
        if one == other { return "same" }
        guard one > 0 else { return "–" }
        let percent = Int((min(other / one, 1e6) * 100 - 100).rounded())
        return percent > 0 ? "+\(percent) %" : percent < 0 ? "−\(-percent) %" : "±0 %"
    }
}
