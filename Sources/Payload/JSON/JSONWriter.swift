import PushCore

/// Appends JSON text (RFC 8259) to bytes, in the caller's order and without white space.
///
/// The caller sees to commas and brackets; this writes what needs care: strings and whole values.
struct JSONWriter {
    private(set) var bytes: [UInt8] = []

    /// A value nested deeper is written as null: a guard of the stack, far above what a reader lets through.
    private static let depthMax = 128

    init(capacity: Int) {
        bytes.reserveCapacity(capacity)
    }

    var count: Int { bytes.count }

    mutating func raw(_ text: StaticString) {
        text.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    mutating func raw(_ byte: UInt8) {
        bytes.append(byte)
    }

    mutating func string(_ text: String) {
        bytes.append(0x22)
        escaped(text)
        bytes.append(0x22)
    }

    /// A string's content without its quotes.
    mutating func escaped(_ text: String) {
        let isDone: Void? = text.utf8.withContiguousStorageIfAvailable { escape($0) }
        if isDone == nil {
            Array(text.utf8).withUnsafeBufferPointer { escape($0) }
        }
    }

    mutating func integer(_ number: Int64) {
        appendDecimal(number, to: &bytes)
    }

    mutating func value(_ value: JSONValue) {
        write(value, depth: 0)
    }

    mutating func member(_ key: String, _ value: JSONValue) {
        string(key)
        bytes.append(0x3a)
        self.value(value)
    }

    mutating func replace(_ range: Range<Int>, by content: JSONWriter) {
        bytes.replaceSubrange(range, with: content.bytes)
    }

    private mutating func write(_ value: JSONValue, depth: Int) {
        guard depth < Self.depthMax else { return raw("null") }
        switch value {
        case .null: raw("null")
        case .bool(let flag): flag ? raw("true") : raw("false")
        case .number(let text): number(text)
        case .string(let text): string(text)
        case .array(let elements):
            bytes.append(0x5b)
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(0x2c) }
                write(element, depth: depth + 1)
            }
            bytes.append(0x5d)
        case .object(let members):
            bytes.append(0x7b)
            for (index, member) in members.enumerated() {
                if index > 0 { bytes.append(0x2c) }
                string(member.key)
                bytes.append(0x3a)
                write(member.value, depth: depth + 1)
            }
            bytes.append(0x7d)
        }
    }

    /// As it was written; anything that is no number's alphabet would break the document.
    private mutating func number(_ text: String) {
        let isNumber =
            !text.isEmpty
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || byte == 0x2d || byte == 0x2b || byte == 0x2e || byte | 0x20 == 0x65
            }
        if isNumber { bytes.append(contentsOf: text.utf8) } else { raw("null") }
    }

    /// Runs of plain bytes are copied whole; quotes, backslashes and controls are escaped one by one.
    private mutating func escape(_ text: UnsafeBufferPointer<UInt8>) {
        var start = 0
        for index in text.indices where JSONEscape.length(of: text[index]) > 1 {
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[start..<index]))
            JSONEscape.append(text[index], to: &bytes)
            start = index + 1
        }
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[start...]))
    }
}

/// Escapes of RFC 8259, section 7.
enum JSONEscape {
    /// Bytes that a byte of UTF-8 takes within a JSON string.
    @inline(__always)
    static func length(of byte: UInt8) -> Int {
        if byte >= 0x20 { return byte == 0x22 || byte == 0x5c ? 2 : 1 }
        return short(byte) == nil ? 6 : 2
    }

    static func append(_ byte: UInt8, to bytes: inout [UInt8]) {
        bytes.append(0x5c)
        if let letter = short(byte) {
            bytes.append(letter)
        } else if byte >= 0x20 {
            bytes.append(byte)
        } else {
            bytes.append(contentsOf: [0x75, 0x30, 0x30, digit(byte >> 4), digit(byte & 15)])
        }
    }

    private static func short(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x08: 0x62
        case 0x09: 0x74
        case 0x0a: 0x6e
        case 0x0c: 0x66
        case 0x0d: 0x72
        default: nil
        }
    }

    private static func digit(_ nibble: UInt8) -> UInt8 { nibble < 10 ? 0x30 + nibble : 0x57 + nibble }
}

/// Decimal digits without a `String` on the way.
func appendDecimal(_ number: Int64, to bytes: inout [UInt8]) {
    if number < 0 { bytes.append(0x2d) }
    var rest = number.magnitude
    let start = bytes.count
    repeat {
        bytes.append(0x30 + UInt8(truncatingIfNeeded: rest % 10))
        rest /= 10
    } while rest > 0
    bytes[start...].reverse()
}
