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
    private var first: UInt64 = 0
    /// Further outcomes of a record with several kinds, for example a group's.
    private var others: [(bits: UInt64, count: UInt32)] = []
    private var firstCount: UInt32 = 0

    var isEmpty: Bool { first == 0 }

    mutating func add(_ outcome: CountedOutcome, _ count: UInt32 = 1) {
        if first == outcome.bits {
            firstCount &+= count
        } else if first == 0 {
            first = outcome.bits
            firstCount = count
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
        body(CountedOutcome(bits: first), firstCount)
        for other in others { body(CountedOutcome(bits: other.bits), other.count) }
    }
}

/// The outcomes of the events in progress, by the slots of their work.
struct EventCounts {
    private var events: [RecordCounts] = []

    mutating func begin(_ ref: WorkRef, _ subject: CountedSubject) {
        while events.count <= ref.slot { events.append(RecordCounts()) }
        events[ref.slot] = RecordCounts(subject: subject)
    }

    /// What its outcomes count for; nil: they do not count.
    func subject(_ ref: WorkRef) -> CountedSubject? { ref.slot < events.count ? events[ref.slot].subject : nil }

    mutating func add(_ outcome: CountedOutcome, _ ref: WorkRef) { events[ref.slot].tally.add(outcome) }

    /// The event has ended.
    mutating func take(_ ref: WorkRef) -> RecordCounts {
        guard ref.slot < events.count else { return RecordCounts() }
        var ended = RecordCounts()
        swap(&ended, &events[ref.slot])
        return ended
    }
}
