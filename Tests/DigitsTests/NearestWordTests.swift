// SPDX-License-Identifier: Apache-2.0
import Digits
import Testing

struct NearestWordTests {
    @Test(
        arguments: [
            ("chekc", "check"), ("replya", "replay"), ("demoo", "demo"), ("run", "run"), ("hceck", "check"),
            ("xyzzy", nil), ("", nil),
            ("simulatte", "simulate"), ("s", nil),
        ] as [(String, String?)])
    func aWordIsMeantWhereItIsNearEnough(word: String, expected: String?) {
        #expect(NearestWord.to(word, among: ["run", "check", "demo", "replay", "simulate"]) == expected)
    }

    @Test func aLongWordIsRefusedAtOnce() {
        #expect(NearestWord.to(String(repeating: "a", count: 1_000_000), among: ["check"]) == nil)
    }
}
