// SPDX-License-Identifier: Apache-2.0
/// The data of a server at one time.
public struct Snapshot {
    var databases: [Keyspace] = []

    /// A server without data.
    public init() {}

    init(databases: [Keyspace]) { self.databases = databases }

    /// Number of keys.
    public var keyCount: Int { databases.reduce(0) { $0 + $1.count } }

    /// The keys in order.
    public var keyNames: [String] { databases.flatMap { $0.keys.map { String(decoding: $0, as: UTF8.self) } } }

    /// The keys of the first database that only one of the two has, or with other content.
    public func keys(notAsIn other: Snapshot) -> [String] {
        let (one, two) = (databases.first ?? Keyspace(), other.databases.first ?? Keyspace())
        let added = two.keys.filter { !one.contains($0) }
        let changed = one.keys.filter { Self.digest(of: $0, in: one) != Self.digest(of: $0, in: two) }
        return (changed + added).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Equal for equal data, whatever the order in which they were written.
    public var digest: UInt64 {
        var sum: UInt64 = 0
        for (index, database) in databases.enumerated() {
            for key in database.keys { sum &+= Self.digest(of: key, in: database) &* UInt64(index + 1) }
        }
        return sum
    }

    private static func digest(of key: Bytes, in database: Keyspace) -> UInt64 {
        guard let value = database[key] else { return 0 }
        var parts: [Bytes] = [key, Bytes(database.expiry(of: key)), Bytes(value.typeName)]
        switch value {
        case .string(let bytes): parts.append(bytes)
        case .hash(let fields):
            for field in fields.allKeys.sorted(by: isBefore) { parts += [field, fields[field] ?? []] }
        case .set(let members): parts += members.allKeys.sorted(by: isBefore)
        case .sorted(let set): for item in set.items { parts += [item.member, Bytes(digits(of: item.score))] }
        case .list(let elements): parts += elements
        }
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for part in parts {
            for byte in Bytes("\(part.count):") + part { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        }
        return hash
    }
}
