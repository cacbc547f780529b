// SPDX-License-Identifier: Apache-2.0
internal import Glibc

/// A text as a key by its bytes. Two keys are equal if their bytes are, as in Redis and for the contract's identifiers
/// (section 0).
///
/// `String` compares and hashes normalised forms. Normalisation sorts runs of combining marks, which takes quadratic
/// time.
public struct UTF8Key: Hashable, Sendable {
    public let text: String

    public init(_ text: String) {
        self.text = text
    }

    public static func == (one: UTF8Key, other: UTF8Key) -> Bool { one.text.isSame(as: other.text) }

    public func hash(into hasher: inout Hasher) {
        text.withUTF8Bytes { hasher.combine(bytes: $0) }
        // As String does, so that two texts in a row differ from the same bytes split elsewhere.
        hasher.combine(0xFF as UInt8)
    }
}

extension String {
    /// - Returns: whether both have the same UTF-8 bytes.
    @inlinable
    public func isSame(as other: String) -> Bool {
        // Most different texts differ in length, which a String knows.
        utf8.count == other.utf8.count && hasBytes(of: other)
    }

    /// For two texts of one length.
    @usableFromInline
    func hasBytes(of other: String) -> Bool {
        withUTF8Bytes { one in
            other.withUTF8Bytes { other in
                guard let one = one.baseAddress, let start = other.baseAddress else { return true }
                return memcmp(one, start, other.count) == 0
            }
        }
    }

    /// - Returns: whether the other text exists and has the same bytes.
    public func isSame(as other: String?) -> Bool { other.map { isSame(as: $0) } ?? false }
}

extension Sequence<String> {
    /// - Returns: whether one of the elements has the same bytes.
    public func containsSame(_ text: String) -> Bool { contains { $0.isSame(as: text) } }
}
