import Digits
import Testing

@Suite struct HexDigitsTests {
    @Test func everyByteIsADigitOrNone() {
        for byte in UInt8.min...UInt8.max {
            let character = Character(Unicode.Scalar(byte))
            let value = byte < 128 ? character.hexDigitValue.map { UInt8($0) } : nil
            #expect(HexDigits.value(of: byte) == value)
            if let value { #expect(HexDigits.digit(value) == character.lowercased().utf8.first) }
        }
    }

    @Test func eightDigitsLieInMemoryHighestFirst() {
        for number in [0, 1, 9, 10, 0x9a, 0x0123_4567, 0x89ab_cdef, .max] as [UInt32] {
            let text = String(number, radix: 16)
            let wanted = String(repeating: "0", count: 8 - text.count) + text
            #expect(withUnsafeBytes(of: HexDigits.eight(number)) { String(decoding: $0, as: UTF8.self) } == wanted)
        }
    }
}
