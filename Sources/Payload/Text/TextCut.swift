import JSON

/// Cuts text on the border of a grapheme cluster and sets `…`, so that no accent, flag or family falls apart.
enum TextCut {
    static let ellipsis = "…"
    static let ellipsisBytes = 3

    /// At most `limit` characters, and `4 × limit + 64` bytes, since a cluster has no end of its own (contract section 0).
    static func characters(_ text: String, limit: Int) -> String {
        let bytesMax = 4 * limit + 64
        if text.utf8.count <= limit { return text }
        var end = text.startIndex
        // Where the text ends if something is to be cut: room is left for the `…`.
        var cut = text.startIndex
        var count = 0
        var bytes = 0
        while end < text.endIndex {
            let next = text.index(after: end)
            count += 1
            bytes += text.utf8.distance(from: end, to: next)
            if count > limit || bytes > bytesMax { return text[..<cut] + ellipsis }
            end = next
            if count < limit, bytes + ellipsisBytes <= bytesMax { cut = end }
        }
        return text
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
