internal import EventLoop

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

    private var base: UnsafeMutableRawPointer
    private var capacity = 4096
    private var filled = headBytesMax
    /// Where the open argument's bytes begin; 0 when none is open.
    private var open = 0

    /// How many arguments are complete, the command's name included.
    public private(set) var count = 0

    init() { base = .allocate(byteCount: capacity, alignment: 1) }

    deinit { base.deallocate() }

    /// Adds a word of ours as a whole argument.
    public mutating func arg(word: StaticString) {
        part(word: word)
        end()
    }

    /// Adds a whole argument.
    public mutating func arg(_ text: String) {
        part(text)
        end()
    }

    /// Adds a whole argument.
    public mutating func arg(_ bytes: [UInt8]) {
        part(bytes)
        end()
    }

    /// Adds a whole argument.
    public mutating func arg(_ bytes: UnsafeRawBufferPointer) {
        part(bytes)
        end()
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
        beginArgument(bytes.count)
        if let start = bytes.baseAddress { (base + filled).copyMemory(from: start, byteCount: bytes.count) }
        filled &+= bytes.count
    }

    /// Adds a number in decimal to an argument that `end()` will complete.
    public mutating func part(_ number: Int64) {
        beginArgument(20)
        if number < 0 {
            base.storeBytes(of: UInt8(ascii: "-"), toByteOffset: filled, as: UInt8.self)
            filled &+= 1
        }
        filled &+= Decimal.write(number.magnitude, to: base + filled)
    }

    /// Completes the argument that `part` began; without parts it is empty.
    public mutating func end() {
        beginArgument(0)
        let length = filled &- open
        let head = length < 10 ? 4 : length < 100 ? Self.bulkHeadBytes : 3 &+ Decimal.count(UInt64(length))
        let shift = head &- Self.bulkHeadBytes
        if shift != 0 {
            makeRoom(shift &+ 2)
            (base + open + shift).copyMemory(from: base + open, byteCount: length)
            filled &+= shift
        }
        let start = base + open - Self.bulkHeadBytes
        start.storeBytes(of: UInt8(ascii: "$"), as: UInt8.self)
        Self.writeLineEnd(to: start + 1 + Decimal.write(UInt64(length), to: start + 1))
        Self.writeLineEnd(to: base + filled)
        filled &+= 2
        open = 0
        count &+= 1
    }

    /// Adds `arguments` whole arguments that another builder encoded.
    mutating func append(encoded bytes: UnsafeRawBufferPointer, arguments: Int) {
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
    var encodedCount: Int { filled &- Self.headBytesMax }

    /// The encoded arguments from byte `offset` on, for the time of `body`.
    func withArguments<Result>(from offset: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        let start = Self.headBytesMax &+ min(max(0, offset), encodedCount)
        return body(UnsafeRawBufferPointer(start: base + start, count: filled &- start))
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

    /// Opens an argument unless one is open, with room for so many bytes more, a long head and both line ends.
    private mutating func beginArgument(_ bytes: Int) {
        makeRoom(bytes &+ Self.bulkHeadBytes &+ 32)
        guard open == 0 else { return }
        filled &+= Self.bulkHeadBytes
        open = filled
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
        place.storeBytes(of: UInt8(ascii: "\r"), as: UInt8.self)
        place.storeBytes(of: UInt8(ascii: "\n"), toByteOffset: 1, as: UInt8.self)
    }
}
