// SPDX-License-Identifier: Apache-2.0
/// The owners of the slots, from one reply to `CLUSTER SLOTS`.
struct SlotMap: Equatable {
    struct Range: Equatable {
        let slots: ClosedRange<UInt16>
        let master: NodeAddress
    }

    /// In the order of the slots, without overlaps.
    private(set) var ranges: [Range] = []

    /// Redis advises at most 1000 nodes.
    static let mastersMax = 1000

    /// Masters, each once, in the order of their slots.
    var masters: [NodeAddress] {
        var seen: Set<NodeAddress> = []
        return ranges.map(\.master).filter { seen.insert($0).inserted }
    }

    /// Number of served slots.
    var servedCount: Int { ranges.reduce(0) { $0 + $1.slots.count } }

    /// - Returns: nil for an invalid map: a slot named twice, an impossible number or name, too many masters, or none.
    ///   Replicas and additions of newer versions are skipped.
    ///
    /// - Parameter asker: the host that answered.
    init?(_ reply: borrowing RedisReply, asker: String) {
        guard reply.kind == .array, reply.count > 0, reply.count <= KeySlot.count else { return nil }
        var isValid = true
        var found: [Range] = []
        reply.forEach { element in
            guard isValid, let range = Self.range(element, asker) else { return isValid = false }
            found.append(range)
        }
        guard isValid else { return nil }
        found.sort { $0.slots.lowerBound < $1.slots.lowerBound }
        for (before, after) in zip(found, found.dropFirst()) where after.slots.lowerBound <= before.slots.upperBound {
            return nil
        }
        ranges = found
        guard masters.count <= Self.mastersMax else { return nil }
    }

    private static func range(_ element: borrowing RedisReply, _ asker: String) -> Range? {
        guard element.kind == .array, element.count >= 3, let first = slot(element[0]), let last = slot(element[1]),
            first <= last, let master = NodeAddress(slotsEntry: element[2], asker: asker)
        else { return nil }
        return Range(slots: first...last, master: master)
    }

    private static func slot(_ number: borrowing RedisReply) -> UInt16? {
        guard number.kind == .integer, let value = number.int64, (0..<Int64(KeySlot.count)).contains(value) else {
            return nil
        }
        return UInt16(value)
    }
}
