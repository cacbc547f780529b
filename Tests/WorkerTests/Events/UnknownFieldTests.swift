// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

@testable import Worker

/// Fields that no reader knows: named with the field that is probably meant.
struct UnknownFieldTests {
    private static func words(_ record: String) -> [String] {
        EventReader(apps: ["im"]).unknownFields(Array(record.utf8)).map(\.words)
    }

    @Test(
        arguments: [
            (#""push":{"body":"x"}"#, "unknown field push.body, did you mean push.content?"),
            (#""push":{"titel":"x"}"#, "unknown field push.titel, did you mean push.title?"),
            (#""push":{"threadId":"x"}"#, "unknown field push.threadId, did you mean push.thread_id?"),
            (#""push":{"force":{"uidss":[]}}"#, "unknown field push.force.uidss, did you mean push.force.uids?"),
            (#""msgId":"x""#, "unknown field msgId, did you mean msg_id?"),
            (#""timestamp":1"#, "unknown field timestamp, did you mean sent_ms?"),
            (#""badge":true"#, "unknown field badge, did you mean push.badge?"),
            (#""trace_context":"x""#, "unknown field trace_context"),
            (#""push":{"aps":{"any":1},"payload":{"any":1},"template":{"id":"t","args":{"any":"x"}}}"#, nil),
        ] as [(String, String?)])
    func ofAMessage(extra: String, words: String?) {
        #expect(Self.words(BadRecordTests.message(extra)) == [words].compactMap { $0 })
    }

    @Test func ofUserStateAndOfAListsElement() {
        let windows =
            #""dnd":{"on":true,"windows":[{"start":"22:00","end":"23:00"},{"begin":"01:00","start":"00:00","end":"02:00"}]}"#
        #expect(Self.words(BadRecordTests.state("settings", windows)) == ["unknown field dnd.windows[1].begin"])
        #expect(
            Self.words(BadRecordTests.state("settings", #""levels":{"grup":5},"snooze_untl_ms":0"#)) == [
                "unknown field snooze_untl_ms, did you mean snooze_until_ms?",
                "unknown field levels.grup, did you mean levels.group?",
            ])
        #expect(
            Self.words(BadRecordTests.bind(#""deviceId":"d""#)) == [
                "unknown field token.deviceId, did you mean token.device?"
            ])
    }

    @Test func aBadRecordNamesThoseInFrontOfItsError() {
        #expect(Self.words(#"{"v":1,"knid":"message"}"#) == ["unknown field knid, did you mean kind?"])
        #expect(Self.words("{") == [] && Self.words("[]") == [])
    }

    @Test func theirNumberIsBounded() {
        let fields = (0..<5_000).map { "\"x\($0)\":1" }.joined(separator: ",")
        #expect(Self.words(BadRecordTests.message(fields)).count == 100)
    }

    @Test func theReaderSaysOfEachRecordWhetherItHasSome() throws {
        let reader = EventReader(apps: ["im"])
        for (extra, hasSome) in [("", false), (#""push":{"body":"x"}"#, true), (#""push":{"content":"x"}"#, false)] {
            _ = try reader.read(Array(BadRecordTests.message(extra).utf8), of: .events)
            #expect(reader.hadUnknownFields == hasSome)
        }
        #expect(throws: BadRecord.self) { try reader.read(Array(#"{"x":1}"#.utf8), of: .events) }
        _ = try reader.read(Array(BadRecordTests.message("").utf8), of: .events)
        #expect(!reader.hadUnknownFields)
    }

    /// A record without them costs no more than before: notes are made on demand alone.
    @Test func namesAreMadeOnDemandAlone() throws {
        let reader = EventReader(apps: ["im"])
        func allocations(_ extra: String) throws -> UInt64 {
            let bytes = Array(BadRecordTests.message(extra).utf8)
            _ = try reader.read(bytes, of: .events)
            return try CountedWork.of { _ = try reader.read(bytes, of: .events) }.allocations
        }
        let bare = try allocations("")
        let unknown = try allocations(#""titel":"x","xyz":1"#)
        #expect(unknown == bare)
    }
}
