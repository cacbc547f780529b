// SPDX-License-Identifier: Apache-2.0
/// The outcomes of one record that is not settled yet, with their subject.
struct RecordCounts {
    /// Nil: they do not count.
    var subject: CountedSubject?
    var tally = OutcomeTally()

    mutating func add(_ more: RecordCounts) {
        subject = more.subject
        tally.add(more.tally)
    }
}

/// The outcomes of a record, each kind with its number.
struct OutcomeTally {
    /// The first kind, with its number in the bits that a `CountedOutcome` does not use (2^27: more than the devices of a
    /// record's recipients); 0: none.
    private var first: UInt64 = 0
    /// Further outcomes of a record with several kinds, for example a group's.
    private var others: [(bits: UInt64, count: UInt32)] = []

    var isEmpty: Bool { first == 0 }

    private var firstBits: UInt64 { first & ~CountedOutcome.unusedBits }
    private var firstCount: UInt64 { (first & CountedOutcome.unusedBits) >> CountedOutcome.unusedPlace }

    mutating func add(_ outcome: CountedOutcome, _ count: UInt32 = 1) {
        if first == 0 || firstBits == outcome.bits {
            first = outcome.bits | (firstCount + UInt64(count)) << CountedOutcome.unusedPlace
        } else if let place = others.firstIndex(where: { $0.bits == outcome.bits }) {
            others[place].count &+= count
        } else {
            others.append((outcome.bits, count))
        }
    }

    mutating func add(_ tally: OutcomeTally) {
        tally.forEach { add($0, $1) }
    }

    func forEach(_ body: (CountedOutcome, UInt32) -> Void) {
        if first == 0 { return }
        body(CountedOutcome(bits: firstBits), UInt32(firstCount))
        for other in others { body(CountedOutcome(bits: other.bits), other.count) }
    }
}
