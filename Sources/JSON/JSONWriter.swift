/// Writes JSON text straight into bytes: commas, escapes and numbers, without building strings on the way.
///
/// The caller keeps the order of begin and end calls; `bytes` may be taken or cleared between documents. Not shared
/// between threads.
public struct JSONWriter {
    public var bytes: [UInt8]
    private var needsComma = false

    public init(reservingCapacity capacity: Int = 0) {
        bytes = []
        bytes.reserveCapacity(capacity)
    }

    /// Starts a new document in the same storage.
    public mutating func clear() {
        bytes.removeAll(keepingCapacity: true)
        needsComma = false
    }

    public mutating func beginObject() { open(UInt8(ascii: "{")) }
    public mutating func endObject() { close(UInt8(ascii: "}")) }
    public mutating func beginArray() { open(UInt8(ascii: "[")) }
    public mutating func endArray() { close(UInt8(ascii: "]")) }

    /// A key known to need no escape.
    public mutating func key(_ name: StaticString) {
        // One append: each of them asks whether the array is shared and large enough.
        let count = name.utf8CodeUnitCount
        guard count <= 28 else { return key(escaping: name.description) }
        var text = InlineArray<32, UInt8>(repeating: UInt8(ascii: "\""))
        var at = 1
        if needsComma {
            text[0] = UInt8(ascii: ",")
            at = 2
        }
        for index in 0..<count { text[at &+ index] = name.utf8Start[index] }
        at &+= count
        text[at] = UInt8(ascii: "\"")
        text[at &+ 1] = UInt8(ascii: ":")
        text.span.withUnsafeBufferPointer { bytes.append(contentsOf: UnsafeBufferPointer(rebasing: $0[..<(at &+ 2)])) }
        needsComma = false
    }

    /// A key from outside.
    public mutating func key(escaping name: String) {
        string(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    public mutating func string(_ text: String) {
        var text = text
        text.withUTF8 { string($0) }
    }

    /// A string of UTF-8 bytes; broken UTF-8 would be written as it is.
    public mutating func string(_ utf8: UnsafeBufferPointer<UInt8>) {
        comma()
        bytes.append(UInt8(ascii: "\""))
        var start = 0
        var at = 0
        while at < utf8.count {
            let byte = utf8[at]
            if byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
                at &+= 1
                continue
            }
            if start < at { bytes.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[start..<at])) }
            escape(byte)
            at &+= 1
            start = at
        }
        if start < at { bytes.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[start..<at])) }
        bytes.append(UInt8(ascii: "\""))
        needsComma = true
    }

    public mutating func int(_ value: Int64) {
        comma()
        if value < 0 { bytes.append(UInt8(ascii: "-")) }
        digits(value.magnitude)
        needsComma = true
    }

    public mutating func int(_ value: Int) { int(Int64(value)) }

    /// The shortest text that reads back the same; null for what JSON has no word for.
    public mutating func double(_ value: Double) {
        guard value.isFinite else { return null() }
        comma()
        bytes.append(contentsOf: value.description.utf8)
        needsComma = true
    }

    public mutating func bool(_ value: Bool) {
        comma()
        bytes.append(contentsOf: value ? "true".utf8 : "false".utf8)
        needsComma = true
    }

    public mutating func null() {
        comma()
        bytes.append(contentsOf: "null".utf8)
        needsComma = true
    }

    /// A value that is JSON already, copied as it is.
    public mutating func raw(_ json: UnsafeRawBufferPointer) {
        comma()
        bytes.append(contentsOf: json)
        needsComma = true
    }

    public mutating func raw(_ json: [UInt8]) {
        comma()
        bytes.append(contentsOf: json)
        needsComma = true
    }

    /// A number as its sender wrote it.
    public mutating func number(_ text: String) {
        comma()
        bytes.append(contentsOf: text.utf8)
        needsComma = true
    }

    // Whole members, for keys known to need no escape.

    public mutating func member(_ name: StaticString, _ value: String) {
        key(name)
        string(value)
    }

    /// Nothing where the value is absent.
    public mutating func member(_ name: StaticString, ifPresent value: String?) {
        guard let value else { return }
        member(name, value)
    }

    public mutating func member(_ name: StaticString, _ value: Int64) {
        key(name)
        int(value)
    }

    public mutating func member(_ name: StaticString, _ value: Bool) {
        key(name)
        bool(value)
    }

    private mutating func comma() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
    }

    private mutating func open(_ bracket: UInt8) {
        comma()
        bytes.append(bracket)
        needsComma = false
    }

    private mutating func close(_ bracket: UInt8) {
        bytes.append(bracket)
        needsComma = true
    }

    private mutating func digits(_ value: UInt64) {
        var scratch = InlineArray<20, UInt8>(repeating: 0)
        var left = value
        var at = 20
        repeat {
            at &-= 1
            let (quotient, remainder) = left.quotientAndRemainder(dividingBy: 10)
            scratch[at] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: remainder)
            left = quotient
        } while left > 0
        for index in at..<20 { bytes.append(scratch[index]) }
    }

    /// RFC 8259 section 7: quote, backslash and controls must be escaped, nothing else.
    private mutating func escape(_ byte: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        default:
            bytes.append(contentsOf: "u00".utf8)
            bytes.append(Self.hexDigit(byte &>> 4))
            bytes.append(Self.hexDigit(byte & 15))
        }
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") &+ value : UInt8(ascii: "a") &+ (value &- 10)
    }
}
