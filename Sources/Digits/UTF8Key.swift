internal import Glibc

/// A text as a key by its bytes: equal where the bytes are, as in Redis and as the contract compares identifiers (section 0).
///
/// `String` takes for equal what normalises to the same, and hashes the normal form; both sort runs of combining marks,
/// which takes the square of a run's length.
public struct UTF8Key: Hashable, Sendable {
    public let text: String

    public init(_ text: String) {
        self.text = text
    }

    public static func == (one: UTF8Key, other: UTF8Key) -> Bool { one.text.isSame(as: other.text) }

    public func hash(into hasher: inout Hasher) {
        text.utf8.span.withUnsafeBytes { hasher.combine(bytes: $0) }
        // As String does: two texts in a row are not those that are cut elsewhere.
        hasher.combine(0xFF as UInt8)
    }
}

extension String {
    /// Whether both are the same bytes of UTF-8.
    public func isSame(as other: String) -> Bool {
        // Most that differ do so in length, which a String knows.
        guard utf8.count == other.utf8.count else { return false }
        return utf8.span.withUnsafeBytes { one in
            other.utf8.span.withUnsafeBytes { other in
                guard let one = one.baseAddress, let start = other.baseAddress else { return true }
                return memcmp(one, start, other.count) == 0
            }
        }
    }

    /// Whether there is another text, and both are the same bytes.
    public func isSame(as other: String?) -> Bool { other.map { isSame(as: $0) } ?? false }
}

extension Sequence<String> {
    /// Whether one of them has the same bytes.
    public func containsSame(_ text: String) -> Bool { contains { $0.isSame(as: text) } }
}
