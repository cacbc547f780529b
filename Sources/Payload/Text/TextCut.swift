import JSON

/// Cuts text on the border of a grapheme cluster and sets `…`, so that no accent, flag or family falls apart.
enum TextCut {
    private static let ellipsis = "…"
    private static let ellipsisBytes = 3

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
