internal import Digits

/// Builds one command, as it goes over the wire, in storage that is used again for the next one.
///
/// Arguments are bytes: no text in one can end it early or add another (RESP counts bytes, it does not quote). Each is
/// written once, at its place: before it stays room for the head of a bulk string of 10 to 99 bytes, and the few that
/// are shorter or longer are moved by the difference when they end.
public struct RedisCommand: ~Copyable {
    /// `$`, two digits and the line's end.
    private static let bulkHeadBytes = 5
    /// Twenty digits, a letter before them and the line's end behind.
    private static let headBytesMax = 23
    /// What stays free behind an open argument: a longer head moves it, and a line's end closes it.
    private static let slack = 32

    private var base: UnsafeMutableRawPointer
    private var capacity = 4096
    private var filled = headBytesMax
    /// Where the open argument's bytes begin; 0 when none is open.
    private var open = 0
    /// How far its bytes may reach before there is need of more room; 0 when none is open. One comparison asks for both.
    private var limit = 0

    /// How many arguments are complete, the command's name included.
    public private(set) var count = 0

    init() { base = .allocate(byteCount: capacity, alignment: 1) }

    deinit { base.deallocate() }

    /// Adds a word of ours as a whole argument.
    public mutating func arg(word: StaticString) {
        arg(UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }

    /// Adds a whole argument.
    public mutating func arg(_ text: String) {
        text.utf8.span.withUnsafeBufferPointer { arg(UnsafeRawBufferPointer($0)) }
    }

    /// Adds a whole argument.
    public mutating func arg(_ bytes: [UInt8]) { bytes.withUnsafeBytes { arg($0) } }

    /// Adds a whole argument.
    public mutating func arg(_ bytes: UnsafeRawBufferPointer) {
        // Its length is known before it is written, so nothing has to be moved; and most are words of a few letters.
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

    /// Adds to an argument that `end()` will complete: a key is put together without a String for it.
    public mutating func part(_ text: String) {
        text.utf8.span.withUnsafeBufferPointer { part(UnsafeRawBufferPointer($0)) }
    }

    /// Adds a word of ours to an argument that `end()` will complete.
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

    /// Adds `{first:second}` to an argument that `end()` will complete: what a key's slot is made of (Redis Cluster).
    public mutating func part(hashTag first: String, _ second: String) {
        first.utf8.span.withUnsafeBytes { first in
            second.utf8.span.withUnsafeBytes { second in
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

    /// Completes the argument that `part` began; without parts it is empty.
    public mutating func end() {
        if filled > limit { openArgument(0) }
        let length = filled &- open
        if length &- 10 < 90, length >= 10 {
            let tens = UInt32(truncatingIfNeeded: length) / 10
            let units = UInt32(truncatingIfNeeded: length) &- tens &* 10
            // `$`, both digits and the first of the line's end, lowest byte first.
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

    /// The head of an argument for which not just so much room was left.
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

    /// Adds `arguments` whole arguments as `withArguments` gave them.
    public mutating func append(encoded bytes: UnsafeRawBufferPointer, arguments: Int) {
        makeRoom(bytes.count)
        if let start = bytes.baseAddress { (base + filled).copyMemory(from: start, byteCount: bytes.count) }
        filled &+= bytes.count
        count &+= arguments
    }

    mutating func reset() {
        // A giant command's storage is given back; an ordinary one is kept.
        if capacity > 1 << 20 { resize(to: 4096) }
        filled = Self.headBytesMax
        open = 0
        limit = 0
        count = 0
    }

    /// Overwrites what the storage holds: it may have been a password.
    mutating func wipe() {
        reset()
        base.initializeMemory(as: UInt8.self, repeating: 0, count: capacity)
    }

    /// Completes an argument that was left open and says how many there are.
    mutating func finish() -> Int {
        if open != 0 { end() }
        return count
    }

    /// Bytes of the complete arguments so far.
    public var encodedCount: Int { filled &- Self.headBytesMax }

    /// The encoded arguments from byte `offset` on (an `encodedCount` of before), for the time of `body`.
    public func withArguments<Result>(from offset: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        let start = Self.headBytesMax &+ min(max(0, offset), encodedCount)
        return body(UnsafeRawBufferPointer(start: base + start, count: filled &- start))
    }

    /// Argument `index` of those that are complete, for the time of `body`; nil: there are not so many.
    func withArgument<Result>(_ index: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
        guard index < count else { return nil }
        return withArguments(from: 0) { bytes in
            var rest = bytes[...]
            for place in 0...index {
                // `$`, the length, the line's end, the bytes, the line's end: written here, so it is well formed.
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

    /// The whole command, its head included, for the time of `body`.
    func withWire<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        // The head stands before the arguments, against them: its length is known only now.
        let length = 3 &+ Decimal.count(UInt64(count))
        let start = base + (Self.headBytesMax &- length)
        start.storeBytes(of: UInt8(ascii: "*"), as: UInt8.self)
        Self.writeLineEnd(to: start + 1 + Decimal.write(UInt64(count), to: start + 1))
        return body(UnsafeRawBufferPointer(start: start, count: filled &- Self.headBytesMax &+ length))
    }

    // MARK: Storage

    /// Makes room in the open argument for so many bytes more, a long head and both line ends; opens one if none is.
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
