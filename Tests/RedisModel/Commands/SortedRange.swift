// SPDX-License-Identifier: Apache-2.0
/// A range of a sorted set by rank, score or bytes.
enum SortedRange {
    case rank(Int64, Int64)
    case score(low: Double, lowIsOpen: Bool, high: Double, highIsOpen: Bool)
    case bytes(low: Bound, high: Bound)

    enum Bound {
        case lowest, highest
        case at(Bytes, isOpen: Bool)
    }

    static func score(_ low: Bytes, _ high: Bytes) throws(RedisError) -> SortedRange {
        let (first, firstIsOpen) = try scoreBound(low)
        let (last, lastIsOpen) = try scoreBound(high)
        return .score(low: first, lowIsOpen: firstIsOpen, high: last, highIsOpen: lastIsOpen)
    }

    private static func scoreBound(_ word: Bytes) throws(RedisError) -> (Double, Bool) {
        let isOpen = word.first == 40
        // As strtod has it, a zero byte ends the number, and an empty one is zero.
        let number = Array((isOpen ? word.dropFirst() : word[...]).prefix { $0 != 0 })
        if number.isEmpty { return (0, isOpen) }
        guard let value = Array(number.drop { $0 == 32 || (9...13).contains($0) }).double else { throw .scoreRange }
        return (value, isOpen)
    }

    static func bytes(_ low: Bytes, _ high: Bytes) throws(RedisError) -> SortedRange {
        .bytes(low: try byteBound(low), high: try byteBound(high))
    }

    private static func byteBound(_ word: Bytes) throws(RedisError) -> Bound {
        switch word.first {
        case 45? where word.count == 1: return .lowest
        case 43? where word.count == 1: return .highest
        case 91?: return .at(Array(word.dropFirst()), isOpen: false)
        case 40?: return .at(Array(word.dropFirst()), isOpen: true)
        default: throw .lexRange
        }
    }

    /// The places of the range, in the set's order.
    ///
    /// - Parameter isReversed: ranks count from the highest.
    func places(in set: SortedSet, isReversed: Bool = false) -> Range<Int> {
        switch self {
        case .rank(let start, let end):
            let range = Places.of(start, end, in: set.count)
            return isReversed && !range.isEmpty
                ? (set.count - range.upperBound)..<(set.count - range.lowerBound) : range
        case .score(let low, let lowIsOpen, let high, let highIsOpen):
            return set.range(
                from: { lowIsOpen ? $0.score > low : $0.score >= low },
                to: { highIsOpen ? $0.score >= high : $0.score > high })
        case .bytes(let low, let high):
            // Redis leaves open what this is for different scores. The model does as small sets of Redis do.
            if let first = set.items.first, let last = set.items.last, first.score != last.score {
                return Self.scan(set.items.map(\.member), low, high, isReversed)
            }
            return set.range(
                from: { Self.isAtOrAbove($0.member, low) }, to: { Self.isAbove($0.member, high) })
        }
    }

    private static func scan(_ members: [Bytes], _ low: Bound, _ high: Bound, _ isReversed: Bool) -> Range<Int> {
        guard !isEmpty(low, high), let first = members.first, let last = members.last, isAtOrAbove(last, low),
            !isAbove(first, high)
        else { return 0..<0 }
        if isReversed {
            guard let end = members.lastIndex(where: { !isAbove($0, high) }) else { return 0..<0 }
            let before = members[...end].lastIndex { !isAtOrAbove($0, low) }
            return (before.map { $0 + 1 } ?? 0)..<(end + 1)
        }
        guard let start = members.firstIndex(where: { isAtOrAbove($0, low) }) else { return 0..<0 }
        return start..<(members[start...].firstIndex { isAbove($0, high) } ?? members.count)
    }

    private static func isEmpty(_ low: Bound, _ high: Bound) -> Bool {
        switch (low, high) {
        case (.highest, _), (_, .lowest): true
        case (.lowest, _), (_, .highest): false
        case (.at(let first, let firstIsOpen), .at(let last, let lastIsOpen)):
            isBefore(last, first) || (first == last && (firstIsOpen || lastIsOpen))
        }
    }

    private static func isAtOrAbove(_ member: Bytes, _ low: Bound) -> Bool {
        switch low {
        case .lowest: true
        case .highest: false
        case .at(let bytes, let isOpen): isOpen ? isBefore(bytes, member) : !isBefore(member, bytes)
        }
    }

    private static func isAbove(_ member: Bytes, _ high: Bound) -> Bool {
        switch high {
        case .lowest: true
        case .highest: false
        case .at(let bytes, let isOpen): isOpen ? !isBefore(member, bytes) : isBefore(bytes, member)
        }
    }
}
