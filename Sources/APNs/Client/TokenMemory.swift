// SPDX-License-Identifier: Apache-2.0
/// Remembers device tokens with a recent answer of APNs.
///
/// A table of fingerprints of fixed size with one place for each. A newer token may replace an older one, and one in
/// four thousand million others is mistaken for a remembered one. The only effect is a different route.
struct TokenMemory {
    private static let keepSeconds: UInt32 = 24 * 3600

    private struct Place {
        var print: UInt32 = 0
        var atSeconds: UInt32 = 0
    }

    private var table: [Place] = []
    private let places: Int
    private(set) var count = 0

    /// - Parameter places: a power of two; eight bytes each, allocated with the first token.
    init(places: Int) {
        precondition(places > 0 && places & (places - 1) == 0, "places are found by a mask")
        self.places = places
    }

    var isEmpty: Bool { count == 0 }

    mutating func insert(_ token: borrowing DeviceToken, nowSeconds: UInt32) {
        if table.isEmpty { table = Array(repeating: Place(), count: places) }
        let (index, print) = key(token.fingerprint)
        if table[index].print == 0 { count += 1 }
        table[index] = Place(print: print, atSeconds: nowSeconds)
    }

    mutating func remove(_ token: borrowing DeviceToken) {
        guard count > 0 else { return }
        let (index, print) = key(token.fingerprint)
        guard table[index].print == print else { return }
        table[index] = Place()
        count -= 1
    }

    func contains(_ token: borrowing DeviceToken, nowSeconds: UInt32) -> Bool {
        guard count > 0 else { return false }
        let (index, print) = key(token.fingerprint)
        return table[index].print == print && nowSeconds &- table[index].atSeconds < Self.keepSeconds
    }

    private func key(_ fingerprint: UInt64) -> (index: Int, print: UInt32) {
        // Zero marks a free place.
        (Int(truncatingIfNeeded: fingerprint) & (places - 1), UInt32(truncatingIfNeeded: fingerprint >> 32) | 1)
    }
}
