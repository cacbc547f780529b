// SPDX-License-Identifier: Apache-2.0
/// Work by slot number. A freed slot's generation increases, so that late answers find nothing.
///
/// At `capacity` its owner stops adding work; work that is already accepted always finds a slot. Work that only waits
/// may be exchanged for its packed form, which keeps the slot.
struct SlotTable<Work: AnyObject> {
    /// The work; nil also while it is packed, here or with its recipient.
    private var slots: [(work: Work?, generation: UInt32)] = []
    /// By slot, as far as the highest slot that was packed: most tables have none.
    private var packed: [PackedRecipient?] = []
    private var free: [Int32] = []
    /// With the packed.
    private(set) var count = 0
    let capacity: Int

    init(capacity: Int) {
        precondition(capacity > 0 && capacity < 1 << 24, "a slot number has 24 bits")
        self.capacity = capacity
    }

    var isFull: Bool { count >= capacity }

    mutating func insert(_ work: Work) -> WorkRef {
        count += 1
        if let slot = free.popLast() {
            slots[Int(slot)].work = work
            return WorkRef(slot: Int(slot), generation: slots[Int(slot)].generation)
        }
        slots.append((work, 0))
        return WorkRef(slot: slots.count - 1, generation: 0)
    }

    /// The work of a reference; nil if it has ended, or is packed.
    func find(_ ref: WorkRef) -> Work? {
        guard ref.slot < slots.count, slots[ref.slot].generation == ref.generation else { return nil }
        return slots[ref.slot].work
    }

    /// Frees the slot. A reference to ended work changes nothing.
    mutating func remove(_ ref: WorkRef) {
        if find(ref) == nil { return }
        slots[ref.slot].work = nil
        slots[ref.slot].generation = (slots[ref.slot].generation &+ 1) & 0xFF_FFFF
        free.append(Int32(truncatingIfNeeded: ref.slot))
        count -= 1
    }

    /// Without the packed.
    func forEach(_ body: (Work) -> Void) {
        for case (let work?, _) in slots { body(work) }
    }

    /// Stops at the first match.
    func contains(where isWanted: (Work) -> Bool) -> Bool {
        for case (let work?, _) in slots where isWanted(work) { return true }
        return false
    }

    // MARK: Packed work

    /// Moves the work out of its slot, which stays taken until `put`.
    mutating func take(_ ref: WorkRef) -> Work? {
        guard find(ref) != nil else { return nil }
        return slots[ref.slot].work.take()
    }

    /// Fills the slot of work that was taken.
    mutating func put(_ work: Work, at ref: WorkRef) {
        slots[ref.slot].work = work
        if ref.slot < packed.count { packed[ref.slot] = nil }
    }

    mutating func put(_ form: PackedRecipient, at ref: WorkRef) {
        while packed.count <= ref.slot { packed.append(nil) }
        packed[ref.slot] = form
    }

    /// The packed form of a reference's work; nil if it is not packed.
    func packed(_ ref: WorkRef) -> PackedRecipient? {
        guard ref.slot < packed.count, slots[ref.slot].generation == ref.generation else { return nil }
        return packed[ref.slot]
    }

    /// Everything that is packed.
    var allPacked: [WorkRef] {
        packed.indices.lazy.filter { packed[$0] != nil }.map {
            WorkRef(slot: $0, generation: slots[$0].generation)
        }
    }
}
