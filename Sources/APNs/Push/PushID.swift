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

    /// Appends the 36 characters.
    public func write(into bytes: inout [UInt8]) {
        for shift in stride(from: 60, through: 0, by: -4) {
            if shift == 28 || shift == 12 { bytes.append(UInt8(ascii: "-")) }
            bytes.append(Hex.digit(UInt8(truncatingIfNeeded: high >> UInt64(shift)) & 15))
        }
        for shift in stride(from: 60, through: 0, by: -4) {
            if shift == 60 || shift == 44 { bytes.append(UInt8(ascii: "-")) }
            bytes.append(Hex.digit(UInt8(truncatingIfNeeded: low >> UInt64(shift)) & 15))
        }
    }
}

extension PushID: CustomStringConvertible {
    public var description: String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.writtenCount)
        write(into: &bytes)
        return String(decoding: bytes, as: UTF8.self)
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

    @inline(__always)
    static func digit(_ nibble: UInt8) -> UInt8 {
        nibble < 10 ? UInt8(ascii: "0") &+ nibble : UInt8(ascii: "a") &+ (nibble &- 10)
    }
}
