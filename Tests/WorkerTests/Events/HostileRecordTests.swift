// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing
import Worker

/// Records made to harm: each limit refuses with a rule of its own, and what is let through is as it was written.
struct HostileRecordTests {
    private static let message = BadRecordTests.message

    /// A message whose `field` holds a JSON text.
    private static func text(_ field: String, _ json: String) -> String {
        switch field {
        case "msg_id", "type_name": message("\"\(field)\":\(json)")
        case "nick": message(#""from":{"uid":"a","nick":\#(json)}"#)
        case "uid": message(#""to":{"uids":[\#(json)]}"#)
        default: message(#""push":{"\#(field)":\#(json)}"#)
        }
    }

    private static func rule(_ record: [UInt8]) -> BadRecord.Rule? {
        do {
            _ = try EventReader(apps: ["im"]).read(record, of: .events)
            return nil
        } catch {
            return error.rule
        }
    }

    @Test(arguments: ["msg_id", "type_name", "nick", "uid", "title", "content", "thread_id", "collapse_id", "sound"])
    func loneSurrogatesAndBrokenBytesAreRefusedInEveryText(field: String) {
        for escape in [#""\ud800""#, #""a\udc00b""#, #""\ud800A""#, #""\uD83D\u0041""#, #""\u12""#, #""\x41""#] {
            #expect(Self.rule(Array(Self.text(field, escape).utf8)) == .brokenString, "\(escape)")
        }
        #expect(Self.rule(Array(Self.text(field, #""\ud83d\ude42""#).utf8)) == nil)
        for broken: [UInt8] in [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe4, 0xbd]] {
            let parts = Self.text(field, "\"?\"").split(separator: "?", maxSplits: 1)
            #expect(Self.rule(Array(parts[0].utf8) + broken + Array(parts[1].utf8)) == .notUTF8, "\(broken)")
        }
        // A raw control inside a string is no JSON; escaped it is.
        #expect(Self.rule(Array(Self.text(field, "\"a\u{0}b\"").utf8)) == .brokenString)
    }

    @Test func controlsTravelWhereNobodyReadsThem() throws {
        let event = try EventReader(apps: ["im"]).read(
            Array(Self.message(#""push":{"content":"a\u0000\r\nb","payload":{"k":"\u0000\u202e"}}"#).utf8), of: .events)
        guard case .message(let shared) = event.body else { throw BadRecord(.unknownKind, "no message") }
        #expect(shared.value.push.content == "a\0\r\nb")
        #expect(shared.value.push.payload?.members(in: .raw)?.value(of: "k")?.string == "\0\u{202e}")
    }

    static let limits: [(String, BadRecord.Rule)] = [
        ("", .empty),
        (String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000), .tooDeep),
        (message(#""push":{"payload":\#(deep(100_000))}"#), .tooDeep),
        (message(#""x":\#(deep(100_000))"#), .tooDeep),
        // Never closed: that is seen before the depth.
        (String(repeating: "{\"a\":", count: 100_000), .brokenJSON),
        (text("content", "\"" + String(repeating: "x", count: 10_000_000) + "\""), .tooLong),
        (
            message(#""to":{"uids":["# + Array(repeating: #""u""#, count: 1_000_000).joined(separator: ",") + "]}"),
            .tooLong
        ),
        (String(repeating: " ", count: 1 << 20) + "{", .tooLong),
        (text("content", "\"no end"), .brokenString),
        (message(#""push":{"payload":{"k":"\#(String(repeating: "x", count: 2_048))"}}"#), .longPayload),
        (text("msg_id", "\"" + String(repeating: "m", count: 65) + "\""), .longIdentifier),
        (
            message(
                #""push":{"force":{"uids":["# + Array(repeating: #""u""#, count: 101).joined(separator: ",") + "]}}"),
            .longList
        ),
    ]

    private static func deep(_ count: Int) -> String {
        String(repeating: #"{"a":"#, count: count) + "1" + String(repeating: "}", count: count)
    }

    @Test(arguments: limits.indices)
    func everyLimitHasItsOwnRule(index: Int) {
        let (record, rule) = Self.limits[index]
        #expect(Self.rule(Array(record.utf8)) == rule, "\(record.prefix(80))")
    }

    /// What is within the limits is read, however odd: longer texts are cut, not refused.
    @Test func longTextsAreCutOnTheBorderOfACharacter() throws {
        let family = "👨‍👩‍👧‍👦"
        let long = String(repeating: family, count: 2_000)
        let event = try EventReader(apps: ["im"]).read(
            Array(
                Self.message(#""push":{"title":"\#(long)","content":"\#(long)","force":{"content":"\#(long)"}}"#).utf8),
            of: .events)
        guard case .message(let shared) = event.body else { throw BadRecord(.unknownKind, "no message") }
        let push = shared.value.push
        // A family takes 25 bytes of the 464 and 2064 that so many characters may have; the `…` takes three.
        #expect(push.title == String(repeating: family, count: 18) + "…")
        #expect(push.content == String(repeating: family, count: 82) + "…")
        #expect(push.force.content == push.content)
    }

    /// A record may name ten thousand users; asking for each member of a large group whether he is
    /// mentioned or excluded must not take a search through all of them.
    @Test(.timeLimit(.minutes(1))) func longListsOfUsersAreNotSearchedOneByOne() throws {
        let uids = (0..<10_000).map { "\"u\($0)\"" }.joined(separator: ",")
        let record = Self.message(#""mention":{"uids":[\#(uids)]},"to":{"uids":["me"],"exclude":["x"]}"#)
        let event = try EventReader(apps: ["im"]).read(Array(record.utf8), of: .events)
        guard case .message(let shared) = event.body else { throw BadRecord(.unknownKind, "no message") }
        let mention = try #require(shared.value.mention)
        var message = shared.value
        message.to.exclude = mention.uids
        var named = 0
        // One by one it would be a thousand million comparisons.
        for number in 0..<100_000 {
            if mention.names("u\(number)") { named += 1 }
            #expect(message.isMeant(for: "u\(number)") == (number >= 10_000))
        }
        #expect(named == 10_000)
        #expect(!message.isMeant(for: "a"), "the sender")
        message.to.exclude = ["u1"]
        #expect(message.isMeant(for: "u2") && !message.isMeant(for: "u1"))
    }
}
