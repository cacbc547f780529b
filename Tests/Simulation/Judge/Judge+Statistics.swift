// SPDX-License-Identifier: Apache-2.0
extension Judge {
    /// Each outcome counts once, however often its record was written. Of several records of a device the last one counts: the
    /// tries before it did not end. Of an event that its producer wrote twice each may count.
    mutating func checkStatistics() {
        guard !allowance.mayMiscount, let counted = observed.counted else { return }
        let doubled = Set(sent.filter(\.isDoubled).map { "\($0.app) \($0.eventID)" })
        let outcomes = Dictionary(grouping: observed.outcomes.filter(\.isFinal)) {
            "\($0.app) \($0.eventID) \($0.uid) \($0.device)"
        }
        var (least, most): ([String: Int64], [String: Int64]) = ([:], [:])
        for case let (records, last?) in outcomes.values.map({ ($0, $0.last) }) {
            let mayCountTwice = records.count > 1 && doubled.contains("\(last.app) \(last.eventID)")
            if !mayCountTwice { least["\(last.app) \(last.verdict)", default: 0] += 1 }
            for record in mayCountTwice ? records : [last] {
                most["\(record.app) \(record.verdict)", default: 0] += 1
            }
        }
        for kind in Set(most.keys).union(counted.keys).sorted() {
            let (low, number, high) = (least[kind] ?? 0, counted[kind] ?? 0, most[kind] ?? 0)
            if number < low || number > high {
                found("the statistics equal the results", "\(kind): \(number) counted, \(low) to \(high) recorded", "")
            }
        }
    }
}
