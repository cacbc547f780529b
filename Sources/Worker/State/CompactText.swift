import Digits
import Glibc

/// Reads the compact records that hashes hold: numbers, words, and texts with their length before them.
///
/// Every read is checked: what stands in Redis may be of another version or broken, and then reads as nil. Looks into the
/// bytes it was made of, which must outlive it.
struct CompactText {
    private let bytes: UnsafeRawBufferPointer
    private var next = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isEmpty: Bool { next >= bytes.count }

    /// Takes one byte if it is this one.
    mutating func skip(_ byte: UInt8) -> Bool {
        guard next < bytes.count, bytes[next] == byte else { return false }
        next += 1
        return true
    }

    /// Takes these bytes if they are what comes next.
    mutating func skip(_ text: StaticString) -> Bool {
        let count = text.utf8CodeUnitCount
        guard count <= bytes.count - next else { return false }
        guard let start = bytes.baseAddress, memcmp(start + next, text.utf8Start, count) == 0 else { return false }
        next += count
        return true
    }

    /// Takes so many bytes if they are this text's.
    mutating func skip(_ count: Int64, ifTheyAre text: String) -> Bool {
        let isThere = text.utf8.span.withUnsafeBytes { text in
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

    /// The bytes up to a separator, which is taken too; all that is left where there is none.
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

    /// A word of at most `bytes` bytes as text, broken UTF-8 repaired; nil for a longer one, which is taken too.
    mutating func text(until separator: UInt8 = UInt8(ascii: " "), atMost bytes: Int = EventReader.Limit.name)
        -> String?
    {
        Self.text(word(until: separator), atMost: bytes)
    }

    /// Nil for more than `bytes` bytes: nobody compares or hashes what is over its bound.
    static func text(_ utf8: UnsafeRawBufferPointer, atMost bytes: Int) -> String? {
        guard utf8.count <= bytes else { return nil }
        let text = String(decoding: utf8, as: UTF8.self)
        // Repaired, a broken byte takes three.
        return text.utf8.count <= bytes ? text : nil
    }

    /// A word that is a decimal number; the word is taken whether it is one or not.
    mutating func number(until separator: UInt8 = UInt8(ascii: " ")) -> Int64? {
        Decimal.signed(word(until: separator))
    }

    /// `<length>:<bytes>` of at most so many bytes; longer ones are taken and read as nil.
    mutating func string(atMost most: Int = EventReader.Limit.name) -> String? {
        guard let count = number(until: UInt8(ascii: ":")) else { return nil }
        return string(count, atMost: most)
    }

    /// So many bytes, if they are there.
    mutating func string(_ count: Int64, atMost most: Int = EventReader.Limit.name) -> String? {
        guard count >= 0, count <= bytes.count - next else { return nil }
        let start = next
        next += Int(count)
        return Self.text(UnsafeRawBufferPointer(rebasing: bytes[start..<next]), atMost: most)
    }

    /// As `string`, or `-` for none.
    mutating func optional(atMost most: Int = EventReader.Limit.name) -> String? {
        skip(UInt8(ascii: "-")) ? nil : string(atMost: most)
    }

    /// Writes what `optional` reads.
    static func append(_ text: String?, to record: inout String) {
        guard let text else {
            record += "-"
            return
        }
        record += "\(text.utf8.count):"
        record += text
    }
}
