// SPDX-License-Identifier: Apache-2.0
/// Writes JSON strings that can neither break out of a log line nor control a terminal.
enum JSONText {
    /// Appends `text` in quotes, at most `limit` bytes of it. Returns whether it was cut.
    ///
    /// RFC 8259 section 7 requires escapes for the quote, the backslash and U+0000–U+001F. Other `Unprintable`
    /// characters are escaped too.
    @discardableResult
    static func appendString(_ text: String, to out: inout [UInt8], limit: Int) -> Bool {
        out.append(UInt8(ascii: "\""))
        let end = out.count + limit
        var cut = false
        for scalar in text.unicodeScalars {
            // The longest form of one scalar has twelve bytes.
            if out.count + 12 > end {
                cut = true
                break
            }
            append(scalar, to: &out)
        }
        if cut { out.append(contentsOf: "…".utf8) }
        out.append(UInt8(ascii: "\""))
        return cut
    }

    private static func append(_ scalar: Unicode.Scalar, to out: inout [UInt8]) {
        switch scalar.value {
        case 0x22: out.append(contentsOf: [0x5C, 0x22])
        case 0x5C: out.append(contentsOf: [0x5C, 0x5C])
        case 0x0A: out.append(contentsOf: [0x5C, UInt8(ascii: "n")])
        case 0x09: out.append(contentsOf: [0x5C, UInt8(ascii: "t")])
        case 0x20...0x7E: out.append(UInt8(truncatingIfNeeded: scalar.value))
        case _ where Unprintable.contains(scalar): Unprintable.appendEscape(scalar, to: &out)
        default: out.append(contentsOf: UTF8.encode(scalar).map { Array($0) } ?? [])
        }
    }
}
