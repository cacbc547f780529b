// SPDX-License-Identifier: Apache-2.0
/// Characters of outside text that must not reach people: they control a terminal, end a line, or reverse the text
/// around them.
///
/// One rule for log lines and for command output.
public enum Unprintable {
    /// Controls (C0, DEL, and C1, which can also begin terminal sequences), line and paragraph separators, marks that
    /// set or override a direction (Unicode TR9), and the byte order mark.
    public static func contains(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x00...0x1F, 0x7F...0x9F, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF: true
        default: false
        }
    }

    /// `\u001b`: the replacement of such a character.
    static func appendEscape(_ scalar: Unicode.Scalar, to out: inout [UInt8]) {
        out.append(contentsOf: [0x5C, UInt8(ascii: "u")])
        for shift in [12, 8, 4, 0] as [UInt32] {
            let digit = UInt8(truncatingIfNeeded: (scalar.value >> shift) & 0xF)
            out.append(digit < 10 ? 48 + digit : 87 + digit)
        }
    }

    /// The text with line feeds and tabs as `\n` and `\t`, and every other such character as its number.
    public static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: contains) else { return text }
        var out: [UInt8] = []
        out.reserveCapacity(text.utf8.count + 16)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n": out.append(contentsOf: "\\n".utf8)
            case "\t": out.append(contentsOf: "\\t".utf8)
            case _ where contains(scalar): appendEscape(scalar, to: &out)
            default: out.append(contentsOf: UTF8.encode(scalar).map { Array($0) } ?? [])
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// JSON with such characters as their numbers. JSON itself escapes the controls of C0 only.
    public static func escapedJSON(_ json: String) -> String {
        func isRaw(_ scalar: Unicode.Scalar) -> Bool { scalar.value >= 0x7F && contains(scalar) }
        guard json.unicodeScalars.contains(where: isRaw) else { return json }
        var out: [UInt8] = []
        out.reserveCapacity(json.utf8.count + 16)
        for scalar in json.unicodeScalars {
            if isRaw(scalar) {
                appendEscape(scalar, to: &out)
            } else {
                out.append(contentsOf: UTF8.encode(scalar).map { Array($0) } ?? [])
            }
        }
        return String(decoding: out, as: UTF8.self)
    }
}
