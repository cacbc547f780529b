// SPDX-License-Identifier: Apache-2.0
import Digits
import Testing

struct DecimalTests {
    private func signed(_ text: String) -> Int64? { Array(text.utf8).withUnsafeBytes { Decimal.signed($0) } }
    private func unsigned(_ text: String) -> UInt64? { Array(text.utf8).withUnsafeBytes { Decimal.unsigned($0) } }

    private static let borders: [UInt64] =
        [0, 9, 12_345_678_901, .max - 1, .max]
        + (1..<20).flatMap { digits in
            let power = (0..<digits).reduce(UInt64(1)) { number, _ in number * 10 }
            return [power - 1, power, power + 1]
        }

    @Test(arguments: borders) func writtenBytesReadBack(number: UInt64) {
        var bytes = [UInt8](repeating: 0, count: 20)
        let count = bytes.withUnsafeMutableBytes { bytes in
            bytes.baseAddress.map { Decimal.write(number, to: $0) }
        }
        #expect(count == Decimal.count(number))
        let text = String(decoding: bytes.prefix(count ?? 0), as: UTF8.self)
        #expect(text == String(number) && unsigned(text) == number)
    }

    /// Each number of up to eight digits goes through factors in place of divisions, so each fourth part of the lanes is tried.
    @Test func everyPairAndFourOfDigitsIsWrittenAsSwiftWritesIt() {
        var bytes = [UInt8](repeating: 0, count: 20)
        for four in UInt64(0)..<10_000 {
            for number in [
                four, 10_000 + four, 12_340_000 + four, four * 10_000 + 99, 1_000_000_000_000 + four * 100_000_000,
            ] {
                let text = bytes.withUnsafeMutableBytes { bytes in
                    let count = bytes.baseAddress.map { Decimal.write(number, to: $0) } ?? 0
                    return String(decoding: bytes.prefix(count), as: UTF8.self)
                }
                if text != String(number) || unsigned(text) != number { Issue.record("\(number) is written \(text)") }
            }
        }
    }

    @Test func nothingIsWrittenBeyondTheLastDigit() {
        for number in Self.borders {
            var bytes = [UInt8](repeating: 0xAA, count: 40)
            let count = bytes.withUnsafeMutableBytes { bytes in
                bytes.baseAddress.map { Decimal.write(number, to: $0) } ?? 0
            }
            #expect(bytes.dropFirst(count).allSatisfy { $0 == 0xAA }, "\(number)")
        }
    }

    @Test func aByteThatIsNoDigitIsSeenAtEachPlace() {
        for count in 1...20 {
            for place in 0..<count {
                for byte: UInt8 in [0, 0x2f, 0x3a, 0x3f, 0x40, 0x70, 0xb5, 0xff] {
                    var digits = [UInt8](repeating: 0x31, count: count)
                    digits[place] = byte
                    #expect(digits.withUnsafeBytes { Decimal.unsigned($0) } == nil, "\(byte) at \(place) of \(count)")
                }
            }
        }
    }

    @Test(arguments: [Int64.min, -10, -1, 0, 1, .max])
    func signedNumbersReadAsSwiftWritesThem(number: Int64) {
        #expect(signed(String(number)) == number)
    }

    @Test(arguments: ["", "-", "--1", "+1", " 1", "1 ", "1.0", "1a", "9223372036854775808", "-9223372036854775809"])
    func aTextThatIsNoSignedNumberIsNil(text: String) {
        #expect(signed(text) == nil)
    }

    @Test(arguments: [
        "", "-1", "18446744073709551616", "18446744073709551620", "99999999999999999999", "000000000000000000001",
        "1844674407370955161a", "1844674407370955161/", "a0000000000000000000",
    ])
    func aTextThatIsNoUnsignedNumberIsNil(text: String) {
        #expect(unsigned(text) == nil)
    }
}
