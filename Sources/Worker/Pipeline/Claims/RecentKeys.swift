/// The newest so many keys of what ended here without a mark in Redis, to tell their repeats.
struct RecentKeys<Key: Hashable> {
    private var keys: Set<Key> = []
    private var order: [Key] = []
    private var oldest = 0
    private let capacity: Int

    init(capacity: Int = 65_536) {
        self.capacity = max(1, capacity)
    }

    var count: Int { keys.count }

    func contains(_ key: Key) -> Bool { !keys.isEmpty && keys.contains(key) }

    mutating func insert(_ key: Key) {
        guard keys.insert(key).inserted else { return }
        guard order.count >= capacity else { return order.append(key) }
        keys.remove(order[oldest])
        order[oldest] = key
        oldest = (oldest + 1) % capacity
    }

    mutating func remove(_ key: Key) { keys.remove(key) }
}
