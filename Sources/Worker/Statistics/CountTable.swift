// SPDX-License-Identifier: Apache-2.0
/// A partition of an input topic, in a number: the intake, the topic's index and the partition.
struct CountedPlace: Hashable {
    let bits: UInt32

    /// For outcomes without a record: digests, and badge updates.
    static let none = CountedPlace(bits: .max)

    private init(bits: UInt32) { self.bits = bits }

    init(_ inputClass: InputClass, _ partition: Int32) {
        let kind: UInt32 =
            switch inputClass {
            case .events: 0
            case .userState: 1
            case .parked: 2
            case .chunks: 3
            }
        bits = kind << 28 | UInt32(bitPattern: partition) & 0xFFF_FFFF
    }

    /// Nil for outcomes without a record.
    var inputClass: InputClass? {
        switch bits >> 28 {
        case 0: .events
        case 1: .userState
        case 2: .parked
        case 3: .chunks
        default: nil
        }
    }
}

/// Counts by partition, subject and kind of outcome, until they are written. Its memory stays; a new row costs none.
struct CountTable {
    struct Row {
        var place: CountedPlace
        var subject: CountedSubject
        var outcome: CountedOutcome
        var count: UInt64
    }

    private(set) var rows: [Row] = []
    /// The row + 1 of each slot; 0: free.
    private var slots: [Int32]
    /// The slots of the rows.
    private var used: [Int32] = []
    /// Partitions with rows.
    private(set) var places: Set<CountedPlace> = []

    private static let startSlots = 4_096
    /// Redis was away for long: further kinds of outcomes are not counted.
    static let rowsMax = 65_536

    init() {
        slots = Array(repeating: 0, count: Self.startSlots)
        rows.reserveCapacity(Self.startSlots / 2)
        used.reserveCapacity(Self.startSlots / 2)
    }

    var isEmpty: Bool { rows.isEmpty }
    var count: Int { rows.count }
    var isFull: Bool { rows.count >= Self.rowsMax }

    mutating func add(_ count: UInt64, _ outcome: CountedOutcome, _ subject: CountedSubject, _ place: CountedPlace) {
        var slot = Self.hash(outcome, subject, place) & (slots.count - 1)
        while slots[slot] != 0 {
            let row = Int(slots[slot]) - 1
            if rows[row].outcome == outcome, rows[row].place == place, rows[row].subject === subject {
                rows[row].count &+= count
                return
            }
            slot = (slot + 1) & (slots.count - 1)
        }
        rows.append(Row(place: place, subject: subject, outcome: outcome, count: count))
        places.insert(place)
        slots[slot] = Int32(rows.count)
        used.append(Int32(slot))
        if rows.count * 2 > slots.count { grow() }
    }

    /// The outcomes of a partition.
    func count(of place: CountedPlace) -> UInt64 {
        rows.reduce(0) { $1.place == place ? $0 &+ $1.count : $0 }
    }

    /// Drops the counts of a partition.
    mutating func drop(_ place: CountedPlace) {
        guard places.contains(place) else { return }
        let kept = rows.filter { $0.place != place }
        removeAll()
        for row in kept { add(row.count, row.outcome, row.subject, row.place) }
    }

    /// Takes over the counts of a partition.
    mutating func take(_ place: CountedPlace, from other: inout CountTable) {
        for row in other.rows where row.place == place { add(row.count, row.outcome, row.subject, place) }
        other.drop(place)
    }

    mutating func removeAll() {
        for slot in used { slots[Int(slot)] = 0 }
        used.removeAll(keepingCapacity: true)
        rows.removeAll(keepingCapacity: true)
        places.removeAll(keepingCapacity: true)
    }

    private mutating func grow() {
        slots = Array(repeating: 0, count: slots.count * 2)
        used.removeAll(keepingCapacity: true)
        for (index, row) in rows.enumerated() {
            var slot = Self.hash(row.outcome, row.subject, row.place) & (slots.count - 1)
            while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
            slots[slot] = Int32(index + 1)
            used.append(Int32(slot))
        }
    }

    private static func hash(_ outcome: CountedOutcome, _ subject: CountedSubject, _ place: CountedPlace) -> Int {
        let address = UInt64(UInt(bitPattern: Unmanaged.passUnretained(subject).toOpaque()))
        var mixed = outcome.bits ^ address &* 0x9E37_79B9_7F4A_7C15 ^ UInt64(place.bits) &* 0xC2B2_AE3D_27D4_EB4F
        mixed ^= mixed >> 32
        mixed = mixed &* 0xD6E8_FEB8_6659_FD93
        return Int(truncatingIfNeeded: mixed >> 32)
    }
}
