internal import Digits

/// Stand-ins for texts: of the same length in bytes, and in characters but for scripts whose letters join.
enum ScrubText {
    /// Every letter becomes one of the same width in UTF-8, every digit 0; blanks, ASCII punctuation and what joins to the
    /// character before it stay, so that a text is cut and weighed as the original was.
    static func text(_ text: String) -> String {
        var out = ""
        out.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars { out.unicodeScalars.append(standIn(for: scalar)) }
        return out
    }

    /// Bytes that are no UTF-8, and text: letters and digits as in `text`, other bytes above ASCII become `?`.
    static func bytes(_ bytes: [UInt8]) -> [UInt8] {
        if let text = String(validating: bytes, as: UTF8.self) { return Array(Self.text(text).utf8) }
        return bytes.map { $0 < 0x80 ? ascii($0) : UInt8(ascii: "?") }
    }

    /// A number whose digits could be somebody's: seven or more.
    static func number(_ text: String) -> String {
        guard text.utf8.count(where: isDigit) >= 7 else { return text }
        // Other digits before an exponent could be more than a number holds.
        if text.utf8.contains(where: { $0 | 0x20 == UInt8(ascii: "e") }) { return "1111111" }
        // Not 0, which no number may begin with.
        return String(decoding: text.utf8.map { isDigit($0) ? UInt8(ascii: "1") : $0 }, as: UTF8.self)
    }

    static func phone(_ text: String) -> String {
        String(decoding: bytes(Array(text.utf8)), as: UTF8.self)
    }

    /// An address that no resolver knows (RFC 2606), of the same length.
    static func url(_ text: String) -> String {
        let head = "https://example.invalid/"
        let count = text.utf8.count
        return count < head.utf8.count ? Self.text(text) : head + String(repeating: "x", count: count - head.utf8.count)
    }

    /// Whether the text is a word of a protocol by its looks: what is not, is a text that stands in a word's place.
    static func isWord(_ text: String) -> Bool {
        text.utf8.count <= 256 && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    private static func standIn(for scalar: Unicode.Scalar) -> Unicode.Scalar {
        switch scalar.value {
        case ..<0x80: Unicode.Scalar(ascii(UInt8(truncatingIfNeeded: scalar.value)))
        // What joins to another: combining marks, the joiner, variation selectors, skin tones, halves of flags.
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
