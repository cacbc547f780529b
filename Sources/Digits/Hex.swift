// SPDX-License-Identifier: Apache-2.0
/// Lower-case hexadecimal text of bytes and numbers. Reads either case.
public enum Hex {
    /// Two lower-case digits per byte.
    public static func string(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: digits(bytes), as: UTF8.self)
    }

    /// The same as ASCII bytes, without a `String`.
    public static func digits(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count * 2)
        for byte in bytes {
            text.append(digit(byte >> 4))
            text.append(digit(byte & 0x0F))
        }
        return text
    }

    /// Eight lower-case digits in memory order, the highest digit first.
    @inlinable @inline(__always)
    public static func digits(_ value: UInt32) -> UInt64 {
        // Each step halves the distance between neighbours, until every nibble has its own byte.
        var spread = UInt64(value)
        spread = (spread << 16 | spread) & 0x0000_FFFF_0000_FFFF
        spread = (spread << 8 | spread) & 0x00FF_00FF_00FF_00FF
        spread = (spread << 4 | spread) & 0x0F0F_0F0F_0F0F_0F0F
        let letters = (spread &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        // '0' is 0x30. For values from ten, 'a' - 10 is 0x27 higher.
        return (spread &+ 0x3030_3030_3030_3030 &+ letters &* 0x27).bigEndian
    }

    /// The bytes of an even number of hexadecimal digits (either case); nil for anything else.
    public static func bytes(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard text.count.isMultiple(of: 2) else { return nil }
        var result: [UInt8] = []
        result.reserveCapacity(text.count / 2)
        var high: UInt8?
        for character in text {
            guard let value = value(of: character) else { return nil }
            if let upper = high {
                result.append(upper << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        return result
    }

    /// The value of a digit of either case; nil for any other byte.
    @inlinable @inline(__always)
    public static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit &- 0x30
        case 0x41...0x46: digit &- 0x37
        case 0x61...0x66: digit &- 0x57
        default: nil
        }
    }

    @inline(__always)
    public static func digit(_ nibble: UInt8) -> UInt8 {
        nibble < 10 ? 0x30 &+ nibble : 0x57 &+ nibble
    }
}
