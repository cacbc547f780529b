// SPDX-License-Identifier: Apache-2.0
/// An ordered list of `PushTable` slots, linked through their entries: adding and removing allocates nothing.
struct PushList {
    typealias Slot = PushTable.Slot
    typealias Entries = UnsafeMutablePointer<PushTable.Entry>

    /// -1 if empty.
    private(set) var head: Slot = -1
    private var tail: Slot = -1
    private(set) var count = 0

    mutating func add(_ slot: Slot, in entries: Entries, atHead: Bool) {
        entries[Int(slot)].previous = atHead ? -1 : tail
        entries[Int(slot)].next = atHead ? head : -1
        if atHead {
            if head >= 0 { entries[Int(head)].previous = slot } else { tail = slot }
            head = slot
        } else {
            if tail >= 0 { entries[Int(tail)].next = slot } else { head = slot }
            tail = slot
        }
        count += 1
    }

    /// Inserts between two neighbours of the list.
    mutating func insert(_ slot: Slot, between previous: Slot, and next: Slot, in entries: Entries) {
        entries[Int(slot)].previous = previous
        entries[Int(slot)].next = next
        entries[Int(previous)].next = slot
        entries[Int(next)].previous = slot
        count += 1
    }

    mutating func remove(_ slot: Slot, in entries: Entries) {
        let (previous, next) = (entries[Int(slot)].previous, entries[Int(slot)].next)
        if previous >= 0 { entries[Int(previous)].next = next } else { head = next }
        if next >= 0 { entries[Int(next)].previous = previous } else { tail = previous }
        count -= 1
    }
}
