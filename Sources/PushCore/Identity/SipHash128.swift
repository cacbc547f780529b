// SPDX-License-Identifier: Apache-2.0
import Digits

/// SipHash-2-4 with 128 bits of output, fed in pieces (Aumasson and Bernstein; the 128-bit form of their reference).
///
/// The standard library's hasher has a new seed in each process, but these ids must be equal in every worker. The key
/// is fixed and not a secret.
public struct SipHash128: Sendable {
    private var v0: UInt64
    private var v1: UInt64
    private var v2: UInt64
    private var v3: UInt64
    /// Bytes that do not fill a word yet, the first byte lowest.
    private var tail: UInt64 = 0
    private var count: UInt64 = 0

    public init(key0: UInt64, key1: UInt64) {
        v0 = key0 ^ 0x736f_6d65_7073_6575
        v1 = key1 ^ 0x646f_7261_6e64_6f6d ^ 0xee
        v2 = key0 ^ 0x6c79_6765_6e65_7261
        v3 = key1 ^ 0x7465_6462_7974_6573
    }

    public mutating func update(_ bytes: UnsafeRawBufferPointer) {
        var index = 0
        while bytes.count &- index >= 8 {
            update(word: UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
            index &+= 8
        }
        let rest = bytes.count &- index
        guard rest > 0 else { return }
        if bytes.count >= 8 {
            // The last eight bytes; the first of them were already consumed.
            let last = bytes.loadUnaligned(fromByteOffset: bytes.count &- 8, as: UInt64.self)
            return update(UInt64(littleEndian: last) &>> (64 &- UInt64(rest) &* 8), count: UInt64(rest))
        }
        var word: UInt64 = 0
        for byte in bytes.reversed() { word = word &<< 8 | UInt64(byte) }
        update(word, count: UInt64(rest))
    }

    /// A text as its UTF-8 length and bytes, so that different lists of texts never feed the same bytes.
    public mutating func update(lengthThen text: String) {
        text.withUTF8Bytes { utf8 in
            update(word: UInt64(utf8.count))
            update(utf8)
        }
    }

    /// One to seven bytes, the first byte lowest, zero-padded.
    private mutating func update(_ bytes: UInt64, count more: UInt64) {
        let place = count & 7
        tail |= bytes &<< (place &* 8)
        if place &+ more >= 8 {
            compress(tail)
            tail = bytes >> (64 &- place &* 8)
        }
        count &+= more
    }

    /// Eight bytes, the first byte lowest.
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

    /// The output as 32 lower-case hexadecimal digits, each word's highest digit first.
    public consuming func finishHex() -> [UInt8] {
        let (first, second) = finish()
        var text = InlineArray<32, UInt8>(repeating: 0)
        return withUnsafeMutableBytes(of: &text) { bytes in
            for (place, word) in [first &>> 32, first, second &>> 32, second].enumerated() {
                bytes.storeBytes(
                    of: Hex.digits(UInt32(truncatingIfNeeded: word)), toByteOffset: place &* 8, as: UInt64.self)
            }
            return [UInt8](bytes)
        }
    }

    @inline(__always)
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
