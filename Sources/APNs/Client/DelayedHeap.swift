// SPDX-License-Identifier: Apache-2.0
/// The delayed slots of a `PushTable`, earliest first: a binary heap over their entries' `dueNanos`.
///
/// Each entry knows its index in the heap, so that removal from the middle needs no search.
struct DelayedHeap {
    typealias Slot = PushTable.Slot
    typealias Entries = UnsafeMutablePointer<PushTable.Entry>

    private(set) var slots: [Slot] = []

    var count: Int { slots.count }
    var first: Slot? { slots.first }

    mutating func insert(_ slot: Slot, in entries: Entries) {
        entries[Int(slot)].heapIndex = Int32(slots.count)
        slots.append(slot)
        siftUp(slots.count - 1, entries)
    }

    mutating func remove(_ slot: Slot, in entries: Entries) {
        let index = Int(entries[Int(slot)].heapIndex)
        let last = slots.count - 1
        if index != last { swap(index, last, entries) }
        entries[Int(slots.removeLast())].heapIndex = -1
        if index < slots.count {
            siftDown(index, entries)
            siftUp(index, entries)
        }
    }

    private mutating func swap(_ one: Int, _ other: Int, _ entries: Entries) {
        slots.swapAt(one, other)
        entries[Int(slots[one])].heapIndex = Int32(one)
        entries[Int(slots[other])].heapIndex = Int32(other)
    }

    private func due(_ index: Int, _ entries: Entries) -> UInt64 { entries[Int(slots[index])].dueNanos }

    private mutating func siftUp(_ start: Int, _ entries: Entries) {
        var index = start
        while index > 0, due(index, entries) < due((index - 1) / 2, entries) {
            swap(index, (index - 1) / 2, entries)
            index = (index - 1) / 2
        }
    }

    private mutating func siftDown(_ start: Int, _ entries: Entries) {
        var index = start
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < slots.count && due(child, entries) < due(least, entries) {
                least = child
            }
            if least == index { return }
            swap(index, least, entries)
            index = least
        }
    }
}
