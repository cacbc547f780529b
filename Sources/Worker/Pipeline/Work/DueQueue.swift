// SPDX-License-Identifier: Apache-2.0
/// Items that must be checked again at a known time: ack deadlines, holds, retries. A binary heap, earliest first.
struct DueQueue<Item> {
    private var heap: [(due: UInt64, order: UInt64, item: Item)] = []
    private var nextOrder: UInt64 = 0

    var count: Int { heap.count }
    /// Nanoseconds of the monotonic clock; nil if empty.
    var earliest: UInt64? { heap.first?.due }

    mutating func insert(_ item: Item, dueNanos: UInt64) {
        heap.append((dueNanos, nextOrder, item))
        nextOrder &+= 1
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard isEarlier(child, parent) else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// The earliest due item; of equals, the one inserted first.
    mutating func popDue(nowNanos: UInt64) -> Item? {
        guard let first = heap.first, first.due <= nowNanos else { return nil }
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

    private func isEarlier(_ one: Int, _ other: Int) -> Bool {
        (heap[one].due, heap[one].order) < (heap[other].due, heap[other].order)
    }
}
