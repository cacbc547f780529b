// SPDX-License-Identifier: Apache-2.0
import JSON
import Kafka
import Testing
import VirtualStage
import Worker

/// Records that cannot be read go to the dead-letter topic as they came, and the next one is processed.
@Suite(.onStage(scenario: TokenPrefix.scenario)) struct BadRecordTests {
    private static let sent: Int64 = 1_700_000_000_000
    private static let head = #"{"v":1,"kind":"message","app":"im","event_id":"e","sent_ms":\#(sent),"#
    private static let tail = #""conv":{"id":"c","type":"p2p"},"from":{"uid":"a"},"to":{"uids":["b"]}"#

    private static let broken = [
        ("x-broken", #"{"v":1,"kind":"#, "$, byte "),
        ("x-not-object", "[1,2]", "at $, byte 0"),
        ("x-missing", head + tail + "}", "at $.msg_id, byte 0"),
        ("x-type", head + #""msg_id":7,"# + tail + "}", "at $.msg_id, byte 83"),
        ("x-fraction", head + #""msg_id":"m","server_seq":1.0,"# + tail + "}", "at $.server_seq, byte 100"),
        ("x-kind", #"{"v":1,"kind":"song","app":"im","event_id":"e","sent_ms":\#(sent)}"#, "at $.kind, byte 14"),
        ("x-version", #"{"v":2,"kind":"message","app":"im","event_id":"e"}"#, "at $.v, byte 5"),
        (
            "x-app", #"{"v":1,"kind":"message","app":"nobody","event_id":"e"}"#,
            #"unknown app "nobody", known are im at $.app, byte 30"#
        ),
        (
            "x-topic", #"{"v":1,"kind":"ack","app":"im","event_id":"e","sent_ms":\#(sent),"uid":"u"}"#,
            "at $.kind, byte 14"
        ),
        ("x-mark", "\u{FEFF}" + head + #""msg_id":"m","# + tail + "}", "byte order mark at $, byte 0"),
        (
            "x-long", head + #""msg_id":"\#(String(repeating: "m", count: 65))","# + tail + "}",
            "at $.msg_id, byte 83"
        ),
        (
            "x-list",
            head + #""msg_id":"m","push":{"force":{"mode":"list","uids":["#
                + (0..<101).map { "\"u\($0)\"" }.joined(separator: ",") + "]}}," + tail + "}",
            "at $.push.force.uids, byte "
        ),
    ]

    @Test func aBrokenRecordIsADeadLetterAndTheNextOneGoesOn() throws {
        let seen = try Stage.here.play(
            state: Self.broken.map { .bind($0.0) },
            events: Self.broken.flatMap { key, text, _ in
                [
                    Line(key: Array(key.utf8), value: Array(text.utf8)),
                    .message("\(key)-ok", to: [key], conv: key),
                ]
            })
        for (key, text, place) in Self.broken {
            let letter = try #require(seen.letters.first { $0.key == Array(key.utf8) })
            #expect(letter.value == Array(text.utf8))
            #expect(
                Set(letter.headers.keys) == [
                    "carillon-error", "carillon-topic", "carillon-partition", "carillon-offset",
                ])
            let error = try #require(letter.headers["carillon-error"])
            #expect(error.hasPrefix("bad_event: ") && error.contains(place), "\(key): \(error)")
            #expect(letter.headers["carillon-topic"] == "im.events")
            #expect(letter.headers["carillon-partition"].flatMap { Int($0) } != nil)
            #expect(letter.headers["carillon-offset"].flatMap { Int($0) } != nil)
            #expect(seen.outcomes(of: "\(key)-ok") == ["\(key)/phone accepted ok 1"])
        }
    }

    /// The stored settings make the record bad: its key and bytes are kept until Redis has answered.
    @Test func dndWithoutAnyWindowIsADeadLetter() throws {
        let line = Line.state("settings", "y-dnd", #""dnd":{"on":true},"lang":"de""#)
        let seen = try Stage.here.play(
            state: [
                .bind("y-dnd"), line,
                .state("settings", "y-dnd2", #""dnd":{"start":"00:00","end":"23:59","days":[1,2,3,4,5,6,7]}"#),
                .state("settings", "y-dnd2", #""dnd":{"on":true}"#),
            ], events: [.message("y-dnd", to: ["y-dnd"])])
        let letters = seen.letters.filter { $0.key == Array("y-dnd".utf8) }
        #expect(letters.map(\.value) == [line.value])
        let byte = line.text.utf8.count - #"{"on":true},"lang":"de"}"#.utf8.count
        let error = letters.first?.headers["carillon-error"]
        #expect(error?.hasSuffix("at $.dnd.start, byte \(byte)") == true, "\(error ?? "none")")
        #expect(letters.first?.headers["carillon-topic"] == "im.user-state")
        #expect(seen.outcomes(of: "y-dnd") == ["y-dnd/phone accepted ok 1"])
        #expect(!seen.letters.contains { $0.key == Array("y-dnd2".utf8) })
    }

    @Test func emptyAndNullRecordsAndThoseOfUserStateAreDeadLettersToo() throws {
        let stage = try Stage.here
        let topics = Configuration.Topics()
        try stage.write(
            [Line(key: Array("y-null".utf8), value: nil), Line(key: Array("y-empty".utf8), value: [])],
            to: topics.events)
        try stage.write(
            [
                Line(key: Array("y-state".utf8), value: Array("{}".utf8)),
                Line(key: nil, value: Array(#"{"v":1,"y":"nokey"}"#.utf8)),
            ], to: topics.userState)
        try stage.settle()
        let seen = try stage.look()
        let null = try #require(seen.letters.first { $0.key == Array("y-null".utf8) })
        #expect(null.value == nil && null.headers["carillon-error"]?.contains("$, byte 0") ?? false)
        #expect(seen.letters.contains { $0.key == Array("y-empty".utf8) && ($0.value ?? []).isEmpty })
        let state = try #require(seen.letters.first { $0.key == Array("y-state".utf8) })
        #expect(state.headers["carillon-topic"] == "im.user-state")
        #expect(seen.letters.contains { $0.key == nil && $0.value == Array(#"{"v":1,"y":"nokey"}"#.utf8) })
    }
}
