import Crypto
import Testing

@Suite struct EncodingTests {
    @Test(arguments: [
        ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE"),
        ("foobar", "Zm9vYmFy"),
    ])
    func base64URLMatchesTheRFCVectorsWithoutPadding(plain: String, text: String) {
        #expect(Base64URL.encode(Array(plain.utf8)) == Array(text.utf8))
        #expect(Base64URL.decode(Array(text.utf8)) == Array(plain.utf8))
    }

    @Test func base64URLUsesTheURLAlphabet() {
        #expect(Base64URL.encode([0xFB, 0xFF, 0xBF]) == Array("-_-_".utf8))
    }

    @Test(arguments: ["Z", "Zg==", "Zm9v+", "Zm 9", "Zh", "Zm9"])
    func base64URLRefusesWhatIsNotTheOneSpelling(text: String) {
        #expect(Base64URL.decode(Array(text.utf8)) == nil)
    }

    @Test func everyByteStringSurvivesTheCodec() {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SplitMix(state: seed)
        for length in 0..<200 {
            let bytes = (0..<length).map { _ in UInt8.random(in: 0 ... .max, using: &generator) }
            #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes, "seed \(seed)")
        }
    }

    @Test func sha256MatchesTheStandardVectors() {
        #expect(SHA256.hex([]) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        #expect(
            SHA256.hex(Array("abc".utf8)) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }

    @Test func randomBytesDiffer() throws {
        #expect(try RandomBytes.make(32) != RandomBytes.make(32))
        #expect(try RandomBytes.make(0).isEmpty)
    }
}

/// Small seeded generator, so that a failure can be run again.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }
}
