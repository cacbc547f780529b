// SPDX-License-Identifier: Apache-2.0
extension Judge {
    /// Each outcome counts once, however often its record was written. Of several records of a device one counts. Of an event that
    /// its producer wrote twice each may count. If two tries parked an event, an outcome may count with each parked record
    /// (docs/decisions/statistics.md, "Not exact").
    ///
    /// A recipient's outcomes count with the end of the record. They may be missing if the record was deleted before, or if another
    /// try ended the recipient without this device.
    mutating func checkStatistics() {
        guard !allowance.mayMiscount, let counted = observed.counted else { return }
        let doubled = Set(sent.filter(\.isDoubled).map { "\($0.app) \($0.eventID)" })
        let outcomes = Dictionary(grouping: observed.outcomes.filter(\.isFinal)) {
            "\($0.app) \($0.eventID) \($0.uid) \($0.device)"
        }
        let recipients = Dictionary(grouping: observed.outcomes.filter(\.isFinal)) {
            "\($0.app) \($0.eventID) \($0.uid)"
        }.mapValues { RecipientEnds($0, mayRepeat: mayRepeat) }
        let parkings = mayRepeat ? Dictionary(grouping: observed.handedOn, by: \.eventID).mapValues(\.count) : [:]
        var (least, most): ([String: Int64], [String: Int64]) = ([:], [:])
        for case let (records, last?) in outcomes.values.map({ ($0, $0.last) }) {
            let mayCountTwice = records.count > 1 && doubled.contains("\(last.app) \(last.eventID)")
            // Of two tries with different ends either may be the one that counts.
            let verdicts = Set(records.map(\.verdict))
            if !mayCountTwice, verdicts.count == 1, !mayBeMissing(last, recipients) {
                least["\(last.app) \(last.verdict)", default: 0] += 1
            }
            if mayCountTwice {
                for record in records { most["\(record.app) \(record.verdict)", default: 0] += 1 }
            } else {
                let times = max(1, parkings[last.eventID] ?? 1)
                for verdict in verdicts { most["\(last.app) \(verdict)", default: 0] += Int64(times) }
            }
        }
        for kind in Set(most.keys).union(counted.keys).sorted() {
            let (number, low, high) = (counted[kind] ?? 0, least[kind] ?? 0, most[kind] ?? 0)
            if number < low || number > high {
                found("the statistics equal the results", "\(kind): \(number) counted, \(low) to \(high) recorded", "")
            }
        }
    }

    private func mayBeMissing(_ last: Observed.Outcome, _ recipients: [String: RecipientEnds]) -> Bool {
        if allowance.lostEvents.contains(last.eventID) { return true }
        guard !last.uid.isEmpty, let ends = recipients["\(last.app) \(last.eventID) \(last.uid)"] else { return false }
        return ends.areOfTwoTries || ends.lastNanos > last.atNanos
    }
}

/// How one recipient of an event ended, by all its records.
private struct RecipientEnds {
    /// One try ended it by its devices, and another without them.
    let areOfTwoTries: Bool
    /// When a try ended it without devices, or again.
    let lastNanos: UInt64

    init(_ outcomes: [Observed.Outcome], mayRepeat: Bool) {
        areOfTwoTries = mayRepeat && Set(outcomes.map(\.device.isEmpty)).count == 2
        lastNanos = outcomes.filter { $0.device.isEmpty || mayRepeat }.map(\.atNanos).max() ?? 0
    }
}
