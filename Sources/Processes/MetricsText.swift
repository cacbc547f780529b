// SPDX-License-Identifier: Apache-2.0
/// Values from a page of Prometheus text.
public struct MetricsText: Sendable {
    private let lines: [Substring]

    public init(_ text: String) {
        lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
    }

    /// The `q` quantile (0...1) of a histogram, over all series of that name with every given label `key="value"`,
    /// interpolated between two bounds; nil if it is empty.
    public func quantile(_ q: Double, of name: String, _ labels: String...) -> Double? {
        var counts: [Double: Double] = [:]
        for line in lines where line.hasPrefix(name + "_bucket{") && labels.allSatisfy({ line.contains($0) }) {
            guard let at = line.firstRange(of: "le=\""), let end = line[at.upperBound...].firstIndex(of: "\""),
                let space = line.lastIndex(of: " "), let count = Double(line[line.index(after: space)...])
            else { continue }
            let bound = Double(line[at.upperBound..<end]) ?? .infinity
            counts[bound, default: 0] += count
        }
        let rising = counts.sorted { $0.key < $1.key }
        guard let all = rising.last?.value, all > 0 else { return nil }
        var (lower, below) = (0.0, 0.0)
        for (bound, count) in rising {
            if count >= q * all, count > below {
                return bound.isFinite ? lower + (bound - lower) * (q * all - below) / (count - below) : lower
            }
            (lower, below) = (bound, count)
        }
        return lower
    }

    /// The sum of all series of a name with every given label `key="value"`; 0 if there is none.
    public func sum(_ name: String, _ labels: String...) -> Double {
        lines.reduce(0) { sum, line in
            guard line.hasPrefix(name), let end = line.lastIndex(of: " ") else { return sum }
            let rest = line[line.index(line.startIndex, offsetBy: name.count)..<end]
            guard rest.isEmpty || rest.hasPrefix("{"), labels.allSatisfy({ rest.contains($0) }) else { return sum }
            return sum + (Double(line[line.index(after: end)...]) ?? 0)
        }
    }
}
