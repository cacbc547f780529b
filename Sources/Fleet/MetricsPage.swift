// SPDX-License-Identifier: Apache-2.0
import Digits

/// A page of Prometheus text (exposition format 0.0.4): the series with the requested names.
///
/// The peer may not be a worker, so the kept data is bounded.
public struct MetricsPage: Sendable {
    public struct Series: Equatable, Sendable {
        public var labels: [(name: String, value: String)]
        public var value: Double

        public subscript(label: String) -> String? { labels.first { $0.name == label }?.value }

        public static func == (one: Series, other: Series) -> Bool {
            one.value == other.value && one.labels.elementsEqual(other.labels) { $0 == $1 }
        }
    }

    private var byName: [String: [Series]] = [:]
    private static let seriesMax = 20_000
    private static let labelsMax = 16
    private static let textMax = 256

    /// - Parameter names: a histogram's parts `_bucket`, `_sum` and `_count` have separate names.
    public init(_ bytes: [UInt8], names: Set<String> = FleetMetrics.names) {
        var count = 0
        for line in bytes.split(separator: UInt8(ascii: "\n")) where line.first != UInt8(ascii: "#") {
            guard count < Self.seriesMax, let (name, series) = Self.series(line, names) else { continue }
            byName[name, default: []].append(series)
            count += 1
        }
    }

    public func series(_ name: String) -> [Series] { byName[name] ?? [] }

    /// The sum of the series that `isWanted` accepts; nil if there is none.
    public func sum(_ name: String, where isWanted: (Series) -> Bool = { _ in true }) -> Double? {
        let wanted = series(name).filter(isWanted)
        return wanted.isEmpty ? nil : wanted.reduce(0) { $0 + $1.value }
    }

    private static func series(_ line: ArraySlice<UInt8>, _ names: Set<String>) -> (String, Series)? {
        guard let end = line.firstIndex(where: { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: " ") }),
            end - line.startIndex <= textMax
        else { return nil }
        let name = String(decoding: line[..<end], as: UTF8.self)
        guard names.contains(name) else { return nil }
        var rest = line[end...]
        var labels: [(String, String)] = []
        if rest.first == UInt8(ascii: "{") {
            rest = rest.dropFirst()
            while let first = rest.first, first != UInt8(ascii: "}") {
                if first == UInt8(ascii: ",") || first == UInt8(ascii: " ") {
                    rest = rest.dropFirst()
                    continue
                }
                guard labels.count < labelsMax, let label = label(&rest) else { return nil }
                labels.append(label)
            }
            rest = rest.dropFirst()
        }
        // A timestamp may follow.
        guard let text = rest.split(separator: UInt8(ascii: " ")).first, text.count <= 40,
            let value = Double(String(decoding: text, as: UTF8.self)), value.isFinite
        else { return nil }
        return (name, Series(labels: labels, value: value))
    }

    /// `name="value"`, with `\\`, `\"` and `\n` in the value.
    private static func label(_ rest: inout ArraySlice<UInt8>) -> (String, String)? {
        guard let equals = rest.firstIndex(of: UInt8(ascii: "=")), equals - rest.startIndex <= textMax else {
            return nil
        }
        let name = String(decoding: rest[..<equals], as: UTF8.self)
        rest = rest[(equals + 1)...]
        guard rest.popFirst() == UInt8(ascii: "\"") else { return nil }
        var value: [UInt8] = []
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\"") { return (name, String(decoding: value.prefix(textMax), as: UTF8.self)) }
            guard byte == UInt8(ascii: "\\") else {
                value.append(byte)
                continue
            }
            guard let escaped = rest.popFirst() else { return nil }
            value.append(escaped == UInt8(ascii: "n") ? UInt8(ascii: "\n") : escaped)
        }
        return nil
    }
}
