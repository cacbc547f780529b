// SPDX-License-Identifier: Apache-2.0
/// Work by slot number. A freed slot's generation increases, so that late answers find nothing.
///
/// At `capacity` its owner stops adding work; work that is already accepted always finds a slot. Work that only waits
/// may be exchanged for its packed form, which keeps the slot.
struct SlotTable<Work: AnyObject> {
    private enum Content {
        case free
        case work(Work)
        /// Without a form, the work's slot waits for work that another table has packed.
        case packed(PackedRecipient?)
    }

    private var slots: [(content: Content, generation: UInt32)] = []
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
            slots[Int(slot)].content = .work(work)
            return WorkRef(slot: Int(slot), generation: slots[Int(slot)].generation)
        }
        slots.append((.work(work), 0))
        return WorkRef(slot: slots.count - 1, generation: 0)
    }

    private func isCurrent(_ ref: WorkRef) -> Bool {
        ref.slot < slots.count && slots[ref.slot].generation == ref.generation
    }

    /// The work of a reference; nil if it has ended, or is packed.
    func find(_ ref: WorkRef) -> Work? {
        guard isCurrent(ref), case .work(let work) = slots[ref.slot].content else { return nil }
        return work
    }

    /// Frees the slot. A reference to ended work changes nothing.
    mutating func remove(_ ref: WorkRef) {
        if find(ref) == nil { return }
        slots[ref.slot].content = .free
        slots[ref.slot].generation = (slots[ref.slot].generation &+ 1) & 0xFF_FFFF
        free.append(Int32(truncatingIfNeeded: ref.slot))
        count -= 1
    }

    /// Without the packed.
    func forEach(_ body: (Work) -> Void) {
        for case (.work(let work), _) in slots { body(work) }
    }

    /// Stops at the first match.
    func contains(where isWanted: (Work) -> Bool) -> Bool {
        for case (.work(let work), _) in slots where isWanted(work) { return true }
        return false
    }

    // MARK: Packed work

    /// Moves the work out of its slot, which stays taken until `put`.
    mutating func take(_ ref: WorkRef) -> Work? {
        guard let work = find(ref) else { return nil }
        slots[ref.slot].content = .packed(nil)
        return work
    }

    /// Fills a slot whose work was taken or packed.
    mutating func put(_ work: Work, at ref: WorkRef) {
        if isCurrent(ref), case .packed = slots[ref.slot].content { slots[ref.slot].content = .work(work) }
    }

    mutating func put(_ packed: PackedRecipient, at ref: WorkRef) {
        if isCurrent(ref), case .packed = slots[ref.slot].content { slots[ref.slot].content = .packed(packed) }
    }

    /// The packed form of a reference's work; nil if it is not packed.
    func packed(_ ref: WorkRef) -> PackedRecipient? {
        guard isCurrent(ref), case .packed(let packed) = slots[ref.slot].content else { return nil }
        return packed
    }

    /// Everything that is packed.
    var allPacked: [WorkRef] {
        slots.indices.compactMap { slot in
            guard case .packed(_?) = slots[slot].content else { return nil }
            return WorkRef(slot: slot, generation: slots[slot].generation)
        }
    }
}
