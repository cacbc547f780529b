import Digits

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
