// SPDX-License-Identifier: Apache-2.0
/// Delayed answers, earliest first, in a binary heap.
struct DelayedAnswers {
    struct Item {
        var dueNanos: UInt64
        var connection: Int
        var exchange: Int
        var stream: Int32
    }

    private var heap: [Item] = []

    /// Due time of the next answer; nil if there is none.
    var nextDueNanos: UInt64? { heap.first?.dueNanos }

    mutating func add(_ item: Item) {
        heap.append(item)
        var child = heap.count - 1
        while child > 0, heap[child].dueNanos < heap[(child - 1) / 2].dueNanos {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Removes the earliest answer if it is due at `now`.
    mutating func takeDue(_ now: UInt64) -> Item? {
        guard let first = heap.first, first.dueNanos <= now else { return nil }
        let last = heap.removeLast()
        guard !heap.isEmpty else { return first }
        heap[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child].dueNanos < heap[least].dueNanos {
                least = child
            }
            if least == parent { return first }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
