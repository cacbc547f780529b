// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Testing

@Suite struct HTTPQueryTests {
    @Test(
        arguments: [
            (nil, "a", nil), ("", "a", nil), ("a=1", "a", "1"), ("a", "a", ""), ("a=", "a", ""),
            ("b=2&a=1&a=3", "a", "1"),
            ("a=b=c", "a", "b=c"), ("a=1+2%2B3", "a", "1 2+3"), ("%61=%e6%B1%89", "a", "汉"), ("&&a=1&", "a", "1"),
        ] as [(String?, String, String?)])
    func aFieldIsDecoded(query: String?, name: String, value: String?) throws {
        #expect(try #require(HTTPQuery(query))[name] == value)
    }

    @Test(arguments: ["a=%", "a=%4", "a=%zz", "%=1", "a=%ff", "a=%C3%28"])
    func aValueThatIsNoTextIsRefused(query: String) {
        #expect(HTTPQuery(query) == nil)
    }

    @Test func manyFieldsAreRefused() {
        #expect(HTTPQuery(String(repeating: "a=1&", count: 16)) != nil)
        #expect(HTTPQuery(String(repeating: "a=1&", count: 17)) == nil)
    }
}
