/// Reads the compact records that hashes hold: numbers, words, and texts with their length before them.
///
/// Every read is checked: what stands in Redis may be of another version or broken, and then reads as nil.
struct CompactText {
    private var rest: Slice<UnsafeRawBufferPointer>

    init(_ bytes: UnsafeRawBufferPointer) { rest = bytes[...] }

    var isEmpty: Bool { rest.isEmpty }

    /// Takes one byte if it is this one.
    mutating func skip(_ byte: UInt8) -> Bool {
        guard rest.first == byte else { return false }
        rest = rest.dropFirst()
        return true
    }

    mutating func byte() -> UInt8? { rest.popFirst() }

    /// The bytes up to a separator, which is taken too; all that is left where there is none.
    mutating func word(until separator: UInt8 = UInt8(ascii: " ")) -> Substring {
        let word = rest.prefix { $0 != separator }
        rest = rest.dropFirst(word.count)
        _ = skip(separator)
        return Substring(decoding: word, as: UTF8.self)
    }

    mutating func number(until separator: UInt8 = UInt8(ascii: " ")) -> Int64? { Int64(word(until: separator)) }

    /// `<length>:<bytes>`
    mutating func string() -> String? {
        guard let count = number(until: UInt8(ascii: ":")) else { return nil }
        return bytes(count)
    }

    /// So many bytes, if they are there.
    mutating func bytes(_ count: Int64) -> String? {
        guard count >= 0, count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(Int(count)) }
        return String(decoding: rest.prefix(Int(count)), as: UTF8.self)
    }

    /// As `string`, or `-` for none.
    mutating func optional() -> String? { skip(UInt8(ascii: "-")) ? nil : string() }

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
