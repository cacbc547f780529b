// SPDX-License-Identifier: Apache-2.0
/// One database: keys, their values and their ends of life. A value, so that a copy is a snapshot.
struct Keyspace {
    private struct Entry {
        var value: Value
        var expiresMs: Int64?
    }

    private struct Expiry {
        let ms: Int64
        let key: Bytes

        func isBefore(_ other: Expiry) -> Bool {
            ms < other.ms || (ms == other.ms && key.lexicographicallyPrecedes(other.key))
        }
    }

    private var entries = OrderedTable<Entry>()
    /// In the order of their times.
    private var expiries: [Expiry] = []

    /// A replica shows an expired key as absent, and removes it when its master does.
    private var nowMs: Int64 = 0

    var count: Int { entries.count }

    var expiringCount: Int { expiries.count }

    /// Approximate bytes of all keys.
    var byteCount: Int {
        var sum = 0
        entries.forEach { sum += $0.count + 56 + $1.value.byteCount + ($1.expiresMs == nil ? 0 : 32) }
        return sum
    }

    // MARK: Time

    mutating func set(nowMs: Int64) { self.nowMs = nowMs }

    /// Removes keys whose time is over, and returns them.
    mutating func removeExpired() -> [Bytes] {
        let gone = expiries.prefix { $0.ms < nowMs }.map(\.key)
        for key in gone { remove(key) }
        return gone
    }

    // MARK: Reading

    private func entry(_ key: Bytes) -> Entry? {
        guard let entry = entries[key], entry.expiresMs.map({ $0 >= nowMs }) ?? true else { return nil }
        return entry
    }

    subscript(_ key: Bytes) -> Value? { entry(key)?.value }

    func contains(_ key: Bytes) -> Bool { entry(key) != nil }

    /// -1 without an end, -2 without a key.
    func expiry(of key: Bytes) -> Int64 {
        guard let entry = entry(key) else { return -2 }
        return entry.expiresMs ?? -1
    }

    func string(_ key: Bytes) throws(RedisError) -> Bytes? {
        switch self[key] {
        case nil: return nil
        case .string(let bytes): return bytes
        default: throw .wrongType
        }
    }

    func hash(_ key: Bytes) throws(RedisError) -> OrderedTable<Bytes>? {
        switch self[key] {
        case nil: return nil
        case .hash(let fields): return fields
        default: throw .wrongType
        }
    }

    func set(_ key: Bytes) throws(RedisError) -> OrderedTable<Void>? {
        switch self[key] {
        case nil: return nil
        case .set(let members): return members
        default: throw .wrongType
        }
    }

    func sorted(_ key: Bytes) throws(RedisError) -> SortedSet? {
        switch self[key] {
        case nil: return nil
        case .sorted(let set): return set
        default: throw .wrongType
        }
    }

    func list(_ key: Bytes) throws(RedisError) -> [Bytes]? {
        switch self[key] {
        case nil: return nil
        case .list(let elements): return elements
        default: throw .wrongType
        }
    }

    var keys: [Bytes] { entries.allKeys.filter { contains($0) } }

    func key(at index: Int) -> Bytes? { entries.key(at: index) }

    func scan(after cursor: UInt64, limit: Int) -> (keys: [Bytes], cursor: UInt64) {
        let (keys, next) = entries.scan(after: cursor, limit: limit)
        return (keys.filter { contains($0) }, next)
    }

    // MARK: Writing

    /// Replaces the value. The key keeps its end of life only if `keepsExpiry`.
    mutating func store(_ key: Bytes, _ value: Value, keepsExpiry: Bool = false) {
        if !contains(key) { remove(key) }
        if !keepsExpiry { setExpiry(of: key, nil) }
        if entries.change(key, { $0.value = value }) == nil { entries.set(key, Entry(value: value)) }
    }

    @discardableResult
    mutating func remove(_ key: Bytes) -> Bool {
        let isThere = contains(key)
        setExpiry(of: key, nil)
        entries.remove(key)
        return isThere
    }

    mutating func removeAll() {
        let now = nowMs
        self = Keyspace()
        nowMs = now
    }

    mutating func setExpiry(of key: Bytes, _ ms: Int64?) {
        let old: Int64?? = entries.change(key) { entry in
            let old = entry.expiresMs
            entry.expiresMs = ms
            return old
        }
        guard let old else { return }
        if let old { expiries.remove(at: place(of: Expiry(ms: old, key: key))) }
        if let ms {
            let expiry = Expiry(ms: ms, key: key)
            expiries.insert(expiry, at: place(of: expiry))
        }
    }

    private func place(of expiry: Expiry) -> Int {
        var low = 0
        var high = expiries.count
        while low < high {
            let middle = (low + high) / 2
            if expiries[middle].isBefore(expiry) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Changes a hash in place; a key without one begins with an empty one, and an empty one ends the key.
    mutating func changeHash<Result>(
        _ key: Bytes, _ body: (inout OrderedTable<Bytes>) -> Result
    ) throws(RedisError) -> Result {
        var fields = try hash(key) ?? OrderedTable()
        lift(key)
        let result = body(&fields)
        put(key, fields.isEmpty ? nil : .hash(fields))
        return result
    }

    mutating func changeSet<Result>(
        _ key: Bytes, _ body: (inout OrderedTable<Void>) -> Result
    ) throws(RedisError) -> Result {
        var members = try set(key) ?? OrderedTable()
        lift(key)
        let result = body(&members)
        put(key, members.isEmpty ? nil : .set(members))
        return result
    }

    mutating func changeSorted<Result>(
        _ key: Bytes, _ body: (inout SortedSet) -> Result
    ) throws(RedisError) -> Result {
        var set = try sorted(key) ?? SortedSet()
        lift(key)
        let result = body(&set)
        put(key, set.count == 0 ? nil : .sorted(set))
        return result
    }

    mutating func changeList<Result>(_ key: Bytes, _ body: (inout [Bytes]) -> Result) throws(RedisError) -> Result {
        var elements = try list(key) ?? []
        lift(key)
        let result = body(&elements)
        put(key, elements.isEmpty ? nil : .list(elements))
        return result
    }

    /// Lets go of a value that is changed outside, so that no copy is made.
    private mutating func lift(_ key: Bytes) {
        if !contains(key) { remove(key) }
        entries.change(key) { $0.value = .list([]) }
    }

    private mutating func put(_ key: Bytes, _ value: Value?) {
        guard let value else {
            remove(key)
            return
        }
        store(key, value, keepsExpiry: true)
    }
}
