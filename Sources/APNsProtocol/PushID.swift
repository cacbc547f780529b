// SPDX-License-Identifier: Apache-2.0
import Digits

/// The `apns-id` of one push, which is also the `pid` of its payload: a UUID as sixteen bytes.
///
/// Two words, so that a push carries it without an allocation. The text is always Apple's canonical form, 36 lower-case
/// characters as 8-4-4-4-12. A push keeps its id over every attempt and every process.
public struct PushID: Sendable, Hashable {
    public let high: UInt64
    public let low: UInt64

    /// Length of the text form in bytes.
    public static var textCount: Int { 36 }

    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Its bits are random, or a digest, so that one multiplication is enough of a hash. Everybody knows the digest's key, but nobody
    /// outside knows the table's seed. So a sender cannot choose texts that collide in a table.
    public func _rawHashValue(seed: Int) -> Int {
        let product = (high ^ UInt64(truncatingIfNeeded: seed)).multipliedFullWidth(by: low | 1)
        return Int(truncatingIfNeeded: product.high ^ product.low)
    }

    /// A new random UUID (RFC 9562, version 4).
    public static func random() -> PushID {
        PushID(
            high: .random(in: 0 ... .max) & 0xffff_ffff_ffff_0fff | 0x4000,
            low: .random(in: 0 ... .max) & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000)
    }

    /// Reads the text form in either case; nil for anything except a UUID.
    public init?(ascii: some Sequence<UInt8>) {
        var words: (UInt64, UInt64) = (0, 0)
        var position = 0
        for byte in ascii {
            switch position {
            case 8, 13, 18, 23:
                guard byte == UInt8(ascii: "-") else { return nil }
            case 0..<Self.textCount:
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
        guard position == Self.textCount else { return nil }
        self.init(high: words.0, low: words.1)
    }

    /// Ids are digests or random, so half of their bits are enough for a hash table.
    public func hash(into hasher: inout Hasher) { hasher.combine(low) }

    /// Writes the text form. The target must have room for 36 bytes.
    public func write(to target: UnsafeMutableRawPointer) {
        let dash = UInt8(ascii: "-")
        let second = Hex.digits(UInt32(truncatingIfNeeded: high)).littleEndian
        let third = Hex.digits(UInt32(truncatingIfNeeded: low &>> 32)).littleEndian
        target.storeBytes(of: Hex.digits(UInt32(truncatingIfNeeded: high &>> 32)), as: UInt64.self)
        target.storeBytes(of: dash, toByteOffset: 8, as: UInt8.self)
        // The four digits on either side of a dash come from one word.
        target.storeBytes(of: UInt32(truncatingIfNeeded: second), toByteOffset: 9, as: UInt32.self)
        target.storeBytes(of: dash, toByteOffset: 13, as: UInt8.self)
        target.storeBytes(of: UInt32(truncatingIfNeeded: second &>> 32), toByteOffset: 14, as: UInt32.self)
        target.storeBytes(of: dash, toByteOffset: 18, as: UInt8.self)
        target.storeBytes(of: UInt32(truncatingIfNeeded: third), toByteOffset: 19, as: UInt32.self)
        target.storeBytes(of: dash, toByteOffset: 23, as: UInt8.self)
        target.storeBytes(of: UInt32(truncatingIfNeeded: third &>> 32), toByteOffset: 24, as: UInt32.self)
        target.storeBytes(of: Hex.digits(UInt32(truncatingIfNeeded: low)), toByteOffset: 28, as: UInt64.self)
    }
}

extension PushID: CustomStringConvertible {
    public var description: String {
        String(unsafeUninitializedCapacity: Self.textCount) { text in
            guard let start = text.baseAddress else { return 0 }
            write(to: start)
            return Self.textCount
        }
    }
}
