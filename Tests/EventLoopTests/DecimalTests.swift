import EventLoop
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

    @Test(arguments: borders) func whatIsWrittenReadsBack(number: UInt64) {
        var bytes = [UInt8](repeating: 0, count: 20)
        let count = bytes.withUnsafeMutableBytes { bytes in
            bytes.baseAddress.map { Decimal.write(number, to: $0) }
        }
        #expect(count == Decimal.count(number))
        let text = String(decoding: bytes.prefix(count ?? 0), as: UTF8.self)
        #expect(text == String(number) && unsigned(text) == number)
    }

    @Test(arguments: [Int64.min, -10, -1, 0, 1, .max])
    func signedNumbersReadAsSwiftWritesThem(number: Int64) {
        #expect(signed(String(number)) == number)
    }

    @Test(arguments: ["", "-", "--1", "+1", " 1", "1 ", "1.0", "1a", "9223372036854775808", "-9223372036854775809"])
    func whatIsNoSignedNumberIsNil(text: String) {
        #expect(signed(text) == nil)
    }

    @Test(arguments: [
        "", "-1", "18446744073709551616", "18446744073709551620", "99999999999999999999", "000000000000000000001",
        "1844674407370955161a", "1844674407370955161/", "a0000000000000000000",
    ])
    func whatIsNoUnsignedNumberIsNil(text: String) {
        #expect(unsigned(text) == nil)
    }
}
