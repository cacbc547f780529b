// SPDX-License-Identifier: Apache-2.0
import JSON
import Support
import Testing

struct JSONParserTests {
    private func fault(_ bytes: [UInt8], maxBytes: Int = 1 << 20) -> JSONFault.Code? {
        switch JSONParser(maxBytes: maxBytes).parse(bytes, { _ in }) {
        case .read: nil
        case .refused(let fault): fault.code
        }
    }

    private func fault(_ text: String) -> JSONFault.Code? { fault(Array(text.utf8)) }

    @Test(arguments: [
        ("", JSONFault.Code.empty), ("   ", .empty), ("{", .badStructure), ("{}x", .badStructure),
        ("{\"a\":1,}", .badStructure), ("[1 2]", .badStructure), ("{\"a\":01}", .badNumber), ("{\"a\":-}", .badNumber),
        ("{\"a\":1.}", .badNumber), ("{\"a\":1e999x}", .badNumber), ("nul", .badStructure),
        ("{\"a\":\"\\x\"}", .badString), ("{\"a\":\"", .unclosedString), ("{\"a\":\"\u{1}\"}", .badString),
    ])
    func refusesBrokenText(text: String, code: JSONFault.Code) {
        #expect(fault(text) == code, "\(text)")
    }

    /// A broken text is refused at the byte where it breaks.
    @Test(arguments: [
        (Array(#"{"a":"\ud83d\ude0"#.utf8), JSONFault.Code.unclosedString, 17),
        (Array(#"{"a":"\ud83d\ude0z"}"#.utf8), .badString, 17),
        (Array(#"{"a":"\ud83d\"#.utf8), .unclosedString, 13),
        ([0x7B, 0x22, 0x61, 0x22, 0x3A, 0x22, 0xFF, 0x20, 0x62], .notUTF8, 6),
        ([0x22, 0x01, 0x61, 0xFF, 0x22], .notUTF8, 3),
    ])
    func aBrokenTextIsRefusedAtItsByte(bytes: [UInt8], code: JSONFault.Code, byte: Int) {
        guard case .refused(let fault) = JSONParser(maxBytes: 1 << 20).parse(bytes, { _ in }) else {
            Issue.record("accepted")
            return
        }
        #expect(fault.code == code && abs(fault.byte - byte) <= 1, "\(fault)")
    }

    @Test(arguments: [#""\ud800""#, #""\udc00""#, #""\ud800x""#, #""\ud800A""#, #""\ud800\ud800""#, #""\udfff""#])
    func refusesLoneSurrogates(text: String) {
        #expect(fault(text) == .badString, "\(text)")
    }

    @Test(
        arguments: [
            [0x22, 0xFF, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22],
            [0x22, 0xF5, 0x80, 0x80, 0x80, 0x22],
            [0x22, 0xE4, 0xB8, 0x22],
        ] as [[UInt8]])
    func refusesBrokenUTF8(bytes: [UInt8]) {
        #expect(fault(bytes) == .notUTF8)
    }

    @Test func refusesWhatIsNestedDeeperThanTheLimit() {
        func nested(_ depth: Int) -> [UInt8] {
            Array(repeating: UInt8(ascii: "["), count: depth) + [UInt8(ascii: "1")]
                + Array(repeating: UInt8(ascii: "]"), count: depth)
        }
        #expect(fault(nested(32)) == nil)
        #expect(fault(nested(33)) == .tooDeep)
        #expect(fault(nested(100_000)) == .tooDeep)
    }

    @Test func refusesLongInputBeforeReadingIt() {
        let long = [UInt8(ascii: "\"")] + Array(repeating: UInt8(ascii: "a"), count: 10_000_000) + [UInt8(ascii: "\"")]
        #expect(fault(long) == .tooLong)
        #expect(fault(long, maxBytes: 20_000_000) == nil)
    }

    @Test func readsTheNextDocumentAfterARefusedOne() {
        let parser = JSONParser()
        _ = parser.parse(Array("{".utf8)) { _ in }
        let parsed = parser.parse(Array(#"{"a":7}"#.utf8)) { $0["a"]?.int }
        guard case .read(let value) = parsed else {
            Issue.record("refused")
            return
        }
        #expect(value == 7)
    }

    @Test func randomBytesNeverCrash() {
        let seed = UInt64.random(in: .min ... .max)
        var random = SeededGenerator(seed: seed)
        let alphabet = Array(#"{}[]:,"\truefalsn0123456789.eE+-u d"#.utf8) + [0, 0xFF, 0xE4, 0xB8, 0xAD]
        let parser = JSONParser()
        var accepted = 0
        for _ in 0..<20_000 {
            let length = Int(random.next() % 60)
            let bytes = (0..<length).map { _ in alphabet[Int(random.next() % UInt64(alphabet.count))] }
            let parsed = parser.parse(bytes) { (root) throws(Never) in JSONTree(root) }
            guard case .read(let tree) = parsed else { continue }
            accepted += 1
            #expect((try? JSONTree(parsing: tree.bytes)) == tree, "seed \(seed): \(bytes)")
        }
        #expect(accepted > 0, "seed \(seed)")
    }
}
