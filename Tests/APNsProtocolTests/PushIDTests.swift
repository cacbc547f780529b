// SPDX-License-Identifier: Apache-2.0
import APNsProtocol
import Testing

@Suite struct PushIDTests {
    @Test func pushIDReadsAndWritesTheCanonicalForm() throws {
        let text = "0f8e4d3c-12ab-4cde-8f01-23456789abcd"
        let id = try #require(PushID(ascii: text.utf8))
        #expect(id.description == text)
        #expect(PushID(ascii: text.uppercased().utf8) == id)
    }

    @Test(arguments: [
        "", "0f8e4d3c12ab4cde8f0123456789abcd", "0f8e4d3c-12ab-4cde-8f01-23456789abc",
        "0f8e4d3c-12ab-4cde-8f01-23456789abcde", "0f8e4d3c-12ab-4cde-8f01-23456789abcg",
        "0f8e4d3c_12ab-4cde-8f01-23456789abcd",
    ])
    func pushIDRefusesOtherText(text: String) {
        #expect(PushID(ascii: text.utf8) == nil)
    }

    @Test func theTextFormIsTheSameInEveryWriting() {
        let id = PushID(high: 0x0123_4567_89ab_8def, low: 0x8fed_cba9_8765_4321)
        let text = "01234567-89ab-8def-8fed-cba987654321"
        #expect(id.description == text)
        var room = [UInt8](repeating: 0x21, count: PushID.textCount + 2)
        room.withUnsafeMutableBytes { if let start = $0.baseAddress { id.write(to: start + 1) } }
        #expect(room == Array("!\(text)!".utf8))
    }

    /// Whoever knows the digest's key can search for texts whose ids have something in common, here the exclusive or of their halves.
    @Test(arguments: [1, 0x7F12_3456_7890])
    func chosenIDsSpreadOverATable(seed: Int) {
        let ids = (1...4_096).map { number -> PushID in
            let low = UInt64(number) &* 0x9E37_79B9_7F4A_7C15
            return PushID(high: low ^ 0x0123_4567_89AB_CDEF, low: low)
        }
        let places = Set(ids.map { $0._rawHashValue(seed: seed) & 0xFFF })
        #expect(places.count > 2_300)
    }
}
