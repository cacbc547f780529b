// SPDX-License-Identifier: Apache-2.0
/// What all workers of a world have counted, as an operator reads it.
struct MetricsJudge {
    static let names: Set<String> = [gaps, oddTimes]
    private static let gaps = "carillon_kafka_gap_records_total"
    private static let oddTimes = "carillon_kafka_odd_times_total"
    private let lines: [Substring]
    private(set) var violations: [Violation] = []

    init(_ expositions: [[UInt8]]) {
        lines = expositions.flatMap { String(decoding: $0, as: UTF8.self).split(separator: "\n") }
    }

    /// The sum of a metric over its series with that label.
    private func sum(_ name: String, _ label: String = "") -> Double {
        lines.reduce(0) { sum, line in
            guard line.hasPrefix(name), label.isEmpty || line.contains(label),
                let text = line.split(separator: " ").last
            else { return sum }
            return sum + (Double(text) ?? 0)
        }
    }

    /// An offset without a record is no deleted record.
    mutating func checkGaps() {
        let gaps = sum(Self.gaps)
        if gaps > 0 { found("\(Int(gaps)) records count as deleted, and none was") }
    }

    /// A Kafka time that is not in milliseconds is counted, once or again.
    mutating func checkOddTimes(_ topic: String, written: Int, hasLost: Bool) {
        let counted = Int(sum(Self.oddTimes, "topic=\"\(topic)\""))
        if counted > 0, written == 0 { found("\(counted) odd times of \(topic) are counted, and none was written") }
        if counted < written, !hasLost { found("\(counted) odd times of \(topic) are counted, of \(written)") }
    }

    private mutating func found(_ text: String) {
        violations.append(Violation(rule: "the metrics of odd records", text: text, message: ""))
    }
}
