// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// The order of an endpoint's addresses: recently failed ones last, then those with the fewest connections first, then
/// at random.
///
/// Apple asks for a new lookup before each connection and for connections spread over the addresses. A client that
/// returned to the address that had just refused it stayed disconnected for long (pushy #571).
struct AddressBook {
    private static let keepNanos: UInt64 = 60_000_000_000
    private static let failuresMax = 64

    private var failures: [String: UInt64] = [:]

    mutating func failed(_ address: String, nowNanos: UInt64) {
        if failures.count >= Self.failuresMax { failures.removeAll() }
        failures[address] = nowNanos
    }

    mutating func succeeded(_ address: String) { failures[address] = nil }

    /// The indices of `found` in the order of trying. `inUse` has the address of each present connection.
    func order(_ found: [String], inUse: [String], nowNanos: UInt64, random: inout SmallRandom) -> [Int] {
        let shuffled = found.indices.shuffled(using: &random)
        func rank(_ index: Int) -> (Int, Int) {
            let address = found[index]
            let hasFailed = failures[address].map { nowNanos &- $0 < Self.keepNanos } ?? false
            return (hasFailed ? 1 : 0, inUse.count { $0 == address })
        }
        // Sorting does not guarantee an order of equals, so the random part belongs to the rank.
        return shuffled.enumerated().sorted { one, other in
            let (left, right) = (rank(one.element), rank(other.element))
            return left == right ? one.offset < other.offset : left < right
        }.map(\.element)
    }
}
