// SPDX-License-Identifier: Apache-2.0
/// The ready work that one stage of a turn leaves for the next one, taken all at once (`Pipeline.turn`).
///
/// A push passes about 170 KB of code and the processor's first cache holds 32 KB: stage by stage, all pushes of a turn
/// share the fetched code. Items are moved in and out, because a copy costs a retain for each of its parts.
final class Tray<Item> {
    private var items = MovingBuffer<Item>()
    /// Empty, for the items of the next turn.
    private var spare = MovingBuffer<Item>()

    func append(_ item: consuming Item) { items.append(item) }

    var isEmpty: Bool { items.count == 0 }

    func removeAll(where isGone: (Item) -> Bool) { items.removeAll(where: isGone) }

    /// Passes on the present items in order. Items added during the call remain for the next call.
    func takeAll(_ next: (consuming Item) -> Void) {
        if isEmpty { return }
        var taken = spare
        spare = MovingBuffer()
        swap(&taken, &items)
        taken.moveAll(next)
        if spare.isUnallocated { spare = taken } else { taken.deallocate() }
    }

    deinit {
        items.removeAll { _ in true }
        items.deallocate()
        spare.deallocate()
    }
}

/// An array from which items can be moved out. The owner frees it.
private struct MovingBuffer<Item> {
    /// Its first `count` places are initialised.
    private var places: UnsafeMutableBufferPointer<Item>?
    private(set) var count = 0

    var isUnallocated: Bool { places == nil }

    mutating func append(_ item: consuming Item) {
        if count == places?.count ?? 0 { grow() }
        places?.initializeElement(at: count, to: item)
        count += 1
    }

    private mutating func grow() {
        let larger = UnsafeMutableBufferPointer<Item>.allocate(capacity: max(16, count * 2))
        if let places { _ = larger.moveInitialize(fromContentsOf: places[..<count]) }
        places?.deallocate()
        places = larger
    }

    /// Empties it and keeps its memory.
    mutating func moveAll(_ next: (consuming Item) -> Void) {
        guard let places else { return }
        for index in 0..<count { next(places.moveElement(from: index)) }
        count = 0
    }

    mutating func removeAll(where isGone: (Item) -> Bool) {
        guard let places else { return }
        var kept = 0
        for index in 0..<count {
            let item = places.moveElement(from: index)
            if isGone(item) { continue }
            places.initializeElement(at: kept, to: item)
            kept += 1
        }
        count = kept
    }

    func deallocate() { places?.deallocate() }
}
