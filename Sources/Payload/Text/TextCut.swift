// SPDX-License-Identifier: Apache-2.0
import JSON

/// Cuts text at a grapheme boundary and appends `…`, so that no accent, flag or family breaks.
///
/// A text is cut to its byte limit before graphemes are examined, so the rest costs nothing.
public enum TextCut {
    static let ellipsis = "…"
    static let ellipsisBytes = 3

    /// At most `limit` characters, and `4 × limit + 64` bytes, because a cluster has no maximum length (contract
    /// section 0).
    public static func characters(_ text: String, limit: Int) -> String {
        if text.utf8.count <= limit { return text }
        let bytesMax = bytes(ofCharacters: limit)
        let text = head(text, beyond: bytesMax)
        var end = text.startIndex
        // The end of the text after a cut, with room for the `…`.
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

    /// The byte limit for that number of characters (contract section 0).
    public static func bytes(ofCharacters limit: Int) -> Int { 4 * limit + 64 }

    /// The first `bytes` bytes plus the rest of the scalar at that point. A shorter text is returned whole.
    static func head(_ text: String, beyond bytes: Int) -> Substring {
        let utf8 = text.utf8
        guard var end = utf8.index(utf8.startIndex, offsetBy: bytes + 1, limitedBy: utf8.endIndex) else {
            return text[...]
        }
        while end < utf8.endIndex, utf8[end] & 0xC0 == 0x80 { end = utf8.index(after: end) }
        return text[..<end]
    }
}

/// Possible cut positions of a payload's body: after each character within Apple's limit.
///
/// A reference type, because a template is copied for each push, and only one near the limit has this.
final class BodyCut: Sendable {
    /// Bytes of JSON from the body's start to the end of each character, rising.
    private let ends: [UInt16]

    /// - Parameters:
    ///   - text: the body before escaping.
    ///   - limit: characters after this number of bytes are not needed.
    init(_ text: String, limit: Int) {
        var ends: [UInt16] = []
        var used = 0
        // Each byte takes at least one.
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

    /// The largest number of body bytes, at least one character, that fit into `room` together with a `…`; nil if none
    /// fit.
    func length(in room: Int) -> Int? {
        let most = room - TextCut.ellipsisBytes
        // The first position that is too far.
        var low = 0
        var high = ends.count
        while low < high {
            let middle = (low + high) / 2
            if Int(ends[middle]) <= most { low = middle + 1 } else { high = middle }
        }
        return low > 0 ? Int(ends[low - 1]) : nil
    }
}
