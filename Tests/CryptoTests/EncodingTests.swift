// SPDX-License-Identifier: Apache-2.0
import Crypto
import Testing

@Suite struct EncodingTests {
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
