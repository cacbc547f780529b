// SPDX-License-Identifier: Apache-2.0
import Digits
import Glibc
import PushCore

/// Reads the compact records in hashes: numbers, words, and texts with a length prefix.
///
/// Every read is checked, because Redis may contain another version or damaged data, which then reads as nil. It refers
/// to the given bytes, which must outlive it.
struct CompactText {
    private let bytes: UnsafeRawBufferPointer
    private var next = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isEmpty: Bool { next >= bytes.count }
    /// The bytes that are not read.
    var rest: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[next...]) }

    /// Skips one byte if it matches.
    mutating func skip(_ byte: UInt8) -> Bool {
        guard next < bytes.count, bytes[next] == byte else { return false }
        next += 1
        return true
    }

    /// Skips these bytes if they match.
    mutating func skip(_ text: StaticString) -> Bool {
        let count = text.utf8CodeUnitCount
        guard count <= bytes.count - next else { return false }
        guard let start = bytes.baseAddress, memcmp(start + next, text.utf8Start, count) == 0 else { return false }
        next += count
        return true
    }

    /// Skips `count` bytes if they equal this text.
    mutating func skip(_ count: Int64, ifTheyAre text: String) -> Bool {
        let isThere = text.withUTF8Bytes { text in
            guard count == text.count, count <= bytes.count - next else { return false }
            guard let start = bytes.baseAddress, let other = text.baseAddress else { return text.isEmpty }
            return memcmp(start + next, other, text.count) == 0
        }
        if isThere { next += Int(count) }
        return isThere
    }

    mutating func byte() -> UInt8? {
        guard next < bytes.count else { return nil }
        defer { next += 1 }
        return bytes[next]
    }

    /// The bytes up to a separator, which is skipped too; all remaining bytes without one.
    mutating func word(until separator: UInt8 = UInt8(ascii: " ")) -> UnsafeRawBufferPointer {
        let rest = UnsafeRawBufferPointer(rebasing: bytes[next...])
        guard let start = rest.baseAddress, let end = memchr(start, Int32(separator), rest.count) else {
            next = bytes.count
            return rest
        }
        let length = UnsafeRawPointer(end) - start
        next += length + 1
        return UnsafeRawBufferPointer(rebasing: rest[..<length])
    }

    /// A word of at most `bytes` bytes as text, with invalid UTF-8 repaired; nil for a longer one, which is skipped
    /// too.
    mutating func text(until separator: UInt8 = UInt8(ascii: " "), atMost bytes: Int = InputLimit.name)
        -> String?
    {
        Self.text(word(until: separator), atMost: bytes)
    }

    /// - Returns: nil for more than `bytes` bytes, so that no oversized text is compared or hashed.
    static func text(_ utf8: UnsafeRawBufferPointer, atMost bytes: Int) -> String? {
        guard utf8.count <= bytes else { return nil }
        let text = String(decoding: utf8, as: UTF8.self)
        // After the repair an invalid byte takes three.
        return text.utf8.count <= bytes ? text : nil
    }

    /// A decimal number. The word is skipped even if it is not a number.
    mutating func number(until separator: UInt8 = UInt8(ascii: " ")) -> Int64? {
        Decimal.signed(word(until: separator))
    }

    /// `<length>:<bytes>` within the limit; longer ones are skipped and read as nil.
    mutating func string(atMost most: Int = InputLimit.name) -> String? {
        guard let count = number(until: UInt8(ascii: ":")) else { return nil }
        return string(count, atMost: most)
    }

    /// The bytes of `<length>:<bytes>`, if they are present.
    mutating func content() -> UnsafeRawBufferPointer? {
        guard let count = number(until: UInt8(ascii: ":")), count >= 0, count <= bytes.count - next else { return nil }
        defer { next += Int(count) }
        return UnsafeRawBufferPointer(rebasing: bytes[next..<(next + Int(count))])
    }

    /// A text of `count` bytes, if they are present.
    mutating func string(_ count: Int64, atMost most: Int = InputLimit.name) -> String? {
        guard count >= 0, count <= bytes.count - next else { return nil }
        let start = next
        next += Int(count)
        return Self.text(UnsafeRawBufferPointer(rebasing: bytes[start..<next]), atMost: most)
    }

    /// Like `string`, or `-` for none.
    mutating func optional(atMost most: Int = InputLimit.name) -> String? {
        skip(UInt8(ascii: "-")) ? nil : string(atMost: most)
    }

    /// Writes the form that `optional` reads.
    static func append(_ text: String?, to record: inout String) {
        guard let text else {
            record += "-"
            return
        }
        record += "\(text.utf8.count):"
        record += text
    }
}
