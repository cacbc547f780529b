// SPDX-License-Identifier: Apache-2.0
internal import Digits

/// Writes JSON text directly as bytes: commas, escapes and numbers, without intermediate strings.
///
/// The caller must pair begin and end calls. The bytes may be taken or cleared between documents. Not shared between
/// threads. The bytes are in the writer's own memory: an array would check for sharing at each of a push's several
/// hundred appends.
public struct JSONWriter: ~Copyable {
    @usableFromInline var base: UnsafeMutableRawPointer
    @usableFromInline var capacity: Int
    @usableFromInline var filled = 0
    @usableFromInline var needsComma = false

    /// Bytes written so far.
    public var count: Int { filled }

    public init(reservingCapacity capacity: Int = 0) {
        self.capacity = max(64, capacity)
        base = .allocate(byteCount: self.capacity, alignment: 1)
    }

    deinit { base.deallocate() }

    /// A copy of the bytes.
    public var bytes: [UInt8] { withBytes { [UInt8]($0) } }

    /// Gives access to the bytes during `body`.
    public func withBytes<Result: ~Copyable, Fault: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Fault) -> Result
    ) throws(Fault) -> Result {
        try body(UnsafeRawBufferPointer(start: base, count: count))
    }

    /// A copy of a part of the bytes. The range must be inside them.
    public func bytes(in range: Range<Int>) -> [UInt8] {
        withBytes { [UInt8](UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    /// Replaces a part of the bytes. The range must be inside them.
    public mutating func replace(_ range: Range<Int>, with other: [UInt8]) {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "JSONWriter: a range that was not written")
        makeRoom(other.count)
        let tail = count &- range.upperBound
        let start = base + range.lowerBound
        (start + other.count).copyMemory(from: base + range.upperBound, byteCount: tail)
        other.withUnsafeBytes { if let from = $0.baseAddress { start.copyMemory(from: from, byteCount: $0.count) } }
        filled = range.lowerBound &+ other.count &+ tail
    }

    /// Starts a new document in the same memory.
    public mutating func clear() {
        filled = 0
        needsComma = false
    }

    public mutating func beginObject() { open(UInt8(ascii: "{")) }
    public mutating func endObject() { close(UInt8(ascii: "}")) }
    public mutating func beginArray() { open(UInt8(ascii: "[")) }
    public mutating func endArray() { close(UInt8(ascii: "]")) }

    /// A key that needs no escape. Inlined, so that its bytes are constants.
    @inlinable @inline(__always)
    public mutating func key(_ name: StaticString) {
        makeRoom(name.utf8CodeUnitCount &+ 4)
        comma()
        put(UInt8(ascii: "\""))
        put(UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        // `":`, lowest byte first.
        base.storeBytes(of: (0x3A22 as UInt16).littleEndian, toByteOffset: filled, as: UInt16.self)
        filled &+= 2
        needsComma = false
    }

    /// A key from outside.
    public mutating func key(escaping name: String) {
        string(name)
        append(UInt8(ascii: ":"))
        needsComma = false
    }

    public mutating func string(_ text: String) {
        text.withUTF8Bytes { string($0) }
    }

    /// A string made of two parts.
    public mutating func string(_ first: String, _ second: String) {
        first.withUTF8Bytes { string($0) }
        // Removes the closing quote.
        filled &-= 1
        second.withUTF8Bytes { text($0) }
    }

    /// A string of UTF-8 bytes. Invalid UTF-8 would be written unchanged.
    public mutating func string(_ utf8: UnsafeRawBufferPointer) {
        makeRoom(2)
        comma()
        put(UInt8(ascii: "\""))
        text(utf8)
    }

    /// A string of `length` characters without escapes, which `write` puts in their place.
    public mutating func string(plain length: Int, _ write: (UnsafeMutableRawPointer) -> Void) {
        makeRoom(length &+ 3)
        comma()
        put(UInt8(ascii: "\""))
        write(base + count)
        filled &+= length
        put(UInt8(ascii: "\""))
        needsComma = true
    }

    /// The rest of an open string, and its closing quote.
    private mutating func text(_ text: UnsafeRawBufferPointer) {
        makeRoom(text.count &+ 1 &+ 8)
        // Text almost never needs an escape, so it is copied first and checked in its new place.
        let start = count
        put(text)
        if let first = firstEscaped(from: start) {
            filled = first
            escape(UnsafeRawBufferPointer(rebasing: text[(first &- start)...]))
        }
        put(UInt8(ascii: "\""))
        needsComma = true
    }

    public mutating func int(_ value: Int64) {
        makeRoom(22)
        comma()
        if value < 0 { put(UInt8(ascii: "-")) }
        filled &+= Decimal.write(value.magnitude, to: base + count)
        needsComma = true
    }

    public mutating func int(_ value: Int) { int(Int64(value)) }

    /// The shortest text that reads back as the same number; null for values without JSON form.
    public mutating func double(_ value: Double) { value.isFinite ? number(value.description) : null() }

    public mutating func bool(_ value: Bool) { word(value ? "true" : "false") }

    public mutating func null() { word("null") }

    /// A value that is JSON already, copied unchanged.
    public mutating func raw(_ json: UnsafeRawBufferPointer) {
        makeRoom(json.count &+ 1)
        comma()
        put(json)
        needsComma = true
    }

    public mutating func raw(_ json: [UInt8]) { json.withUnsafeBytes { raw($0) } }

    /// The text of a number, as its sender wrote it.
    public mutating func number(_ text: String) {
        text.withUTF8Bytes { raw($0) }
    }

    // Whole members, for keys that need no escape.

    @inlinable @inline(__always)
    public mutating func member(_ name: StaticString, _ value: String) {
        key(name)
        string(value)
    }

    /// Writes nothing if the value is absent.
    public mutating func member(_ name: StaticString, ifPresent value: String?) {
        guard let value else { return }
        member(name, value)
    }

    @inlinable @inline(__always)
    public mutating func member(_ name: StaticString, _ value: Int64) {
        key(name)
        int(value)
    }

    public mutating func member(_ name: StaticString, _ value: Bool) {
        key(name)
        bool(value)
    }

    private mutating func word(_ text: StaticString) {
        raw(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    private mutating func open(_ bracket: UInt8) {
        makeRoom(2)
        comma()
        put(bracket)
        needsComma = false
    }

    private mutating func close(_ bracket: UInt8) {
        append(bracket)
        needsComma = true
    }

    // MARK: Bytes

    /// The first byte from `start` that RFC 8259 section 7 requires to be escaped: quote, backslash, control.
    ///
    /// Checks eight bytes at a time; the last group may extend beyond the text, where memory is available. The top bit
    /// of each matching byte is set. Bytes above a match may be false positives, so the lowest one counts.
    private func firstEscaped(from start: Int) -> Int? {
        let ones: UInt64 = 0x0101_0101_0101_0101
        var at = start
        while at < count {
            let word = UInt64(littleEndian: base.loadUnaligned(fromByteOffset: at, as: UInt64.self))
            let quote = word ^ (ones &* 0x22)
            let backslash = word ^ (ones &* 0x5C)
            let found =
                ((word &- ones &* 0x20) & ~word | (quote &- ones) & ~quote | (backslash &- ones) & ~backslash)
                & (ones &* 0x80)
            if found != 0 {
                let first = at &+ found.trailingZeroBitCount / 8
                return first < count ? first : nil
            }
            at &+= 8
        }
        return nil
    }

    /// Writes text that needs escapes. Leaves room for the closing quote.
    private mutating func escape(_ text: UnsafeRawBufferPointer) {
        makeRoom(text.count)
        for byte in text {
            // The longest escape, and the quote.
            makeRoom(7)
            switch byte {
            case 0..<0x20, UInt8(ascii: "\""), UInt8(ascii: "\\"): escape(byte)
            default: put(byte)
            }
        }
    }

    private mutating func escape(_ byte: UInt8) {
        put(UInt8(ascii: "\\"))
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): put(byte)
        case 0x0A: put(UInt8(ascii: "n"))
        case 0x0D: put(UInt8(ascii: "r"))
        case 0x09: put(UInt8(ascii: "t"))
        default:
            put(UInt8(ascii: "u"))
            put(UInt8(ascii: "0"))
            put(UInt8(ascii: "0"))
            put(Self.hexDigit(byte &>> 4))
            put(Self.hexDigit(byte & 15))
        }
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") &+ value : UInt8(ascii: "a") &+ (value &- 10)
    }

    private mutating func append(_ byte: UInt8) {
        makeRoom(1)
        put(byte)
    }

    @inlinable @inline(__always)
    mutating func comma() {
        if needsComma { put(UInt8(ascii: ",")) }
    }

    /// The caller has made room.
    @inlinable @inline(__always)
    mutating func put(_ byte: UInt8) {
        base.storeBytes(of: byte, toByteOffset: filled, as: UInt8.self)
        filled &+= 1
    }

    /// The caller has made room.
    @inlinable @inline(__always)
    mutating func put(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        (base + filled).copyMemory(from: start, byteCount: bytes.count)
        filled &+= bytes.count
    }

    @inlinable @inline(__always)
    mutating func makeRoom(_ more: Int) {
        if more > capacity &- filled { grow(more) }
    }

    @usableFromInline
    mutating func grow(_ more: Int) {
        let wanted = max(capacity &* 2, count &+ more)
        let other = UnsafeMutableRawPointer.allocate(byteCount: wanted, alignment: 1)
        other.copyMemory(from: base, byteCount: count)
        base.deallocate()
        base = other
        capacity = wanted
    }
}
