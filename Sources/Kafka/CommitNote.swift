// SPDX-License-Identifier: Apache-2.0
import Digits

/// An offset of the owner's, not above the committed one, that goes along with each commit, in front of its settled offsets:
/// `carillon-note:<number>:<rest>`.
///
/// The next member of the group to which one of the partitions goes reads it. An older worker ignores the whole metadata.
struct CommitNote {
    private static let prefix = Array("carillon-note:".utf8)
    /// The length of the prefix, the longest number and the colon after it.
    static let maxCharacters = prefix.count + 20

    static func metadata(_ note: Int64, _ rest: [UInt8]) -> [UInt8] {
        prefix + Array("\(max(0, note)):".utf8) + rest
    }

    /// - Returns: The number, nil where there is none, and the rest.
    static func split(_ metadata: UnsafeRawBufferPointer) -> (note: Int64?, rest: UnsafeRawBufferPointer) {
        guard metadata.starts(with: prefix) else { return (nil, metadata) }
        let text = metadata.dropFirst(prefix.count)
        guard let colon = text.prefix(20).firstIndex(of: UInt8(ascii: ":")),
            let number = Decimal.unsigned(UnsafeRawBufferPointer(rebasing: text[..<colon])), number <= UInt64(Int64.max)
        else { return (nil, metadata) }
        return (Int64(number), UnsafeRawBufferPointer(rebasing: text[(colon + 1)...]))
    }
}
