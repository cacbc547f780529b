// SPDX-License-Identifier: Apache-2.0
/// Keys and values in the order in which the keys were added.
///
/// Each key has a number that rises with each addition, so a scan can continue behind a number whatever was removed.
struct OrderedTable<Value> {
    private var keys: [Bytes] = []
    private var values: [Value] = []
    private var numbers: [UInt64] = []
    private var isLive: [Bool] = []
    private var places: [Bytes: Int] = [:]
    private var lastNumber: UInt64 = 0

    var count: Int { places.count }

    var isEmpty: Bool { places.isEmpty }

    func contains(_ key: Bytes) -> Bool { places[key] != nil }

    subscript(_ key: Bytes) -> Value? { places[key].map { values[$0] } }

    func number(of key: Bytes) -> UInt64? { places[key].map { numbers[$0] } }

    /// Returns the value that it replaced.
    @discardableResult
    mutating func set(_ key: Bytes, _ value: Value) -> Value? {
        if let place = places[key] {
            let old = values[place]
            values[place] = value
            return old
        }
        lastNumber += 1
        places[key] = keys.count
        keys.append(key)
        values.append(value)
        numbers.append(lastNumber)
        isLive.append(true)
        return nil
    }

    /// Changes a value in place; nil if there is none.
    mutating func change<Result>(_ key: Bytes, _ body: (inout Value) -> Result) -> Result? {
        guard let place = places[key] else { return nil }
        return body(&values[place])
    }

    @discardableResult
    mutating func remove(_ key: Bytes) -> Value? {
        guard let place = places.removeValue(forKey: key) else { return nil }
        let old = values[place]
        isLive[place] = false
        if keys.count > 2 * places.count + 8 { compact() }
        return old
    }

    private mutating func compact() {
        var next = 0
        for place in keys.indices where isLive[place] {
            if next != place {
                keys.swapAt(next, place)
                values.swapAt(next, place)
                numbers[next] = numbers[place]
            }
            places[keys[next]] = next
            next += 1
        }
        keys.removeSubrange(next...)
        values.removeSubrange(next...)
        numbers.removeSubrange(next...)
        isLive = [Bool](repeating: true, count: next)
    }

    func forEach(_ body: (Bytes, Value) -> Void) {
        for place in keys.indices where isLive[place] { body(keys[place], values[place]) }
    }

    var allKeys: [Bytes] {
        var all: [Bytes] = []
        all.reserveCapacity(count)
        forEach { key, _ in all.append(key) }
        return all
    }

    /// The key at this place of the order.
    func key(at index: Int) -> Bytes? {
        if keys.count == count { return keys.indices.contains(index) ? keys[index] : nil }
        return allKeys.dropFirst(index).first
    }

    /// Up to `limit` keys with a higher number than `cursor`, and the cursor to continue with: 0 at the end.
    func scan(after cursor: UInt64, limit: Int) -> (keys: [Bytes], cursor: UInt64) {
        var low = 0
        var high = numbers.count
        while low < high {
            let middle = (low + high) / 2
            if numbers[middle] <= cursor { low = middle + 1 } else { high = middle }
        }
        var found: [Bytes] = []
        var last: UInt64 = 0
        for place in low..<keys.count where isLive[place] {
            if found.count == limit { return (found, last) }
            found.append(keys[place])
            last = numbers[place]
        }
        return (found, 0)
    }
}
