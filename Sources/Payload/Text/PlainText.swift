// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore

/// Removes invisible harmful characters from shown text: controls, and in names also direction marks.
enum PlainText {
    /// A title or a body. Line feeds and tabs remain; other controls are removed (above all NUL, which ends a text in
    /// C).
    static func body(_ text: String) -> String {
        if isHarmless(text, formatting: false) { return text }
        return filtered(text) { !isControl($0) || $0.value == 0x0a || $0.value == 0x09 }
    }

    /// All strings of a given alert, as bodies.
    static func alert(_ value: JSONValue) -> JSONValue {
        switch value {
        case .string(let text): .string(body(text))
        case .array(let values): .array(values.map(alert))
        case .object(let members): .object(members.map { JSONValue.Member($0.key, alert($0.value)) })
        case .null, .bool, .number: value
        }
    }

    /// A name before a body, on one line. An unclosed embedding or override in it would reverse the following text
    /// (Unicode TR9, explicit formatting characters).
    static func name(_ text: String) -> String {
        if isHarmless(text, formatting: true) { return text }
        return filtered(text) { scalar in
            !isControl(scalar) && !isDirectionMark(scalar) && !(0x2028...0x2029).contains(scalar.value)
        }
    }

    private static func isDirectionMark(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x061c, 0x200e...0x200f, 0x202a...0x202e, 0x2066...0x2069: true
        default: false
        }
    }

    /// Printable ASCII, or letters far from any control: UTF-8 of a control has a byte below 0x20, 0x7F, or begins
    /// with 0xC2; where `formatting` counts, its characters begin with
    /// 0xE2, or with 0xD8 (U+061C).
    ///
    /// Inlined, so that the marks are constants.
    @inline(__always)
    private static func isHarmless(_ text: String, formatting: Bool) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let mark: UInt64 = formatting ? 0xe2 : 0xc2
        let arabic: UInt64 = formatting ? 0xd8 : 0xc2
        return text.withUTF8Bytes { bytes in
            var at = 0
            // Eight bytes at a time: sets the top bit of each matching byte.
            while at &+ 8 <= bytes.count {
                let word = bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)
                let delete = word ^ (ones &* 0x7f)
                let latin = word ^ (ones &* 0xc2)
                let other = word ^ (ones &* mark)
                let third = word ^ (ones &* arabic)
                let found =
                    (word &- ones &* 0x20) & ~word | (delete &- ones) & ~delete | (latin &- ones) & ~latin
                    | (other &- ones) & ~other | (third &- ones) & ~third
                if found & (ones &* 0x80) != 0 { return false }
                at &+= 8
            }
            while at < bytes.count {
                let byte = bytes[at]
                if byte < 0x20 || byte == 0x7f || byte == 0xc2 || UInt64(byte) == mark || UInt64(byte) == arabic {
                    return false
                }
                at &+= 1
            }
            return true
        }
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value)
    }

    private static func filtered(_ text: String, _ keeps: (Unicode.Scalar) -> Bool) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars where keeps(scalar) { result.append(scalar) }
        return String(result)
    }
}
