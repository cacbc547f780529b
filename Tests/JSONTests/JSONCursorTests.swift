// SPDX-License-Identifier: Apache-2.0
import JSON
import Testing

struct JSONCursorTests {
    private func read<Result>(_ text: String, _ body: (JSONCursor) -> Result) throws -> Result {
        switch JSONParser().parse(Array(text.utf8), body) {
        case .read(let result): return result
        case .refused(let fault): throw fault
        }
    }

    @Test func givesEachKindAsItselfOnly() throws {
        try read(#"{"i":-5,"u":18446744073709551615,"d":1.0,"s":"x","t":true,"n":null,"a":[1,2],"o":{"k":1}}"#) {
            root in
            #expect(root["i"]?.int == -5)
            #expect(root["u"]?.int == nil)
            #expect(root["d"]?.int == nil)
            #expect(root["d"]?.double == 1)
            #expect(root["s"]?.string == "x")
            #expect(root["s"]?.int == nil)
            #expect(root["t"]?.bool == true)
            #expect(root["i"]?.bool == nil)
            #expect(root["n"]?.isNull == true)
            #expect(root["a"]?.elements.map(\.int) == [1, 2])
            #expect(root["a"]?.count == 2)
            #expect(root["o"]?["k"]?.int == 1)
            #expect(root["s"].map { Array($0.members).count } == 0)
            #expect(root["missing"] == nil)
        }
    }

    @Test func knowsWhereEachValueBegins() throws {
        let text = ##" { "a" : 1 , "b,:" : [ "x\"y" , { } , 2.5 ] , "c" : {"d":[[],-3]} }"##
        try read(text) { root in
            let bytes = Array(text.utf8)
            func byte(_ cursor: JSONCursor?) -> Character? {
                cursor.map { Character(UnicodeScalar(bytes[$0.offset])) }
            }
            #expect(root.offset == 1)
            #expect(byte(root["a"]) == "1")
            #expect(byte(root["b,:"]) == "[")
            let elements = Array(root["b,:"]?.elements ?? root.elements)
            #expect(elements.map { byte($0) } == ["\"", "{", "2"])
            let inner = Array(root["c"]?["d"]?.elements ?? root.elements)
            #expect(inner.map { byte($0) } == ["[", "-"])
            #expect(inner.last?.numberText == "-3")
            #expect(root["c"]?.sourceBytes.map { String(decoding: $0, as: UTF8.self) } == #"{"d":[[],-3]}"#)
        }
    }

    @Test(arguments: [
        "123456789012345678901234567890", "-9223372036854775809", "1e999", "-1E+400", "0.1000", "1e-999", "1.0",
        "18446744073709551615", "-0",
    ])
    func numbersKeepTheirText(number: String) throws {
        try read(#"{"before":9223372036854775807,"n":\#(number),"after":[\#(number)]}"#) { root in
            #expect(root["n"]?.numberText == number)
            #expect(root["before"]?.int == .max)
            #expect(root["after"]?.elements.map(\.numberText) == [number])
        }
        try read(number) { #expect($0.numberText == number) }
    }

    @Test func aNumberBeyond64BitsIsNoInteger() throws {
        try read(#"{"n":123456789012345678901234567890}"#) { #expect($0["n"]?.int == nil) }
    }

    @Test func ofARepeatedKeyTheLastCounts() throws {
        try read(#"{"a":1,"b":2,"a":3}"#) { #expect($0["a"]?.int == 3) }
        let tree = try JSONTree(parsing: Array(#"{"a":1,"b":2,"a":{"c":1,"c":[]}}"#.utf8))
        #expect(tree == .object([.init("a", .object([.init("c", .array([]))])), .init("b", .number("2"))]))
    }

    @Test func unescapesStrings() throws {
        try read(#""a\u4e2d\ud83d\ude00\n\u0000""#) { #expect($0.string == "a中😀\n\0") }
    }

    enum Key: Int, JSONKey {
        case alpha, beta, gamma
        var name: StaticString {
            switch self {
            case .alpha: "alpha"
            case .beta: "beta"
            case .gamma: "gamma"
            }
        }
    }

    @Test func fieldsTakeTheLastOfEachKeyAndNullAsAbsent() throws {
        let table = JSONKeyTable<Key>()
        try read(#"{"alpha":1,"bexa":5,"":0,"beta":2,"alpha":null,"beta":4,"alph":1}"#) { root in
            let fields = table.fields(of: root)
            #expect(fields[.alpha] == nil)
            #expect(fields[.beta]?.int == 4)
            #expect(fields[.gamma] == nil)
        }
        let unknown = JSONUnknownKeys()
        let other = JSONKeyTable<Key>(unknown: unknown)
        try read(#"{"alpha":1,"bexa":{"gama":[0,{"x":1}]},"beta":2}"#) { root in
            _ = other.fields(of: root)
            #expect(unknown.count == 1)
            unknown.notes = []
            if let inner = root["bexa"] { _ = other.fields(of: inner) }
            #expect(unknown.count == 2 && unknown.notes?.map(\.name) == ["gama"])
            #expect(unknown.notes?.first?.known == ["alpha", "beta", "gamma"])
            #expect(unknown.notes?.first.flatMap { root.path(to: $0.object) } == ".bexa")
            let deep = root["bexa"]?["gama"].map { Array($0.elements) }?.last
            #expect(deep.flatMap { root.path(to: $0) } == ".bexa.gama[1]")
            #expect(deep.flatMap { $0.path(to: root) } == nil)
        }
        try read("[]") { #expect(table.fields(of: $0)[.alpha] == nil) }
    }
}

extension JSONCursor {
    fileprivate static func == (lhs: JSONCursor, rhs: JSONCursor?) -> Bool { lhs.offset == rhs?.offset }
}
