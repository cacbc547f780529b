// SPDX-License-Identifier: Apache-2.0
internal import Digits
internal import Glibc

/// Builds one command in wire form, in storage that the next command reuses.
///
/// Arguments are bytes: no text in one can end it early or add another (RESP counts bytes, it does not quote). Each is
/// written once, in place: room is left before it for the head of a bulk string of 10 to 99 bytes, and the few shorter
/// or longer ones are moved by the difference when they end.
public struct RedisCommand: ~Copyable {
    /// `$`, two digits and the line end.
    private static let bulkHeadBytes = 5
    /// Twenty digits, a letter before them and the line end after them.
    private static let headBytesMax = 23
    /// Free space after an open argument, for a longer head and a line end.
    private static let slack = 32

    private var base: UnsafeMutableRawPointer
    private var capacity = 4096
    private var filled = headBytesMax
    /// Where the open argument's bytes begin; 0 if none is open.
    private var open = 0
    /// Its bytes may extend to this position without more room; 0 if none is open. One comparison checks both.
    private var limit = 0

    /// Number of complete arguments, the command's name included.
    public private(set) var count = 0

    init() { base = .allocate(byteCount: capacity, alignment: 1) }

    deinit { base.deallocate() }

    /// Adds a constant word as a whole argument.
    public mutating func arg(word: StaticString) {
        arg(UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }

    /// Adds a whole argument.
    public mutating func arg(_ text: String) {
        text.withUTF8Bytes { arg($0) }
    }

    /// Adds a whole argument.
    public mutating func arg(_ bytes: [UInt8]) { bytes.withUnsafeBytes { arg($0) } }

    /// Adds a whole argument.
    public mutating func arg(_ bytes: UnsafeRawBufferPointer) {
        // Its length is known in advance, so nothing moves. Most are short words.
        guard bytes.count < 10, open == 0, let start = bytes.baseAddress else {
            part(bytes)
            return end()
        }
        makeRoom(4 &+ 10 &+ 2)
        let head = 0x0A0D_3024 &+ UInt32(truncatingIfNeeded: bytes.count) &<< 8
        (base + filled).storeBytes(of: head.littleEndian, as: UInt32.self)
        (base + filled + 4).copyMemory(from: start, byteCount: bytes.count)
        filled &+= 4 &+ bytes.count
        Self.writeLineEnd(to: base + filled)
        filled &+= 2
        count &+= 1
    }

    /// Adds a number in decimal.
    public mutating func arg(_ number: Int64) {
        part(number)
        end()
    }

    /// Adds a number in decimal.
    public mutating func arg(_ number: Int) { arg(Int64(number)) }

    /// Adds to an argument that `end()` will complete. A key is built without a String.
    public mutating func part(_ text: String) {
        text.withUTF8Bytes { part($0) }
    }

    /// Adds a constant word to an argument that `end()` will complete.
    public mutating func part(word: StaticString) {
        part(UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }

    /// Adds to an argument that `end()` will complete.
    public mutating func part(_ bytes: [UInt8]) { bytes.withUnsafeBytes { part($0) } }

    /// Adds to an argument that `end()` will complete.
    public mutating func part(_ bytes: UnsafeRawBufferPointer) {
        if filled &+ bytes.count > limit { openArgument(bytes.count) }
        if let start = bytes.baseAddress { (base + filled).copyMemory(from: start, byteCount: bytes.count) }
        filled &+= bytes.count
    }

    /// Adds one byte to an argument that `end()` will complete.
    public mutating func part(byte: UInt8) {
        if filled &+ 1 > limit { openArgument(1) }
        base.storeBytes(of: byte, toByteOffset: filled, as: UInt8.self)
        filled &+= 1
    }

    /// Adds a number in decimal to an argument that `end()` will complete.
    public mutating func part(_ number: Int64) {
        if filled &+ 20 > limit { openArgument(20) }
        if number < 0 {
            base.storeBytes(of: UInt8(ascii: "-"), toByteOffset: filled, as: UInt8.self)
            filled &+= 1
        }
        filled &+= Decimal.write(number.magnitude, to: base + filled)
    }

    /// Adds `{first:second}` to an argument that `end()` will complete: the hash tag that determines a key's slot
    /// (Redis Cluster).
    public mutating func part(hashTag first: String, _ second: String) {
        first.withUTF8Bytes { first in
            second.withUTF8Bytes { second in
                let length = first.count &+ second.count &+ 3
                if filled &+ length > limit { openArgument(length) }
                var place = base + filled
                place.storeBytes(of: UInt8(ascii: "{"), as: UInt8.self)
                place += 1
                if let start = first.baseAddress { place.copyMemory(from: start, byteCount: first.count) }
                place += first.count
                place.storeBytes(of: UInt8(ascii: ":"), as: UInt8.self)
                place += 1
                if let start = second.baseAddress { place.copyMemory(from: start, byteCount: second.count) }
                place += second.count
                place.storeBytes(of: UInt8(ascii: "}"), as: UInt8.self)
                filled &+= length
            }
        }
    }

    /// Completes the argument begun by `part`; without parts it is empty.
    public mutating func end() {
        if filled > limit { openArgument(0) }
        let length = filled &- open
        if length &- 10 < 90, length >= 10 {
            let tens = UInt32(truncatingIfNeeded: length) / 10
            let units = UInt32(truncatingIfNeeded: length) &- tens &* 10
            // `$`, both digits and the first byte of the line end, lowest byte first.
            let head = 0x0D30_3024 &+ (tens &<< 8) &+ (units &<< 16)
            let start = base + open - Self.bulkHeadBytes
            start.storeBytes(of: head.littleEndian, as: UInt32.self)
            start.storeBytes(of: UInt8(ascii: "\n"), toByteOffset: 4, as: UInt8.self)
        } else {
            writeUnusualHead(length)
        }
        Self.writeLineEnd(to: base + filled)
        filled &+= 2
        open = 0
        limit = 0
        count &+= 1
    }

    /// The head of an argument that needs more or less than the reserved room.
    private mutating func writeUnusualHead(_ length: Int) {
        let head = length < 10 ? 4 : 3 &+ Decimal.count(UInt64(length))
        let shift = head &- Self.bulkHeadBytes
        makeRoom(max(0, shift) &+ 2)
        (base + open + shift).copyMemory(from: base + open, byteCount: length)
        filled &+= shift
        let start = base + open - Self.bulkHeadBytes
        start.storeBytes(of: UInt8(ascii: "$"), as: UInt8.self)
        Self.writeLineEnd(to: start + 1 + Decimal.write(UInt64(length), to: start + 1))
    }

    /// Adds `arguments` whole arguments in the form of `withArguments`.
    public mutating func append(encoded bytes: UnsafeRawBufferPointer, arguments: Int) {
        makeRoom(bytes.count)
        if let start = bytes.baseAddress { (base + filled).copyMemory(from: start, byteCount: bytes.count) }
        filled &+= bytes.count
        count &+= arguments
    }

    mutating func reset() {
        // The storage of a giant command is freed; an ordinary one is kept.
        if capacity > 1 << 20 { resize(to: 4096) }
        filled = Self.headBytesMax
        open = 0
        limit = 0
        count = 0
    }

    /// Overwrites the storage, which may have contained a password.
    mutating func wipe() {
        reset()
        base.initializeMemory(as: UInt8.self, repeating: 0, count: capacity)
    }

    /// Completes an open argument. Returns the number of arguments.
    mutating func finish() -> Int {
        if open != 0 { end() }
        return count
    }

    /// Bytes of the complete arguments so far.
    public var encodedCount: Int { filled &- Self.headBytesMax }

    /// Gives access to the encoded arguments from byte `offset` on (an earlier `encodedCount`) during `body`.
    public func withArguments<Result>(from offset: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        let start = Self.headBytesMax &+ min(max(0, offset), encodedCount)
        return body(UnsafeRawBufferPointer(start: base + start, count: filled &- start))
    }

    /// Gives access to complete argument `index` during `body`; nil if there are fewer.
    func withArgument<Result>(_ index: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
        guard index < count else { return nil }
        return withArguments(from: 0) { bytes in
            var rest = bytes[...]
            for place in 0...index {
                // `$`, the length, the line end, the bytes, the line end: written here, so it is well formed.
                guard let lineEnd = rest.firstIndex(of: UInt8(ascii: "\r")),
                    let length = Decimal.unsigned(
                        UnsafeRawBufferPointer(rebasing: rest[(rest.startIndex + 1)..<lineEnd]))
                else { return nil }
                let argument = rest[(lineEnd + 2)...].prefix(Int(length))
                if place == index { return body(UnsafeRawBufferPointer(rebasing: argument)) }
                rest = rest[(argument.endIndex + 2)...]
            }
            return nil
        }
    }

    /// Gives access to the whole command with its head during `body`.
    func withWire<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        // The head is written right before the arguments, because its length is known only now.
        let length = 3 &+ Decimal.count(UInt64(count))
        let start = base + (Self.headBytesMax &- length)
        start.storeBytes(of: UInt8(ascii: "*"), as: UInt8.self)
        Self.writeLineEnd(to: start + 1 + Decimal.write(UInt64(count), to: start + 1))
        return body(UnsafeRawBufferPointer(start: start, count: filled &- Self.headBytesMax &+ length))
    }

    // MARK: Storage

    /// Makes room in the open argument for more bytes, a long head and both line ends; opens an argument if none is
    /// open.
    private mutating func openArgument(_ bytes: Int) {
        makeRoom(bytes &+ Self.bulkHeadBytes &+ Self.slack)
        if open == 0 {
            filled &+= Self.bulkHeadBytes
            open = filled
        }
        limit = capacity &- Self.slack
    }

    private mutating func makeRoom(_ bytes: Int) {
        if bytes > capacity &- filled { resize(to: max(capacity &* 2, filled &+ bytes)) }
    }

    private mutating func resize(to wanted: Int) {
        let other = UnsafeMutableRawPointer.allocate(byteCount: wanted, alignment: 1)
        other.copyMemory(from: base, byteCount: min(filled, wanted))
        base.deallocate()
        base = other
        capacity = wanted
    }

    private static func writeLineEnd(to place: UnsafeMutableRawPointer) {
        place.storeBytes(of: UInt16(0x0A0D).littleEndian, as: UInt16.self)
    }
}
