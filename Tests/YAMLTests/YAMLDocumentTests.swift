// SPDX-License-Identifier: Apache-2.0
import Testing
import YAML

struct YAMLDocumentTests {
    private func read(_ text: String) throws -> YAMLDocument {
        try YAMLDocument(parsing: Array(text.utf8), source: "f")
    }

    private func text(_ node: YAMLNode?) -> String? {
        guard case .scalar(let text, _) = node?.value else { return nil }
        return text
    }

    @Test func keepsLinesAndColumns() throws {
        let root = try read("# top\na: 1\nb:\n  - x\n  - {c: \"2\", d: 中}\n").root
        #expect(root.mark.line == 2)
        #expect(root["a"]?.mark == YAMLNode.Mark(source: "f", line: 2, column: 4))
        guard case .sequence(let items) = root["b"]?.value else {
            Issue.record("b is a sequence")
            return
        }
        #expect(items.map(\.mark.line) == [4, 5])
        #expect(text(items.last?["d"]) == "中")
        guard case .scalar("2", quoted: true) = items.last?["c"]?.value else {
            Issue.record("c is quoted")
            return
        }
    }

    @Test(arguments: ["a: 1\nb: 2\n", "---\na: 1\nb: 2\n", "# top\na: 1\nb: 2\n", "{a: 1, b: 2}"])
    func aByteOrderMarkAtTheBeginningIsSkipped(text: String) throws {
        let root = try read("\u{FEFF}" + text).root
        #expect(self.text(root["a"]) == "1" && self.text(root["b"]) == "2")
        #expect(root["a"]?.mark == (try read(text).root["a"]?.mark))
    }

    @Test(arguments: ["a:", "a: ~", "a: null"])
    func knowsNull(line: String) throws {
        #expect(try read(line).root["a"]?.isNull == true)
    }

    @Test func quotedNullIsText() throws {
        #expect(try read("a: 'null'").root["a"]?.isNull == false)
    }

    @Test func reportsRepeatedKeysAndKeepsTheLast() throws {
        let document = try read("a: 1\nb: {c: 1, c: 2}\na: 3\n")
        #expect(document.repeatedKeys.map(\.key) == ["c", "a"])
        #expect(document.repeatedKeys.map(\.mark.line) == [2, 3])
        #expect(text(document.root["a"]) == "3")
    }

    @Test(arguments: ["", "\n# nothing\n", "---\n"])
    func anEmptyDocumentHasNothingInIt(source: String) throws {
        let root = try read(source).root
        guard case .mapping(let entries) = root.value else {
            #expect(root.isNull)
            return
        }
        #expect(entries.isEmpty)
    }

    @Test(arguments: [
        ("a: 1\nb: [1, 2\n", 3), ("a: 1\n b: 2\n", 2), ("a: \"x\n", 2), ("a: &x 1\n", 1), ("a: 1\nb: *x\n", 2),
        ("a: !t 1\n", 1), ("? [a]\n: 1\n", 1), ("a: 1\n---\nb: 2\n", 2), ("a: 1\n\tb: 2\n", 2),
        ("a: " + String(repeating: "[", count: 40) + String(repeating: "]", count: 40), 1),
    ])
    func refusesWithALine(source: String, line: Int) {
        #expect {
            _ = try read(source)
        } throws: { error in
            guard let fault = error as? YAMLFault else { return false }
            return fault.mark.line == line && !fault.text.isEmpty
        }
    }

    @Test func refusesBrokenUTF8() {
        #expect(throws: YAMLFault.self) { try YAMLDocument(parsing: [0x61, 0x3A, 0x20, 0xFF], source: "f") }
    }

    @Test func refusesLongInputUnread() {
        #expect(throws: YAMLFault.self) {
            try YAMLDocument(parsing: Array(repeating: 0x23, count: 11), source: "f", maxBytes: 10)
        }
    }

    @Test func randomTextNeverCrashes() {
        let seed = UInt64.random(in: .min ... .max)
        var state = seed
        func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state >> 33
        }
        let alphabet = Array("ab: -\n[]{},\"'#&*!|>?%@\t~01".utf8) + [0xFF, 0xE4, 0]
        var read = 0
        for _ in 0..<5_000 {
            let bytes = (0..<(next() % 40)).map { _ in alphabet[Int(next() % UInt64(alphabet.count))] }
            if (try? YAMLDocument(parsing: bytes, source: "f")) != nil { read += 1 }
        }
        #expect(read > 0 && read < 5_000, "seed \(seed)")
    }
}
