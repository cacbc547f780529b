/// The `apns-id` of one push: a UUID held as sixteen bytes, written as 36 lower-case characters.
///
/// Kept as two words so that a push carries it without an allocation, and so that what leaves is always Apple's
/// canonical form (8-4-4-4-12, lower case). The same push keeps its id over every attempt and every process: it is what
/// makes a resend recognisable.
public struct PushID: Sendable, Hashable {
    public let high: UInt64
    public let low: UInt64

    /// Characters of the written form.
    public static var writtenCount: Int { 36 }

    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Reads the written form, in either case; nil when it is no UUID.
    public init?(ascii: some Sequence<UInt8>) {
        var words: (UInt64, UInt64) = (0, 0)
        var position = 0
        for byte in ascii {
            switch position {
            case 8, 13, 18, 23:
                guard byte == UInt8(ascii: "-") else { return nil }
            case 0..<Self.writtenCount:
                guard let nibble = Hex.value(of: byte) else { return nil }
                if position < 18 {
                    words.0 = words.0 << 4 | UInt64(nibble)
                } else {
                    words.1 = words.1 << 4 | UInt64(nibble)
                }
            default:
                return nil
            }
            position += 1
        }
        guard position == Self.writtenCount else { return nil }
        self.init(high: words.0, low: words.1)
    }

    /// Writes the 36 characters to where there is room for them.
    func write(to target: UnsafeMutableRawPointer) {
        let dash = UInt8(ascii: "-")
        let middle = Hex.digits(UInt32(truncatingIfNeeded: high))
        let late = Hex.digits(UInt32(truncatingIfNeeded: low >> 32))
        target.storeBytes(of: Hex.digits(UInt32(truncatingIfNeeded: high >> 32)), as: UInt64.self)
        target.storeBytes(of: dash, toByteOffset: 8, as: UInt8.self)
        // The four digits on either side of a dash come from one word.
        target.storeBytes(of: middle, toByteOffset: 10, as: UInt64.self)
        target.storeBytes(of: UInt32(truncatingIfNeeded: middle), toByteOffset: 9, as: UInt32.self)
        target.storeBytes(of: dash, toByteOffset: 13, as: UInt8.self)
        target.storeBytes(of: dash, toByteOffset: 18, as: UInt8.self)
        target.storeBytes(of: late, toByteOffset: 20, as: UInt64.self)
        target.storeBytes(of: UInt32(truncatingIfNeeded: late), toByteOffset: 19, as: UInt32.self)
        target.storeBytes(of: dash, toByteOffset: 23, as: UInt8.self)
        target.storeBytes(of: Hex.digits(UInt32(truncatingIfNeeded: low)), toByteOffset: 28, as: UInt64.self)
    }
}

extension PushID: CustomStringConvertible {
    public var description: String {
        withUnsafeTemporaryAllocation(byteCount: Self.writtenCount, alignment: 1) { bytes in
            guard let start = bytes.baseAddress else { return "" }
            write(to: start)
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}

/// Hexadecimal digits, both ways.
enum Hex {
    static func value(of byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte &- UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte &- UInt8(ascii: "a") &+ 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte &- UInt8(ascii: "A") &+ 10
        default: nil
        }
    }

    /// Eight lower-case digits in the order of memory, the highest first.
    @inline(__always)
    static func digits(_ value: UInt32) -> UInt64 {
        // Each step halves the distance between neighbours, until every nibble has a byte of its own.
        var spread = UInt64(value)
        spread = (spread << 16 | spread) & 0x0000_FFFF_0000_FFFF
        spread = (spread << 8 | spread) & 0x00FF_00FF_00FF_00FF
        spread = (spread << 4 | spread) & 0x0F0F_0F0F_0F0F_0F0F
        let letters = (spread &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        // '0' is 0x30; from ten on 'a' - 10 is 0x27 further.
        return (spread &+ 0x3030_3030_3030_3030 &+ letters &* 0x27).bigEndian
    }

    @inline(__always)
    static func digit(_ nibble: UInt8) -> UInt8 {
        nibble < 10 ? UInt8(ascii: "0") &+ nibble : UInt8(ascii: "a") &+ (nibble &- 10)
    }
}
