// SPDX-License-Identifier: Apache-2.0
import JSON
import Testing

@testable import Recording

/// What leaves a recording, and what stays.
@Suite struct ScrubberTests {
    private static let token = String(repeating: "0aF9", count: 16)
    private static let key = ScrubKey(Array("a secret of an operator".utf8))

    private static func scrub(_ value: String, ids: Bool = false) throws -> String {
        var scrubber = Scrubber(key: try #require(key), scrubsIDs: ids)
        return String(decoding: scrubber.scrub(value: Array(value.utf8)), as: UTF8.self)
    }

    @Test(
        arguments: [
            (
                #"{"kind":"message","app":"im","msg_id":"m1","sent_ms":1700000000000,"push":{"title":"Ann","content":"Call 42!"}}"#,
                #"{"kind":"message","app":"im","msg_id":"m1","sent_ms":1700000000000,"push":{"title":"Xxx","content":"Xxxx 00!"}}"#
            ),
            (
                #"{"from":{"uid":"alice","nick":"爱丽丝","device":"d1"},"conv":{"id":"c1","type":"p2p","name":"Ж"}}"#,
                #"{"from":{"uid":"alice","nick":"文文文","device":"d1"},"conv":{"id":"c1","type":"p2p","name":"ж"}}"#
            ),
            // Custom keys at every depth; their names stay.
            (
                #"{"push":{"payload":{"k":["a",{"b":"c"}],"n":12,"tel":13800138000,"ok":true}}}"#,
                #"{"push":{"payload":{"k":["x",{"b":"x"}],"n":12,"tel":11111111111,"ok":true}}}"#
            ),
            (
                #"{"push":{"aps":{"alert":{"title":"T"},"sound":"ding.caf","interruption-level":"active"}}}"#,
                #"{"push":{"aps":{"alert":{"title":"X"},"sound":"ding.caf","interruption-level":"active"}}}"#
            ),
            (
                #"{"kind":"settings","uid":"bob","phone":"+86 138-0013-8000","lang":"zh-Hans"}"#,
                #"{"kind":"settings","uid":"bob","phone":"+00 000-0000-0000","lang":"zh-Hans"}"#
            ),
            (
                #"{"from":{"uid":"a","avatar":"https://photos.example.com/a.png"}}"#,
                #"{"from":{"uid":"a","avatar":"https://example.invalid/xxxxxxxx"}}"#
            ),
            (
                #"{"la":{"activity_id":"a1","event":"update","state":{"score":"3:1"},"alert":"Goal"}}"#,
                #"{"la":{"activity_id":"a1","event":"update","state":{"score":"0:0"},"alert":"Xxxx"}}"#
            ),
            // A text where a word belongs, and a field that nobody knows.
            (#"{"kind":"Hello Bob","news":"Hi"}"#, #"{"kind":"Xxxxx Xxx","news":"Xx"}"#),
            (
                #"{"uid":"bob","title":"Hi","body":"Yo","reason":"no_token"}"#,
                #"{"uid":"bob","title":"Xx","body":"Xx","reason":"no_token"}"#
            ),
            // Deliveries, and an event within.
            (
                #"{"v":1,"app":"im","gateway":"g","event":{"push":{"content":"Hi"}},"to":[{"uid":"bob","alert":true,"pid":"p-1"}]}"#,
                #"{"v":1,"app":"im","gateway":"g","event":{"push":{"content":"Xx"}},"to":[{"uid":"bob","alert":true,"pid":"p-1"}]}"#
            ),
            // What is no JSON is one text.
            (#"{"kind":"message","push":{"content":"Hi"}"#, #"{"xxxx":"xxxxxxx","xxxx":{"xxxxxxx":"Xx"}"#),
            (#""Hi""#, #""Xx""#), ("[1,\"a\"]", "[1,\"x\"]"), ("", ""),
        ])
    func textsBecomeStandInsOfTheirLength(value: String, scrubbed: String) throws {
        #expect(try Self.scrub(value) == scrubbed)
        #expect(value.utf8.count == scrubbed.utf8.count)
    }

    @Test func aTokenIsAlwaysTheSameFake() throws {
        let bind = #"{"kind":"bind","uid":"bob","token":{"device":"d","token":"\#(Self.token)","env":"production"}}"#
        let feedback = #"{"uid":"bob","token":"\#(Self.token.lowercased())","cause":"410"}"#
        let unbind = #"{"kind":"unbind","uid":"\#(Self.token)","x":{"\#(Self.token)":1},"t":"\#(Self.token)"}"#
        let fake = try #require(
            try JSONTree(parsing: Array(Self.scrub(bind).utf8))["token"]?["token"]?.string)
        #expect(fake.utf8.count == 64 && fake != Self.token.lowercased())
        #expect(fake.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) })
        for text in [bind, feedback, unbind] {
            let scrubbed = try Self.scrub(text)
            #expect(scrubbed.contains(fake) && !scrubbed.lowercased().contains(Self.token.lowercased()))
        }
        #expect(try Self.scrub(unbind) == unbind.replacing(Self.token, with: fake))
        var other = Scrubber(key: try ScrubKey.random())
        #expect(!String(decoding: other.scrub(value: Array(bind.utf8)), as: UTF8.self).contains(fake))
        #expect(ScrubKey(Array("too short".utf8)) == nil)
    }

    /// Shorter ones are tokens only where a token stands.
    @Test func aTokensFakeHasItsLength() throws {
        for count in [2, 62, 64, 160, 512] {
            let token = String(repeating: "b", count: count)
            let value = try Self.scrub(#"{"token":{"token":"\#(token)","device":"d"}}"#)
            let fake = try #require(try JSONTree(parsing: Array(value.utf8))["token"]?["token"]?.string)
            #expect(fake.utf8.count == count && fake != token)
        }
        #expect(try Self.scrub(#"{"token":{"token":"not hex"}}"#) == #"{"token":{"token":"xxx xxx"}}"#)
    }

    @Test func identifiersStayTogetherOrGoTogether() throws {
        let message = #"{"uid":"bob","msg_id":"m1","to":{"uids":["bob","eve"]},"conv":{"id":"c1"},"msg_ids":["m1"]}"#
        #expect(try Self.scrub(message) == message)
        let tree = try JSONTree(parsing: Array(Self.scrub(message, ids: true).utf8))
        let bob = try #require(tree["uid"]?.string)
        #expect(bob.hasPrefix("x-") && bob != tree["to"]?["uids"]?[1]?.string)
        #expect(tree["to"]?["uids"]?[0]?.string == bob && tree["msg_ids"]?[0]?.string == tree["msg_id"]?.string)
        #expect(tree["conv"]?["id"]?.string?.hasPrefix("x-") == true)
    }

    /// Only texts are replaced: a replay of the scrubbed record decides the same.
    @Test(arguments: [
        #"{"kind":"settings","levels":{"p2p":5,"group":1,"ultra":-1,"system":0,"custom":2},"snooze_until_ms":1700000000000}"#,
        #"{"kind":"settings","dnd":{"on":true,"windows":[{"start":"22:00","end":"08:00","days":[1,7]}],"level":1}}"#,
        #"{"kind":"bind","token":{"device":"d","env":"production","alerts":false}}"#,
    ])
    func `settings and binds keep their words and numbers`(record: String) throws {
        #expect(try Self.scrub(record) == record)
    }

    @Test func keysAndHeadersAreScrubbedAsWhatTheyAre() throws {
        var scrubber = Scrubber(key: try #require(Self.key), tokenKeyedTopics: ["push.feedback"])
        let short = scrubber.scrub(
            RecordLine(topic: "push.feedback", key: Array("abcd".utf8), value: nil, timestampMs: 7))
        #expect(
            short.key?.count == 4 && short.key != Array("abcd".utf8) && short.value == nil && short.timestampMs == 7)
        let kept = [
            RecordLine.Header(name: "carillon-error", value: Array("bad_event: missing at $.kind, byte 0".utf8))
        ]
        let letter = scrubber.scrub(
            RecordLine(
                topic: "push.dead-letter", key: Array("c1".utf8), value: [0xFF, 0x41, 0x31], timestampMs: nil,
                headers: kept + [
                    RecordLine.Header(name: "trace", value: Array("Bob".utf8)),
                    RecordLine.Header(name: "n", value: nil),
                ]))
        #expect(letter.key == Array("c1".utf8) && letter.value == Array("?X0".utf8))
        #expect(letter.headers.map(\.value) == [kept[0].value, Array("Xxx".utf8), nil])
    }

    /// What is cut at a number of characters is cut at the same place.
    @Test(arguments: ["👨‍👩‍👧‍👦", "e\u{301}", "🇩🇪🇫🇷", "👍🏽", "a\r\nb", "☎️", "文Жa😀"])
    func standInsHaveAsManyBytesAndCharacters(text: String) {
        let standIn = ScrubText.text(text)
        #expect(standIn.utf8.count == text.utf8.count && standIn.count == text.count)
        #expect(ScrubText.text(standIn) == standIn)
        // Where letters join, bytes alone.
        #expect(ScrubText.text("नमस्ते").utf8.count == "नमस्ते".utf8.count)
    }
}
