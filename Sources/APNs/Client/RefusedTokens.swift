/// Device tokens that APNs rejected lately: what is sent to them again travels apart from the others.
///
/// A table of fingerprints with one place for each, of fixed size: a newer token may take an older one's place, and one
/// in four thousand million others is mistaken for a refused one, which only sends it by the other road.
struct RefusedTokens {
    private static let places = 4096
    private static let keepSeconds: UInt32 = 24 * 3600

    private struct Place {
        var print: UInt32 = 0
        var atSeconds: UInt32 = 0
    }

    private var table: [Place] = []
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func insert(_ token: borrowing DeviceToken, nowSeconds: UInt32) {
        if table.isEmpty { table = Array(repeating: Place(), count: Self.places) }
        let (index, print) = Self.key(token.fingerprint)
        if table[index].print == 0 { count += 1 }
        table[index] = Place(print: print, atSeconds: nowSeconds)
    }

    mutating func remove(_ token: borrowing DeviceToken) {
        guard count > 0 else { return }
        let (index, print) = Self.key(token.fingerprint)
        guard table[index].print == print else { return }
        table[index] = Place()
        count -= 1
    }

    func contains(_ token: borrowing DeviceToken, nowSeconds: UInt32) -> Bool {
        guard count > 0 else { return false }
        let (index, print) = Self.key(token.fingerprint)
        return table[index].print == print && nowSeconds &- table[index].atSeconds < Self.keepSeconds
    }

    private static func key(_ fingerprint: UInt64) -> (index: Int, print: UInt32) {
        // Zero marks a free place.
        (Int(truncatingIfNeeded: fingerprint) & (places - 1), UInt32(truncatingIfNeeded: fingerprint >> 32) | 1)
    }
}
