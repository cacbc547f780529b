/// Builds one command in storage that is used again for the next one.
///
/// Arguments are bytes: no text in one can end it early or add another (RESP counts bytes, it does not quote).
public struct RedisCommand: ~Copyable {
    private var scratch: [UInt8] = []
    private var ends: [Int] = []

    init() {
        scratch.reserveCapacity(1024)
        ends.reserveCapacity(32)
    }

    /// How many arguments are complete, the command's name included.
    public var count: Int { ends.count }

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
        if text.utf8.withContiguousStorageIfAvailable({ scratch.append(contentsOf: $0) }) == nil {
            scratch.append(contentsOf: text.utf8)
        }
    }

    /// Adds to an argument that `end()` will complete.
    public mutating func part(_ bytes: [UInt8]) { scratch.append(contentsOf: bytes) }

    /// Adds to an argument that `end()` will complete.
    public mutating func part(_ bytes: UnsafeRawBufferPointer) { scratch.append(contentsOf: bytes) }

    /// Adds a number in decimal to an argument that `end()` will complete.
    public mutating func part(_ number: Int64) {
        if number < 0 { scratch.append(UInt8(ascii: "-")) }
        Self.appendDecimal(number.magnitude, to: &scratch)
    }

    /// Completes the argument that `part` began; without parts it is empty.
    public mutating func end() { ends.append(scratch.count) }

    mutating func reset() {
        // A giant command's storage is given back; an ordinary one is kept.
        scratch.removeAll(keepingCapacity: scratch.capacity <= 1 << 20)
        ends.removeAll(keepingCapacity: ends.capacity <= 1 << 16)
    }

    /// Completes an argument that was left open and says how many there are.
    mutating func finish() -> Int {
        if (ends.last ?? 0) < scratch.count { end() }
        return ends.count
    }

    /// Appends all arguments as RESP bulk strings.
    ///
    /// Five or six commands of up to twenty arguments go out per push: written through one pointer, not byte by byte
    /// through an array that checks itself for each.
    func encodeArguments(to wire: inout [UInt8]) {
        let before = wire.count
        let most = scratch.count + ends.count * Self.bulkOverheadMax
        wire.append(contentsOf: repeatElement(0, count: most))
        let after = wire.withUnsafeMutableBytes { wire in
            scratch.withUnsafeBytes { scratch in
                var end = before
                var start = 0
                for stop in ends {
                    let argument = UnsafeRawBufferPointer(rebasing: scratch[start..<stop])
                    end = Self.writeBulk(argument, into: wire, at: end)
                    start = stop
                }
                return end
            }
        }
        wire.removeLast(before + most - after)
    }

    /// `$`, twenty digits, and twice the line's end.
    private static let bulkOverheadMax = 25

    /// Writes one bulk string and gives the place behind it; the caller has made room.
    private static func writeBulk(
        _ bytes: UnsafeRawBufferPointer, into wire: UnsafeMutableRawBufferPointer, at place: Int
    ) -> Int {
        var end = place
        wire[end] = UInt8(ascii: "$")
        end += 1
        var digits = 1
        var rest = bytes.count
        while rest >= 10 {
            rest /= 10
            digits += 1
        }
        rest = bytes.count
        for index in stride(from: end + digits - 1, through: end, by: -1) {
            wire[index] = 48 &+ UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        }
        end += digits
        wire[end] = UInt8(ascii: "\r")
        wire[end + 1] = UInt8(ascii: "\n")
        end += 2
        UnsafeMutableRawBufferPointer(rebasing: wire[end..<end + bytes.count]).copyMemory(from: bytes)
        end += bytes.count
        wire[end] = UInt8(ascii: "\r")
        wire[end + 1] = UInt8(ascii: "\n")
        return end + 2
    }

    /// `*<count>\r\n`, the head of a command.
    static func appendHead(_ count: Int, to wire: inout [UInt8]) {
        wire.append(UInt8(ascii: "*"))
        appendDecimal(UInt64(count), to: &wire)
        appendLineEnd(to: &wire)
    }

    /// `$<length>\r\n<bytes>\r\n`
    static func appendBulk(_ bytes: ArraySlice<UInt8>, to wire: inout [UInt8]) {
        wire.append(UInt8(ascii: "$"))
        appendDecimal(UInt64(bytes.count), to: &wire)
        appendLineEnd(to: &wire)
        wire.append(contentsOf: bytes)
        appendLineEnd(to: &wire)
    }

    private static func appendLineEnd(to wire: inout [UInt8]) {
        wire.append(UInt8(ascii: "\r"))
        wire.append(UInt8(ascii: "\n"))
    }

    private static func appendDecimal(_ value: UInt64, to bytes: inout [UInt8]) {
        if value < 10 {
            bytes.append(48 &+ UInt8(truncatingIfNeeded: value))
            return
        }
        var divisor: UInt64 = 10
        while value / divisor >= 10 { divisor &*= 10 }
        while divisor > 0 {
            bytes.append(48 &+ UInt8(truncatingIfNeeded: value / divisor % 10))
            divisor /= 10
        }
    }
}
