import JSON

/// Cuts text on the border of a grapheme cluster and sets `…`, so that no accent, flag or family falls apart.
///
/// A text is cut to its bound in bytes before clusters are looked for: what lies behind costs nothing.
public enum TextCut {
    static let ellipsis = "…"
    static let ellipsisBytes = 3

    /// At most `limit` characters, and `4 × limit + 64` bytes, since a cluster has no end of its own (contract section 0).
    public static func characters(_ text: String, limit: Int) -> String {
        if text.utf8.count <= limit { return text }
        let bytesMax = bytes(ofCharacters: limit)
        let text = head(text, beyond: bytesMax)
        var end = text.startIndex
        // Where the text ends if something is to be cut: room is left for the `…`.
        var cut = text.startIndex
        var count = 0
        var bytes = 0
        while end < text.endIndex {
            let next = text.index(after: end)
            count += 1
            bytes += text.utf8.distance(from: end, to: next)
            if count > limit || bytes > bytesMax { return String(text[..<cut]) + ellipsis }
            end = next
            if count < limit, bytes + ellipsisBytes <= bytesMax { cut = end }
        }
        return String(text)
    }

    /// What so many characters may take (contract section 0).
    public static func bytes(ofCharacters limit: Int) -> Int { 4 * limit + 64 }

    /// The first `bytes` bytes and the rest of the scalar that passes them; a text that is no longer as it is.
    static func head(_ text: String, beyond bytes: Int) -> Substring {
        let utf8 = text.utf8
        guard var end = utf8.index(utf8.startIndex, offsetBy: bytes + 1, limitedBy: utf8.endIndex) else {
            return text[...]
        }
        while end < utf8.endIndex, utf8[end] & 0xC0 == 0x80 { end = utf8.index(after: end) }
        return text[..<end]
    }
}

/// Where the body of a payload may be cut: behind each of its characters that lie within Apple's limit.
///
/// By reference, since a template is copied for each push, and only one that is near the limit has this.
final class BodyCut: Sendable {
    /// Bytes of JSON from the body's beginning to the end of each character, rising.
    private let ends: [UInt16]

    /// - Parameters:
    ///   - text: the body before escaping.
    ///   - limit: what lies behind so many bytes is of no use.
    init(_ text: String, limit: Int) {
        var ends: [UInt16] = []
        var used = 0
        // A byte takes one at least.
        let text = TextCut.head(text, beyond: limit)
        var index = text.startIndex
        while index < text.endIndex {
            let next = text.index(after: index)
            for byte in text[index..<next].utf8 { used += JSONWriter.escapedLength(of: byte) }
            guard used <= limit, let end = UInt16(exactly: used) else { break }
            ends.append(end)
            index = next
        }
        self.ends = ends
    }

    /// The most bytes of the body, one character at least, that fit into `room` with a `…` behind them; nil: not even one.
    func length(in room: Int) -> Int? {
        let most = room - TextCut.ellipsisBytes
        // The first end that is too far.
        var low = 0
        var high = ends.count
        while low < high {
            let middle = (low + high) / 2
            if Int(ends[middle]) <= most { low = middle + 1 } else { high = middle }
        }
        return low > 0 ? Int(ends[low - 1]) : nil
    }
}
