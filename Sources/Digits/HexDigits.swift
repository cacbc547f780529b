/// Hexadecimal digits, read and written in place.
public enum HexDigits {
    /// The value of one digit of either case; nil for another byte.
    @inlinable
    public static func value(of byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte &- UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte &- UInt8(ascii: "a") &+ 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte &- UInt8(ascii: "A") &+ 10
        default: nil
        }
    }

    /// The lower-case digit of a value below 16.
    @inlinable
    public static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") &+ value : UInt8(ascii: "a") &- 10 &+ value
    }

    /// The eight lower-case digits of a number, as their bytes lie in memory, the highest digit first.
    ///
    /// All at once: the nibbles are spread over the bytes of a word, then 0x30 is added, and 0x27 more above nine.
    @inlinable
    public static func eight(_ number: UInt32) -> UInt64 {
        var word = UInt64(number)
        word = (word | word &<< 16) & 0x0000_ffff_0000_ffff
        word = (word | word &<< 8) & 0x00ff_00ff_00ff_00ff
        word = (word | word &<< 4) & 0x0f0f_0f0f_0f0f_0f0f
        let aboveNine = ((word &+ 0x0606_0606_0606_0606) &>> 4) & 0x0101_0101_0101_0101
        return (word &+ 0x3030_3030_3030_3030 &+ aboveNine &* 0x27).bigEndian
    }
}
