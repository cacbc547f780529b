// SPDX-License-Identifier: Apache-2.0
import PushCore

/// The newest keys that ended here without a mark in Redis, to recognise their repeats.
struct RecentKeys<Key: Hashable> {
    private var keys: Set<Key> = []
    private var order: NewestRing<Key>

    init(capacity: Int = 65_536) {
        order = NewestRing(capacity: capacity)
    }

    var count: Int { keys.count }

    func contains(_ key: Key) -> Bool { !keys.isEmpty && keys.contains(key) }

    mutating func insert(_ key: Key) {
        if !keys.insert(key).inserted { return }
        if let displaced = order.append(key) { keys.remove(displaced) }
    }
}
