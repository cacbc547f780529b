// SPDX-License-Identifier: Apache-2.0
/// Work by slot number. A freed slot's generation increases, so that late answers find nothing.
///
/// At `capacity` its owner stops adding work; work that is already accepted always finds a slot.
struct SlotTable<Work: AnyObject> {
    private var slots: [(work: Work?, generation: UInt32)] = []
    private var free: [Int32] = []
    private(set) var count = 0
    let capacity: Int
    /// The first generation of each slot. Its top bit stays.
    private let firstGeneration: UInt32

    /// - Parameter isSecond: whether a reference into it finds nothing in a first table, and the other way round.
    init(capacity: Int, isSecond: Bool = false) {
        precondition(capacity > 0 && capacity < 1 << 24, "a slot number has 24 bits")
        self.capacity = capacity
        firstGeneration = isSecond ? 0x80_0000 : 0
    }

    var isFull: Bool { count >= capacity }

    mutating func insert(_ work: Work) -> WorkRef {
        count += 1
        if let slot = free.popLast() {
            slots[Int(slot)].work = work
            return WorkRef(slot: Int(slot), generation: slots[Int(slot)].generation)
        }
        slots.append((work, firstGeneration))
        return WorkRef(slot: slots.count - 1, generation: firstGeneration)
    }

    /// The work of a reference; nil if it has ended.
    func find(_ ref: WorkRef) -> Work? {
        guard ref.slot < slots.count, slots[ref.slot].generation == ref.generation else { return nil }
        return slots[ref.slot].work
    }

    /// Frees the slot. A reference to ended work changes nothing.
    mutating func remove(_ ref: WorkRef) {
        if find(ref) == nil { return }
        slots[ref.slot].work = nil
        slots[ref.slot].generation = (slots[ref.slot].generation &+ 1) & 0x7F_FFFF | firstGeneration
        free.append(Int32(truncatingIfNeeded: ref.slot))
        count -= 1
    }

    func forEach(_ body: (Work) -> Void) {
        for case (let work?, _) in slots { body(work) }
    }

    /// Stops at the first match.
    func contains(where isWanted: (Work) -> Bool) -> Bool {
        for case (let work?, _) in slots where isWanted(work) { return true }
        return false
    }
}
