// SPDX-License-Identifier: Apache-2.0
/// What a key holds.
enum Value {
    case string(Bytes)
    case hash(OrderedTable<Bytes>)
    case set(OrderedTable<Void>)
    case sorted(SortedSet)
    case list([Bytes])

    var typeName: String {
        switch self {
        case .string: "string"
        case .hash: "hash"
        case .set: "set"
        case .sorted: "zset"
        case .list: "list"
        }
    }

    /// Bytes of memory, by rough rules: a limit of memory is reached, and the same on each run.
    var byteCount: Int {
        switch self {
        case .string(let bytes): return 16 + bytes.count
        case .hash(let fields):
            var sum = 64
            fields.forEach { sum += $0.count + $1.count + 16 }
            return sum
        case .set(let members):
            var sum = 64
            members.forEach { member, _ in sum += member.count + 16 }
            return sum
        case .sorted(let set): return set.items.reduce(64) { $0 + $1.member.count + 48 }
        case .list(let elements): return elements.reduce(64) { $0 + $1.count + 11 }
        }
    }
}
