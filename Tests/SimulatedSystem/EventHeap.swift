// SPDX-License-Identifier: Apache-2.0
/// What is due at which virtual time. Events of one time run in an order that the seed decides.
struct EventHeap {
    struct Event {
        var atNanos: UInt64
        /// Decides between events of one time.
        var order: UInt64
        var number: UInt64
        var run: () -> Void

        func isBefore(_ other: Event) -> Bool {
            (atNanos, order, number) < (other.atNanos, other.order, other.number)
        }
    }

    private var events: [Event] = []
    private var number: UInt64 = 0

    var nextNanos: UInt64? { events.first?.atNanos }

    mutating func add(atNanos: UInt64, order: UInt64, _ run: @escaping () -> Void) {
        number += 1
        events.append(Event(atNanos: atNanos, order: order, number: number, run: run))
        var child = events.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard events[child].isBefore(events[parent]) else { return }
            events.swapAt(child, parent)
            child = parent
        }
    }

    mutating func takeFirst() -> Event? {
        guard let last = events.popLast() else { return nil }
        guard let first = events.first else { return last }
        events[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < events.count {
                if events[child].isBefore(events[least]) { least = child }
            }
            guard least != parent else { return first }
            events.swapAt(parent, least)
            parent = least
        }
    }

    mutating func removeAll() { events = [] }
}
