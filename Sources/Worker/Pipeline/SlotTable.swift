/// The work in hand, by slot number; a freed slot's generation moves on, so that late answers miss.
///
/// `capacity` is when its owner stops taking more; what is there already always finds a slot.
struct SlotTable<Work: AnyObject> {
    private var slots: [(work: Work?, generation: UInt32)] = []
    private var free: [Int] = []
    private(set) var count = 0
    let capacity: Int

    init(capacity: Int) {
        precondition(capacity > 0 && capacity < 1 << 24, "a slot number has 24 bits")
        self.capacity = capacity
    }

    var isFull: Bool { count >= capacity }

    mutating func insert(_ work: Work) -> (slot: Int, generation: UInt32) {
        if let slot = free.popLast() {
            slots[slot].work = work
            count += 1
            return (slot, slots[slot].generation)
        }
        slots.append((work, 0))
        count += 1
        return (slots.count - 1, 0)
    }

    /// The work that a tag means; nil where it is done already.
    func find(slot: Int, generation: UInt32) -> Work? {
        guard slot < slots.count, slots[slot].generation == generation else { return nil }
        return slots[slot].work
    }

    mutating func remove(slot: Int) {
        guard slot < slots.count, slots[slot].work != nil else { return }
        slots[slot].work = nil
        slots[slot].generation = (slots[slot].generation &+ 1) & 0xFF_FFFF
        free.append(slot)
        count -= 1
    }

    func forEach(_ body: (Work) -> Void) {
        for case let (work?, _) in slots { body(work) }
    }
}
