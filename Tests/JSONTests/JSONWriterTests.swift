// SPDX-License-Identifier: Apache-2.0
import JSON
import Support
import Testing

struct JSONWriterTests {
    @Test func writesCommasAndEscapes() {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("a", "q\"b\\c\nd\u{1}中\u{7F}")
        writer.member("b", Int64.min)
        writer.member("c", ifPresent: nil)
        writer.key("list")
        writer.beginArray()
        writer.int(0)
        writer.double(1.5)
        writer.double(.nan)
        writer.beginObject()
        writer.endObject()
        writer.endArray()
        writer.key(escaping: "k\"")
        writer.raw(Array("{\"x\":1}".utf8))
        writer.member("last", true)
        writer.endObject()
        let expected =
            #"{"a":"q\"b\\c\nd\u0001中"# + "\u{7F}"
            + #"","b":-9223372036854775808,"list":[0,1.5,null,{}],"k\"":{"x":1},"last":true}"#
        #expect(String(decoding: writer.bytes, as: UTF8.self) == expected)
        writer.clear()
        writer.string("")
        #expect(writer.bytes == Array("\"\"".utf8))
    }

    @Test func anEscapeIsFoundAtEveryPlaceOfATextOfEveryLength() throws {
        // Beside each of them stand the bytes that differ from it in one bit.
        for byte in [0, 0x1F, 0x22, 0x5C] as [UInt8] {
            for length in 1...20 {
                for place in 0..<length {
                    var bytes = (0..<length).map { [0x20, 0x23, 0x5D, 0x7F][$0 % 4] as UInt8 }
                    bytes[place] = byte
                    let text = String(decoding: bytes, as: UTF8.self)
                    var writer = JSONWriter()
                    writer.string(text)
                    #expect(try JSONTree(parsing: writer.bytes) == .string(text))
                }
            }
        }
    }

    @Test func aStringOfTwoIsTheirJoin() {
        for (first, second) in [
            ("", ""), ("a", ""), ("", "b"), ("a\n", "\"b\\"), (String(repeating: "é", count: 90), "c"),
        ] {
            var joined = JSONWriter()
            joined.string(first + second)
            var parts = JSONWriter()
            parts.string(first, second)
            #expect(parts.bytes == joined.bytes)
        }
    }

    @Test func writtenRecordsReadBackUnchanged() throws {
        let seed = UInt64.random(in: .min ... .max)
        var random = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            let scalars = (0..<(random.next() % 40)).compactMap { _ in UnicodeScalar(UInt32(random.next() % 0x11_0000))
            }
            var text = ""
            text.unicodeScalars.append(contentsOf: scalars)
            var writer = JSONWriter()
            writer.string(text)
            #expect(try JSONTree(parsing: writer.bytes) == .string(text), "seed \(seed)")
        }
    }
}
