// SPDX-License-Identifier: Apache-2.0
/// The slot (of a cluster's 16 384) of a key: CRC16 of the key, or of its hash tag (Redis Cluster specification, "Key
/// distribution model").
enum KeySlot {
    static let count = 16_384

    /// The hash covers the text between the first `{` and the next `}` if that is not empty; else the whole key.
    static func of(_ key: UnsafeRawBufferPointer) -> UInt16 {
        guard let open = key.firstIndex(of: UInt8(ascii: "{")) else { return hash(key[...]) }
        let rest = key[(open + 1)...]
        guard let close = rest.firstIndex(of: UInt8(ascii: "}")), close > open + 1 else { return hash(key[...]) }
        return hash(key[(open + 1)..<close])
    }

    static func of(_ key: String) -> UInt16 {
        var key = key
        return key.withUTF8 { of(UnsafeRawBufferPointer($0)) }
    }

    /// The slot of keys with the hash tag `{first:second}`. A brace in either part ends the tag, as it does in the key.
    static func of(tag first: String, _ second: String) -> UInt16 {
        var crc: UInt16 = 0
        for byte in first.utf8 {
            if byte == UInt8(ascii: "}") { return crc & UInt16(count - 1) }
            crc = step(crc, byte)
        }
        crc = step(crc, UInt8(ascii: ":"))
        for byte in second.utf8 {
            if byte == UInt8(ascii: "}") { break }
            crc = step(crc, byte)
        }
        return crc & UInt16(count - 1)
    }

    private static func hash(_ bytes: Slice<UnsafeRawBufferPointer>) -> UInt16 {
        var crc: UInt16 = 0
        for byte in bytes { crc = step(crc, byte) }
        return crc & UInt16(count - 1)
    }

    private static func step(_ crc: UInt16, _ byte: UInt8) -> UInt16 {
        (crc &<< 8) ^ table[Int((crc &>> 8) ^ UInt16(byte))]
    }

    /// CRC-16/XMODEM: polynomial 0x1021, initial value 0, neither reflected nor inverted.
    private static let table: [UInt16] = (0..<256).map { index in
        (0..<8).reduce(UInt16(index) << 8) { crc, _ in crc & 0x8000 == 0 ? crc << 1 : (crc << 1) ^ 0x1021 }
    }
}
