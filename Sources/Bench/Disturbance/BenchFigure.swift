/// A figure of a bench, and the bar it has to reach where there is one.
struct BenchFigure: Sendable, Equatable {
    enum Bar: Sendable, Equatable {
        case below(Double)
        case atMost(Double)
        case atLeast(Double)

        /// What is no number reaches no bar.
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

    /// What a whole is short of another, in percent of that; not a number where there is nothing to compare with.
    static func below(_ value: Double, _ whole: Double) -> Double {
        whole > 0 ? (whole - value) / whole * 100 : .nan
    }

    /// How much of another it is, in percent; not a number where there is nothing to compare with.
    static func share(_ value: Double, of whole: Double) -> Double { whole > 0 ? value / whole * 100 : .nan }

    /// The middle one; of an even number the mean of the two. Not a number without any, or where one is none.
    static func median(_ values: [Double]) -> Double {
        guard !values.isEmpty, !values.contains(where: \.isNaN) else { return .nan }
        let sorted = values.sorted()
        let half = sorted.count / 2
        return sorted.count.isMultiple(of: 2) ? (sorted[half - 1] + sorted[half]) / 2 : sorted[half]
    }

    /// How far the furthest lies from the mean, in percent of it; not a number without any.
    static func swing(_ values: [Double]) -> Double {
        guard !values.isEmpty else { return .nan }
        let mean = values.reduce(0, +) / Double(values.count)
        return mean > 0 ? (values.map { abs($0 - mean) }.max() ?? .nan) / mean * 100 : .nan
    }
}
