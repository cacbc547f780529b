/// Numbers out of a page of Prometheus text.
public struct MetricsText: Sendable {
    private let lines: [Substring]

    public init(_ text: String) {
        lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
    }

    /// The sum of all series of a name whose labels hold every given `key="value"`; 0 where there is none.
    public func sum(_ name: String, _ labels: String...) -> Double {
        lines.reduce(0) { sum, line in
            guard line.hasPrefix(name), let end = line.lastIndex(of: " ") else { return sum }
            let rest = line[line.index(line.startIndex, offsetBy: name.count)..<end]
            guard rest.isEmpty || rest.hasPrefix("{"), labels.allSatisfy({ rest.contains($0) }) else { return sum }
            return sum + (Double(line[line.index(after: end)...]) ?? 0)
        }
    }
}
