// SPDX-License-Identifier: Apache-2.0
/// Numbers and columns of the reports.
enum BenchText {
    /// At most two digits after the point.
    static func tenths(_ value: Double) -> String { "\((value * 100).rounded() / 100)" }

    /// The number with so many digits after the point; "-" for not-a-number.
    static func fixed(_ value: Double, digits: Int) -> String {
        var scale = 1
        for _ in 0..<digits { scale *= 10 }
        let scaled = (value * Double(scale)).rounded()
        guard scaled.magnitude < 1e15 else { return "-" }
        let (whole, rest) = Int(scaled.magnitude).quotientAndRemainder(dividingBy: scale)
        guard digits > 0 else { return "\(whole)" }
        let tail = "\(rest)"
        return (scaled < 0 ? "-" : "") + "\(whole)." + String(repeating: "0", count: digits - tail.count) + tail
    }

    static func rounded(_ value: Double) -> String { "\(Int(value.rounded()))" }

    static func megabytes(_ bytes: Int) -> String { "\(tenths(Double(bytes) / 1_048_576)) MiB" }

    /// A name, filled up to the width of its column.
    static func name(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }

    /// A value at the right end of its column.
    static func column(_ text: String, _ width: Int = 11) -> String {
        String(repeating: " ", count: max(1, width - text.count)) + text
    }
}
