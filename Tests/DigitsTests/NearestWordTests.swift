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

    @Test(
        arguments: [
            ("msgId", "msg_id"), ("MSG-ID", "msg_id"), ("threadId", "thread_id"), ("sentMs", "sent_ms"),
            ("titel", "title"),
            ("x", nil), ("ab", nil), ("_", nil),
        ] as [(String, String?)])
    func capitalsAndSeparatorsDoNotCount(word: String, expected: String?) {
        #expect(NearestWord.to(word, among: ["v", "msg_id", "thread_id", "sent_ms", "title", "la"]) == expected)
    }

    @Test func aLongWordIsRefusedAtOnce() {
        #expect(NearestWord.to(String(repeating: "a", count: 1_000_000), among: ["check"]) == nil)
    }
}
