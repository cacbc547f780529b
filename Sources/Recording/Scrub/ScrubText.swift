// SPDX-License-Identifier: Apache-2.0
internal import Digits

/// Replacements for texts, of the same length in bytes. The length in characters is the same too, except for scripts
/// with joining letters.
enum ScrubText {
    /// Every letter becomes one of the same UTF-8 width, every digit becomes 0. Spaces, ASCII punctuation and combining
    /// characters remain. So limits apply to the replacement as to the original.
    static func text(_ text: String) -> String {
        var out = ""
        out.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars { out.unicodeScalars.append(standIn(for: scalar)) }
        return out
    }

    /// For bytes that are not UTF-8 too: letters and digits as in `text`, other bytes above ASCII become `?`.
    static func bytes(_ bytes: [UInt8]) -> [UInt8] {
        if let text = String(validating: bytes, as: UTF8.self) { return Array(Self.text(text).utf8) }
        return bytes.map { $0 < 0x80 ? ascii($0) : UInt8(ascii: "?") }
    }

    /// Replaces a number of seven or more digits, because it may identify a person.
    static func number(_ text: String) -> String {
        guard text.utf8.count(where: isDigit) >= 7 else { return text }
        // Other digits before an exponent could exceed a number's range.
        if text.utf8.contains(where: { $0 | 0x20 == UInt8(ascii: "e") }) { return "1111111" }
        // Not 0, because no number may begin with 0.
        return String(decoding: text.utf8.map { isDigit($0) ? UInt8(ascii: "1") : $0 }, as: UTF8.self)
    }

    static func phone(_ text: String) -> String {
        String(decoding: bytes(Array(text.utf8)), as: UTF8.self)
    }

    /// A URL of the same length with a reserved domain (RFC 2606).
    static func url(_ text: String) -> String {
        let head = "https://example.invalid/"
        let count = text.utf8.count
        return count < head.utf8.count ? Self.text(text) : head + String(repeating: "x", count: count - head.utf8.count)
    }

    /// - Returns: whether the text looks like a protocol word. Anything else is a text in the place of a word.
    static func isWord(_ text: String) -> Bool {
        text.utf8.count <= 256 && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    private static func standIn(for scalar: Unicode.Scalar) -> Unicode.Scalar {
        switch scalar.value {
        case ..<0x80: Unicode.Scalar(ascii(UInt8(truncatingIfNeeded: scalar.value)))
        // Characters that combine with others: combining marks, joiner, variation selectors, skin tones, regional
        // indicators.
        case _ where scalar.properties.isGraphemeExtend, 0x200D, 0x1F3FB...0x1F3FF: scalar
        case 0x1F1E6...0x1F1FF: "\u{1F1E6}"
        case ..<0x800: "ж"
        case ..<0x10000: "文"
        default: "😀"
        }
    }

    private static func ascii(_ byte: UInt8) -> UInt8 {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt8(ascii: "x")
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt8(ascii: "X")
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt8(ascii: "0")
        default: byte
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }
}
