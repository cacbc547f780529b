// SPDX-License-Identifier: Apache-2.0
import Digits

/// Texts that show nothing: they are treated as absent (contract section 5, "Text of a revoke and empty texts").
public enum BlankText {
    /// Whether all of a text is white space, controls and default-ignorable code points. An empty text shows nothing.
    public static func showsNothing(_ text: String) -> Bool {
        switch text.utf8.first ?? 0 {
        // Most texts begin with a letter: in ASCII, or from U+4000 to U+9FFF.
        case 0x21...0x7E, 0xE4...0xE9: return false
        default: break
        }
        return text.unicodeScalars.allSatisfy(isBlank)
    }

    public static func isBlank(_ scalar: Unicode.Scalar) -> Bool {
        if isPlain(scalar) { return false }
        let properties = scalar.properties
        return properties.isWhitespace || properties.isDefaultIgnorableCodePoint
            || properties.generalCategory == .control
    }

    /// The ranges without any blank scalar that most texts begin with: ASCII, Latin to Cyrillic, CJK, Hangul, emoji. A look into
    /// the Unicode tables costs 2 000 instructions.
    static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x21...0x7E, 0xC0...0x34E, 0x370...0x5FF, 0x3001...0x3163, 0x3165...0xD7FF, 0x1F000...0x1FBFF: true
        default: false
        }
    }

    /// Whether no part of an alert shows anything: the text itself, or an object's title, subtitle and body, also as keys of
    /// the app's own texts.
    public static func showsNothing(alert: JSONValue) -> Bool {
        switch alert {
        case .string(let text): return showsNothing(text)
        case .object(let members):
            return members.allSatisfy { member in
                !shownKeys.containsSame(member.key) || showsNothing(part: member.value)
            }
        default: return true
        }
    }

    private static let shownKeys = [
        "title", "subtitle", "body", "loc-key", "title-loc-key", "subtitle-loc-key",
    ]

    /// A part is a text; in a Live Activity also an object with a `loc-key`.
    private static func showsNothing(part: JSONValue) -> Bool {
        switch part {
        case .string(let text): showsNothing(text)
        case .object(let members): members.isEmpty
        default: true
        }
    }
}
