// SPDX-License-Identifier: Apache-2.0
import Digits
import Support
import Testing

@Suite struct Base64Tests {
    /// RFC 4648 section 10.
    static let vectors = [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ]

    @Test(arguments: vectors) func matchesTheRFCVectors(plain: String, text: String) {
        #expect(Base64.encode(Array(plain.utf8)) == Array(text.utf8))
        #expect(Base64.count(plain.utf8.count) == text.utf8.count)
        var written = [UInt8](repeating: 0, count: text.utf8.count)
        Array(plain.utf8).withUnsafeBytes { plain in written.withUnsafeMutableBytes { Base64.write(plain, to: $0) } }
        #expect(written == Array(text.utf8))
    }

    @Test(arguments: vectors) func theURLAlphabetMatchesThemWithoutPadding(plain: String, text: String) {
        let unpadded = Array(text.utf8.prefix { $0 != UInt8(ascii: "=") })
        #expect(Base64URL.encode(Array(plain.utf8)) == unpadded)
        #expect(Base64URL.decode(unpadded) == Array(plain.utf8))
    }

    @Test func theTwoAlphabetsDifferInTwoLetters() {
        #expect(Base64.encode([0xFB, 0xFF, 0xBF]) == Array("+/+/".utf8))
        #expect(Base64URL.encode([0xFB, 0xFF, 0xBF]) == Array("-_-_".utf8))
    }

    @Test(arguments: ["Z", "Zg==", "Zm9v+", "Zm 9", "Zh", "Zm9"])
    func anotherSpellingIsRefused(text: String) {
        #expect(Base64URL.decode(Array(text.utf8)) == nil)
    }

    @Test func everyByteStringSurvivesTheCodec() {
        var random = SeededGenerator(seed: .random(in: 0 ... .max))
        for length in 0..<200 {
            let bytes = (0..<length).map { _ in UInt8.random(in: 0 ... .max, using: &random) }
            #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes, "seed \(random.seed)")
        }
    }
}
