import EventLoop

/// In which order an endpoint's addresses are tried: not the ones that failed lately, then where we have fewest
/// connections, then by lot.
///
/// Apple asks for a fresh look-up before each connection and for connections spread over what it gives; a client that
/// went back to the address that had just refused it stayed away for long (pushy #571).
struct AddressBook {
    private static let keepNanos: UInt64 = 60_000_000_000
    private static let failuresMax = 64

    private var failures: [String: UInt64] = [:]

    mutating func failed(_ address: String, nowNanos: UInt64) {
        if failures.count >= Self.failuresMax { failures.removeAll() }
        failures[address] = nowNanos
    }

    mutating func succeeded(_ address: String) { failures[address] = nil }

    /// The places of `found` in the order of trying; `inUse` names the address of each connection there is.
    func order(_ found: [String], inUse: [String], nowNanos: UInt64, random: inout SmallRandom) -> [Int] {
        let shuffled = found.indices.shuffled(using: &random)
        func rank(_ index: Int) -> (Int, Int) {
            let address = found[index]
            let hasFailed = failures[address].map { nowNanos &- $0 < Self.keepNanos } ?? false
            return (hasFailed ? 1 : 0, inUse.count { $0 == address })
        }
        // Sorting keeps no order of equals by promise, so the lot is part of the rank.
        return shuffled.enumerated().sorted { one, other in
            let (left, right) = (rank(one.element), rank(other.element))
            return left == right ? one.offset < other.offset : left < right
        }.map(\.element)
    }
}
