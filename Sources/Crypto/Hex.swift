/// Lower-case hexadecimal text of bytes.
public enum Hex {
    /// Two lower-case digits per byte.
    public static func string(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: digits(bytes), as: UTF8.self)
    }

    /// The same as ASCII bytes, for building wire text without a `String`.
    public static func digits(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count * 2)
        for byte in bytes {
            text.append(digit(byte >> 4))
            text.append(digit(byte & 0x0F))
        }
        return text
    }

    /// The bytes that an even number of hexadecimal digits (either case) names; nil for anything else.
    public static func bytes(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard text.count.isMultiple(of: 2) else { return nil }
        var result: [UInt8] = []
        result.reserveCapacity(text.count / 2)
        var high: UInt8?
        for character in text {
            guard let value = value(character) else { return nil }
            if let upper = high {
                result.append(upper << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        return result
    }

    @inline(__always) private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? 0x30 &+ value : 0x57 &+ value
    }

    @inline(__always) private static func value(_ character: UInt8) -> UInt8? {
        switch character {
        case 0x30...0x39: character &- 0x30
        case 0x41...0x46: character &- 0x37
        case 0x61...0x66: character &- 0x57
        default: nil
        }
    }
}
