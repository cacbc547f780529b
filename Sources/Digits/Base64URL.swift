// SPDX-License-Identifier: Apache-2.0
/// Base64 with the URL alphabet and without padding, as JSON Web Tokens use it (RFC 7515 section 2).
public enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// The ASCII text of `bytes`.
    public static func encode(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count * 4 + 2) / 3)
        Base64.forEachCharacter(of: bytes, alphabet) { text.append($0) }
        return text
    }

    /// The bytes of unpadded text; nil for an invalid character, padding, an impossible length or non-zero trailing
    /// bits.
    public static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        // Four characters encode three bytes. One remaining character encodes none.
        guard text.count % 4 != 1 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count * 3 / 4)
        var bits: UInt32 = 0
        var held = 0
        for character in text {
            guard let value = value(character) else { return nil }
            bits = (bits << 6 | value) & 0xFFFF
            held += 6
            if held >= 8 {
                held -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(held)))
            }
        }
        // Each value has one spelling: unused bits must be zero (RFC 4648 section 3.5).
        guard bits & (1 << UInt32(held) - 1) == 0 else { return nil }
        return bytes
    }

    private static func value(_ character: UInt8) -> UInt32? {
        switch character {
        case 0x41...0x5A: UInt32(character) - 0x41
        case 0x61...0x7A: UInt32(character) - 0x61 + 26
        case 0x30...0x39: UInt32(character) - 0x30 + 52
        case 0x2D: 62
        case 0x5F: 63
        default: nil
        }
    }
}
