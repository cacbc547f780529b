// SPDX-License-Identifier: Apache-2.0
/// The slot of a key in a cluster: CRC-16/XMODEM of its hash tag, or of the whole key.
enum Slot {
    static let count = 16_384

    static func of(_ key: Bytes) -> Int {
        if let open = key.firstIndex(of: 123) {
            let rest = key[(open + 1)...]
            if let close = rest.firstIndex(of: 125), close > open + 1 { return hash(rest[..<close]) }
        }
        return hash(key[...])
    }

    private static func hash(_ bytes: ArraySlice<UInt8>) -> Int {
        var sum: UInt16 = 0
        for byte in bytes { sum = (sum &<< 8) ^ table[Int(UInt8(sum >> 8) ^ byte)] }
        return Int(sum) % count
    }

    private static let table: [UInt16] = (0..<256).map { index in
        var sum = UInt16(index) << 8
        for _ in 0..<8 { sum = sum & 0x8000 != 0 ? (sum << 1) ^ 0x1021 : sum << 1 }
        return sum
    }
}
