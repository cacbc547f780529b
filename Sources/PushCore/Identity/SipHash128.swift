/// SipHash-2-4 with 128 bits of output, fed piece by piece (Aumasson and Bernstein; the 128-bit form of their reference).
///
/// Written here since the standard library's hasher is seeded anew in each process, while ids made from it must be the
/// same in every worker. Not a secret: the key is fixed where it is used.
public struct SipHash128: Sendable {
    private var v0: UInt64
    private var v1: UInt64
    private var v2: UInt64
    private var v3: UInt64
    /// Bytes that do not fill a word yet, the first in the lowest place.
    private var tail: UInt64 = 0
    private var count: UInt64 = 0

    public init(key0: UInt64, key1: UInt64) {
        v0 = key0 ^ 0x736f_6d65_7073_6575
        v1 = key1 ^ 0x646f_7261_6e64_6f6d ^ 0xee
        v2 = key0 ^ 0x6c79_6765_6e65_7261
        v3 = key1 ^ 0x7465_6462_7974_6573
    }

    public mutating func update(_ byte: UInt8) {
        let place = count & 7
        tail |= UInt64(byte) &<< (place &* 8)
        count &+= 1
        if place == 7 {
            compress(tail)
            tail = 0
        }
    }

    public mutating func update(_ bytes: UnsafeRawBufferPointer) {
        var index = 0
        while index < bytes.count, count & 7 != 0 {
            update(bytes[index])
            index += 1
        }
        while bytes.count - index >= 8 {
            compress(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
            count &+= 8
            index += 8
        }
        while index < bytes.count {
            update(bytes[index])
            index += 1
        }
    }

    /// A text as its UTF-8 length and bytes, so that no two lists of texts feed the same bytes.
    public mutating func update(lengthThen text: String) {
        let utf8 = text.utf8
        update(word: UInt64(utf8.count))
        let isDone: Void? = utf8.withContiguousStorageIfAvailable { update(UnsafeRawBufferPointer($0)) }
        if isDone == nil {
            for byte in utf8 { update(byte) }
        }
    }

    public mutating func update(word: UInt64) {
        let place = count & 7
        if place == 0 {
            compress(word)
        } else {
            compress(tail | word &<< (place &* 8))
            tail = word &>> (64 &- place &* 8)
        }
        count &+= 8
    }

    /// The 16 bytes of output as two little-endian words.
    public consuming func finish() -> (UInt64, UInt64) {
        compress(tail | count &<< 56)
        v2 ^= 0xee
        for _ in 0..<4 { round() }
        let first = v0 ^ v1 ^ v2 ^ v3
        v1 ^= 0xdd
        for _ in 0..<4 { round() }
        return (first, v0 ^ v1 ^ v2 ^ v3)
    }

    private mutating func compress(_ word: UInt64) {
        v3 ^= word
        round()
        round()
        v0 ^= word
    }

    @inline(__always)
    private mutating func round() {
        v0 = v0 &+ v1
        v1 = Self.rotate(v1, 13) ^ v0
        v0 = Self.rotate(v0, 32)
        v2 = v2 &+ v3
        v3 = Self.rotate(v3, 16) ^ v2
        v0 = v0 &+ v3
        v3 = Self.rotate(v3, 21) ^ v0
        v2 = v2 &+ v1
        v1 = Self.rotate(v1, 17) ^ v2
        v2 = Self.rotate(v2, 32)
    }

    @inline(__always)
    private static func rotate(_ word: UInt64, _ bits: UInt64) -> UInt64 {
        (word &<< bits) | (word &>> (64 &- bits))
    }
}
