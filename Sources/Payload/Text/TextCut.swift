import JSON

/// Cuts text on the border of a grapheme cluster and sets `…`, so that no accent, flag or family falls apart.
public enum TextCut {
    private static let ellipsis = "…"
    private static let ellipsisBytes = 3

    /// At most `limit` characters (grapheme clusters), the `…` among them.
    public static func characters(_ text: String, limit: Int) -> String {
        // No text has more characters than bytes: most are not looked at any further.
        guard limit > 0, text.utf8.count > limit else { return limit > 0 ? text : "" }
        guard let end = text.index(text.startIndex, offsetBy: limit, limitedBy: text.endIndex), end < text.endIndex
        else {
            return text
        }
        return text[..<text.index(before: end)] + ellipsis
    }

    /// The longest beginning, of one character at least, that takes at most `limit` bytes inside a JSON string with its
    /// `…`; nil where not even that fits.
    static func escapedBytes(_ text: String, limit: Int) -> String? {
        var used = ellipsisBytes
        var end = text.startIndex
        while end < text.endIndex {
            let next = text.index(after: end)
            for byte in text[end..<next].utf8 { used += JSONWriter.escapedLength(of: byte) }
            if used > limit { break }
            end = next
        }
        return end == text.startIndex ? nil : text[..<end] + ellipsis
    }
}
