// SPDX-License-Identifier: Apache-2.0
import Digits
import Support
import Testing

@Suite("Hexadecimal")
struct HexTests {
    @Test func isWrittenInLowerCaseAndReadInBoth() {
        #expect(Hex.string([0x00, 0xAB, 0x9F]) == "00ab9f")
        #expect(Hex.bytes(Array("00aB9F".utf8)) == [0x00, 0xAB, 0x9F])
        #expect(Hex.bytes("".utf8) == [])
    }

    @Test(arguments: ["0", "0g", "g0", "000", " 0", "0\u{e9}", "0x"])
    func anythingElseIsNotRead(text: String) {
        #expect(Hex.bytes(text.utf8) == nil)
    }

    @Test func everyByteStringSurvives() {
        var random = SeededGenerator(seed: .random(in: 0 ... .max))
        for length in 0..<200 {
            let bytes = (0..<length).map { _ in UInt8.random(in: 0 ... .max, using: &random) }
            #expect(Hex.bytes(Hex.digits(bytes)) == bytes, "seed \(random.seed)")
        }
    }

    @Test(arguments: [0, 1, 0x9A, 0x0123_4567, 0x89AB_CDEF, .max] as [UInt32])
    func aNumbersDigitsStandInTheOrderOfMemory(number: UInt32) {
        let written = withUnsafeBytes(of: Hex.digits(number)) { String(decoding: $0, as: UTF8.self) }
        #expect(written == Hex.string(withUnsafeBytes(of: number.bigEndian) { Array($0) }))
    }
}
