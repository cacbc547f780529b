// SPDX-License-Identifier: Apache-2.0
/// The result of a bench.
protocol JudgedReport {
    var text: String { get }
    var json: String { get }
    /// Everything is complete, and every bar is met.
    var succeeded: Bool { get }
}

/// A measured figure, and its bar if it has one.
struct BenchFigure: Sendable, Equatable {
    enum Bar: Sendable, Equatable {
        case below(Double)
        case atMost(Double)
        case atLeast(Double)

        /// Not-a-number meets no bar.
        func isMet(by value: Double) -> Bool {
            switch self {
            case .below(let bar): value < bar
            case .atMost(let bar): value <= bar
            case .atLeast(let bar): value >= bar
            }
        }

        var text: String {
            switch self {
            case .below(let bar): "below \(Self.plain(bar))"
            case .atMost(let bar): "at most \(Self.plain(bar))"
            case .atLeast(let bar): "at least \(Self.plain(bar))"
            }
        }

        private static func plain(_ value: Double) -> String {
            value == value.rounded() && abs(value) < 1e15 ? String(Int(value)) : String(value)
        }
    }

    var name: String
    var value: Double
    var unit: String
    var bar: Bar?

    init(_ name: String, _ value: Double, _ unit: String = "", bar: Bar? = nil) {
        self.name = name
        self.value = value
        self.unit = unit
        self.bar = bar
    }

    var isMet: Bool { bar?.isMet(by: value) ?? true }

    /// By how much `value` is below `whole`, in percent of `whole`. Not-a-number without a positive `whole`.
    static func below(_ value: Double, _ whole: Double) -> Double {
        whole > 0 ? (whole - value) / whole * 100 : .nan
    }

    /// `value` in percent of `whole`. Not-a-number without a positive `whole`.
    static func share(_ value: Double, of whole: Double) -> Double { whole > 0 ? value / whole * 100 : .nan }

    /// The median; of an even count, the mean of the two middle values. Not-a-number for an empty list, or if a value
    /// is not-a-number.
    static func median(_ values: [Double]) -> Double {
        values.contains(where: \.isNaN) ? .nan : BenchReport.median(values) ?? .nan
    }

    /// The largest distance from the mean, in percent of the mean. Not-a-number for an empty list.
    static func swing(_ values: [Double]) -> Double {
        guard !values.isEmpty else { return .nan }
        let mean = values.reduce(0, +) / Double(values.count)
        return mean > 0 ? (values.map { abs($0 - mean) }.max() ?? .nan) / mean * 100 : .nan
    }
}
