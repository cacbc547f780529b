// SPDX-License-Identifier: Apache-2.0
/// Items with a time, earliest first; of equals, the one inserted first. A binary heap.
public struct DueQueue<Time: Comparable, Item> {
    @usableFromInline var heap: [(due: Time, order: UInt64, item: Item)] = []
    @usableFromInline var nextOrder: UInt64 = 0

    @inlinable public init() {}

    @inlinable public var count: Int { heap.count }
    /// Nil if empty.
    @inlinable public var earliest: Time? { heap.first?.due }

    @inlinable
    public mutating func insert(_ item: Item, due: Time) {
        heap.append((due, nextOrder, item))
        nextOrder &+= 1
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard isEarlier(child, parent) else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// The earliest item if its time is not after `now`.
    @inlinable
    public mutating func popDue(_ now: Time) -> Item? {
        guard let first = heap.first, first.due <= now else { return nil }
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var parent = 0
        while true {
            let left = 2 * parent + 1
            guard left < heap.count else { break }
            let right = left + 1
            let child = right < heap.count && isEarlier(right, left) ? right : left
            guard isEarlier(child, parent) else { break }
            heap.swapAt(child, parent)
            parent = child
        }
        return first.item
    }

    @inlinable
    func isEarlier(_ one: Int, _ other: Int) -> Bool {
        (heap[one].due, heap[one].order) < (heap[other].due, heap[other].order)
    }
}
