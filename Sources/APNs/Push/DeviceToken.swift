import Digits

/// A device token as it stands in the request path: lower-case hexadecimal, checked once.
///
/// Nothing but hex digits can get into `:path`, so a token from outside can neither break a request nor point it at
/// another path. Apple asks not to assume a length; only a bound is set. Never printed: `description` is a mask.
public struct DeviceToken: Sendable, Hashable {
    /// Lower-case hexadecimal digits.
    public let hex: String

    /// Longest written form taken, 256 bytes of token. Apple gives no length; today's have 64 digits, those of Live Activities
    /// some 200.
    public static var digitsMax: Int { 512 }

    /// Digits of the written form.
    var count: Int { hex.utf8.count }

    /// Writes the digits to where there is room for them.
    func write(to target: UnsafeMutableRawPointer) {
        let isDone: Void? = hex.utf8.withContiguousStorageIfAvailable { digits in
            guard let start = digits.baseAddress else { return }
            target.copyMemory(from: start, byteCount: digits.count)
        }
        if isDone == nil {
            for (at, digit) in hex.utf8.enumerated() { (target + at).storeBytes(of: digit, as: UInt8.self) }
        }
    }

    /// Sixty-four bits that hardly any other token has. Tokens are random: three of their words, mixed, are enough, and
    /// all that every push of a client that saw a dead token has to pay for.
    var fingerprint: UInt64 {
        hex.utf8.withContiguousStorageIfAvailable { digits in
            let raw = UnsafeRawBufferPointer(digits)
            guard raw.count >= 24 else {
                return digits.reduce(0) { ($0 ^ UInt64($1)) &* 0x9E37_79B9_7F4A_7C15 }
            }
            func mix(_ value: UInt64, _ place: Int) -> UInt64 {
                let word = raw.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                let product = (value ^ word) &* 0x9E37_79B9_7F4A_7C15
                return product ^ product >> 29
            }
            return mix(mix(mix(0, raw.count / 2 - 4), raw.count - 16), raw.count - 8)
        } ?? UInt64(bitPattern: Int64(hex.hashValue))
    }

    /// Checks and keeps the written form; nil when it is empty, odd, too long or not hexadecimal.
    public init?(_ hex: String) {
        let count = hex.utf8.count
        guard count > 0, count % 2 == 0, count <= Self.digitsMax else { return nil }
        switch Self.digits(of: hex) {
        case .lower: self.hex = hex
        case .mixed: self.hex = hex.lowercased()
        case .other: return nil
        }
    }

    private enum Digits { case lower, mixed, other }

    private static func digits(of hex: String) -> Digits {
        var hex = hex
        return hex.withUTF8 { bytes in
            let raw = UnsafeRawBufferPointer(bytes)
            var at = 0
            while at + 8 <= raw.count, areLower(raw.loadUnaligned(fromByteOffset: at, as: UInt64.self)) { at += 8 }
            var digits = Digits.lower
            for byte in raw[at...] where !(byte &- 48 < 10 || byte &- 97 < 6) {
                guard byte &- 65 < 6 else { return .other }
                digits = .mixed
            }
            return digits
        }
    }

    /// Whether all eight bytes are lower-case digits: of each, a sum's top bit tells whether it is at least `0`, `a`, or
    /// behind `9`, `f`. Bytes above 127, whose sums would carry into the next, are none.
    private static func areLower(_ word: UInt64) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let from0 = word &+ ones &* (128 - 48)
        let behind9 = word &+ ones &* (128 - 58)
        let fromA = word &+ ones &* (128 - 97)
        let behindF = word &+ ones &* (128 - 103)
        let isDigit = (from0 & ~behind9 | fromA & ~behindF) & ~word
        return isDigit & (ones &* 128) == ones &* 128
    }

    /// Writes raw token bytes as hexadecimal; nil when there are none or too many.
    public init?(bytes: some Collection<UInt8>) {
        guard !bytes.isEmpty, bytes.count <= Self.digitsMax / 2 else { return nil }
        hex = Hex.string(bytes)
    }
}

extension DeviceToken: CustomStringConvertible, CustomDebugStringConvertible {
    public var description: String { "***" }
    public var debugDescription: String { "***" }
}
