// SPDX-License-Identifier: Apache-2.0
/// The lexical rules of Prometheus' text format 0.0.4.
enum MetricText {
    /// `[a-zA-Z_:][a-zA-Z0-9_:]*`
    static func isMetricName(_ name: String) -> Bool { isName(name, colon: true) }

    /// `[a-zA-Z_][a-zA-Z0-9_]*`, not starting with the reserved `__`.
    static func isLabelName(_ name: String) -> Bool { isName(name, colon: false) && !name.hasPrefix("__") }

    /// `a="x",b="y"`, sorted by name, values escaped; empty without labels.
    static func labels(_ labels: [(String, String)]) -> String {
        let sorted = labels.sorted { $0.0 < $1.0 }
        for (name, _) in sorted {
            precondition(isLabelName(name) && name != "le", "MetricsRegistry: bad label name \(name)")
        }
        for (left, right) in zip(sorted, sorted.dropFirst()) {
            precondition(left.0 != right.0, "MetricsRegistry: label \(left.0) given twice")
        }
        return sorted.map { "\($0.0)=\"\(escaped($0.1, quote: true))\"" }.joined(separator: ",")
    }

    /// Backslash and line feed are escaped everywhere, the quote only in label values.
    static func escaped(_ text: String, quote: Bool) -> String {
        var out = ""
        out.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            case "\"" where quote: out += "\\\""
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out
    }

    /// Go's ParseFloat syntax, with integers written as such.
    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value > 0 ? "+Inf" : "-Inf" }
        if value == value.rounded(), abs(value) < 1e15 { return String(Int64(value)) }
        return value.description
    }

    private static func isName(_ name: String, colon: Bool) -> Bool {
        guard let first = name.utf8.first, !(48...57).contains(first) else { return false }
        return name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                true
            case UInt8(ascii: ":"): colon
            default: false
            }
        }
    }
}
