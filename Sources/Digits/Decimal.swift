// SPDX-License-Identifier: Apache-2.0
/// Decimal numbers in text protocols, read and written in place without a String.
public enum Decimal {
    /// How many digits the number has.
    public static func count(_ number: UInt64) -> Int {
        var count = 1
        var rest = number
        while rest >= 10_000 {
            rest /= 10_000
            count &+= 4
        }
        return count &+ (rest >= 1000 ? 3 : rest >= 100 ? 2 : rest >= 10 ? 1 : 0)
    }

    /// Writes the digits, at most twenty. The target must have room. Returns their number.
    @discardableResult
    public static func write(_ number: UInt64, to target: UnsafeMutableRawPointer) -> Int {
        // Most numbers here are lengths.
        if number < 10 {
            target.storeBytes(of: 48 &+ UInt8(truncatingIfNeeded: number), as: UInt8.self)
            return 1
        }
        if number < 100 {
            let tens = number / 10
            target.storeBytes(of: 48 &+ UInt8(truncatingIfNeeded: tens), as: UInt8.self)
            let units = UInt8(truncatingIfNeeded: number &- tens &* 10)
            target.storeBytes(of: 48 &+ units, toByteOffset: 1, as: UInt8.self)
            return 2
        }
        let count = count(number)
        var at = count
        var rest = number
        // Two digits at a time, the last digits first.
        while at >= 2 {
            let above = rest / 100
            let pair = UInt16(truncatingIfNeeded: rest &- above &* 100)
            let tens = pair / 10
            let digits = 0x3030 &+ tens &+ (pair &- tens &* 10) &<< 8
            at &-= 2
            target.storeBytes(of: digits.littleEndian, toByteOffset: at, as: UInt16.self)
            rest = above
        }
        if at == 1 { target.storeBytes(of: 48 &+ UInt8(truncatingIfNeeded: rest), as: UInt8.self) }
        return count
    }

    /// Accepts digits only. Returns nil for anything else and on overflow.
    public static func unsigned(_ digits: UnsafeRawBufferPointer) -> UInt64? {
        let count = digits.count
        guard count > 0, count <= 20 else { return nil }
        // Nineteen digits always fit.
        let sure = min(count, 19)
        var value: UInt64 = 0
        var at = 0
        while sure &- at >= 8 {
            let word = UInt64(littleEndian: digits.loadUnaligned(fromByteOffset: at, as: UInt64.self))
            guard let number = number(eight: word) else { return nil }
            value = value &* 100_000_000 &+ number
            at &+= 8
        }
        while at < sure {
            let number = digits[at] &- 48
            guard number < 10 else { return nil }
            value = value &* 10 &+ UInt64(number)
            at &+= 1
        }
        guard count == 20 else { return value }
        let last = digits[19] &- 48
        let (scaled, isTooMuch) = value.multipliedReportingOverflow(by: 10)
        let (sum, isOver) = scaled.addingReportingOverflow(UInt64(last))
        return last < 10 && !isTooMuch && !isOver ? sum : nil
    }

    /// The number of eight digits, the first in the lowest byte; nil if one is not a digit.
    private static func number(eight digits: UInt64) -> UInt64? {
        let highs: UInt64 = 0xf0f0_f0f0_f0f0_f0f0
        // A digit is 0x30 to 0x39: adding six does not change its upper half.
        guard digits & highs == 0x3030_3030_3030_3030,
            (digits &+ 0x0606_0606_0606_0606) & highs == 0x3030_3030_3030_3030
        else { return nil }
        // Joins neighbours: digits to pairs, pairs to fours, fours to eight.
        var word = digits & ~highs
        word = (word &* 10 &+ word &>> 8) & 0x00ff_00ff_00ff_00ff
        word = (word &* 100 &+ word &>> 16) & 0x0000_ffff_0000_ffff
        return (word &* 10_000 &+ word &>> 32) & 0xffff_ffff
    }

    /// Accepts digits with an optional minus sign. Returns nil for anything else and on overflow.
    public static func signed(_ text: UnsafeRawBufferPointer) -> Int64? {
        guard text.count <= 20 else { return nil }
        let isNegative = text.first == UInt8(ascii: "-")
        let digits = isNegative ? UnsafeRawBufferPointer(rebasing: text.dropFirst()) : text
        guard let magnitude = unsigned(digits) else { return nil }
        guard isNegative else { return Int64(exactly: magnitude) }
        return magnitude <= Int64.min.magnitude ? Int64(truncatingIfNeeded: 0 &- magnitude) : nil
    }
}
