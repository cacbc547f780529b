// SPDX-License-Identifier: Apache-2.0
import Digits

/// A device token for the request path: lower-case hexadecimal, checked once.
///
/// Only hex digits can get into `:path`, so a token from outside can neither break a request nor change its path. Apple
/// asks not to assume a length; there is only an upper bound. Never printed: `description` is a mask.
public struct DeviceToken: Sendable, Hashable {
    /// Lower-case hexadecimal digits.
    public let hex: String

    /// Longest accepted form, 256 bytes of token. Apple documents no length; present tokens have 64 digits, those of
    /// Live Activities about 200.
    public static var digitsMax: Int { 512 }

    /// Number of digits.
    var count: Int { hex.utf8.count }

    /// Writes the digits. The target must have room.
    func write(to target: UnsafeMutableRawPointer) {
        hex.withUTF8Bytes { digits in
            if let start = digits.baseAddress { target.copyMemory(from: start, byteCount: digits.count) }
        }
    }

    /// Sixty-four nearly unique bits. Tokens are random, so mixing three of their words is enough, and cheap for every
    /// push of a client that has seen a dead token.
    var fingerprint: UInt64 {
        hex.withUTF8Bytes { raw in
            guard raw.count >= 24 else {
                return raw.reduce(0) { ($0 ^ UInt64($1)) &* 0x9E37_79B9_7F4A_7C15 }
            }
            func mix(_ value: UInt64, _ place: Int) -> UInt64 {
                let word = raw.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                let product = (value ^ word) &* 0x9E37_79B9_7F4A_7C15
                return product ^ product >> 29
            }
            return mix(mix(mix(0, raw.count / 2 - 4), raw.count - 16), raw.count - 8)
        }
    }

    /// Whether the text is a token as this type keeps it: in lower case.
    public static func isKept(_ hex: String) -> Bool { hasLength(hex) && digits(of: hex) == .lower }

    private static func hasLength(_ hex: String) -> Bool {
        let count = hex.utf8.count
        return count > 0 && count % 2 == 0 && count <= digitsMax
    }

    /// Checks and keeps the text; nil if it is empty, odd, too long or not hexadecimal.
    public init?(_ hex: String) {
        guard Self.hasLength(hex) else { return nil }
        switch Self.digits(of: hex) {
        case .lower: self.hex = hex
        case .mixed: self.hex = hex.lowercased()
        case .other: return nil
        }
    }

    private enum Digits { case lower, mixed, other }

    private static func digits(of hex: String) -> Digits {
        hex.withUTF8Bytes { raw in
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

    /// - Returns: whether all eight bytes are lower-case hex digits. The top bit of a sum shows whether a byte is at
    ///   least `0` or `a`, or above `9` or `f`. Bytes above 127, which would carry into the next byte, are excluded.
    private static func areLower(_ word: UInt64) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let from0 = word &+ ones &* (128 - 48)
        let behind9 = word &+ ones &* (128 - 58)
        let fromA = word &+ ones &* (128 - 97)
        let behindF = word &+ ones &* (128 - 103)
        let isDigit = (from0 & ~behind9 | fromA & ~behindF) & ~word
        return isDigit & (ones &* 128) == ones &* 128
    }

    /// Writes raw token bytes as hexadecimal; nil if there are none or too many.
    public init?(bytes: some Collection<UInt8>) {
        guard !bytes.isEmpty, bytes.count <= Self.digitsMax / 2 else { return nil }
        hex = Hex.string(bytes)
    }
}

extension DeviceToken {
    /// No token: the push's owner gives its content again (`PushTable.dropContent`).
    static var none: DeviceToken { DeviceToken(kept: "") }

    private init(kept hex: String) { self.hex = hex }
}

extension DeviceToken: CustomStringConvertible, CustomDebugStringConvertible {
    public var description: String { "***" }
    public var debugDescription: String { "***" }
}
