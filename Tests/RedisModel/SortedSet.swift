// SPDX-License-Identifier: Apache-2.0
/// Members by score, then by their bytes.
struct SortedSet {
    struct Item: Equatable {
        let score: Double
        let member: Bytes
    }

    private(set) var items: [Item] = []
    private var scores: [Bytes: Double] = [:]

    var count: Int { items.count }

    func score(_ member: Bytes) -> Double? { scores[member] }

    /// Returns whether the member is new.
    @discardableResult
    mutating func set(_ member: Bytes, _ given: Double) -> Bool {
        // A negative zero is stored as zero.
        let score = given == 0 ? 0 : given
        let old = scores.updateValue(score, forKey: member)
        if let old {
            if old == score { return false }
            items.remove(at: place(of: Item(score: old, member: member)))
        }
        let item = Item(score: score, member: member)
        items.insert(item, at: place(of: item))
        return old == nil
    }

    @discardableResult
    mutating func remove(_ member: Bytes) -> Bool {
        guard let score = scores.removeValue(forKey: member) else { return false }
        items.remove(at: place(of: Item(score: score, member: member)))
        return true
    }

    mutating func remove(_ range: Range<Int>) {
        for item in items[range] { scores[item.member] = nil }
        items.removeSubrange(range)
    }

    func rank(_ member: Bytes) -> Int? {
        scores[member].map { place(of: Item(score: $0, member: member)) }
    }

    /// Places of the items between two bounds. Both tests are monotonic over the items.
    func range(from isAtOrAboveLow: (Item) -> Bool, to isAboveHigh: (Item) -> Bool) -> Range<Int> {
        let start = first(where: isAtOrAboveLow)
        return start..<max(start, first(where: isAboveHigh))
    }

    private func place(of item: Item) -> Int {
        first { $0.score > item.score || ($0.score == item.score && !isBefore($0.member, item.member)) }
    }

    /// The first place for which the monotonic test holds.
    private func first(where test: (Item) -> Bool) -> Int {
        var low = 0
        var high = items.count
        while low < high {
            let middle = (low + high) / 2
            if test(items[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
