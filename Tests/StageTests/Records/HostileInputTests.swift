// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage
import Worker

/// What one sender puts into events harms nobody else's push: hostile records among ordinary ones, in a world of their own.
@Suite struct HostileInputTests {
    private static let bidi = #"\u202e\u2066evil\u0000\r\n"#

    /// Well formed, and as nasty as can be; each with its outcome for `h`.
    private static let nasty: [(id: String, push: String, outcome: String)] = [
        (
            "n-crlf", #""content":"x","collapse_id":"a\r\napns-topic: evil","thread_id":"t\r\n","category":"c\u0000""#,
            "accepted ok"
        ),
        ("n-bidi", #""title":"\#(bidi)","content":"\#(bidi)","payload":{"k":"\#(bidi)"}"#, "accepted ok"),
        (
            "n-aps", #""content":"x","aps":{"k":"\#(String(repeating: "x", count: 500_000))"}"#,
            "suppressed payload_too_large"
        ),
        (
            "n-sound", #""content":"x","sound":"a\#(String(repeating: "\u{301}", count: 127))""#,
            "accepted ok"
        ),
        // One character, cut for its bytes.
        (
            "n-stack", #""prefix":false,"content":"a\#(String(repeating: "\u{301}", count: 300_000))""#,
            "accepted ok"
        ),
        (
            "n-forge", #""content":"x","payload":{"aps":{"badge":77},"pid":"p","sessionid":"s"},"aps":{"badge":99}"#,
            "accepted ok"
        ),
        (
            "n-deep",
            #""content":"x","payload":\#(String(repeating: #"{"a":"#, count: 28))1\#(String(repeating: "}", count: 28))"#,
            "accepted ok"
        ),
    ]

    private static func refused() -> [(key: String, value: String, why: String)] {
        let marks = String(repeating: "\u{301}", count: 200_000)
        let head = #"{"v":1,"kind":"message","app":"im","event_id":"e","sent_ms":1700000000000,"#
        return [
            (
                "r-deep", String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000),
                "nested too deeply"
            ),
            ("r-surrogate", head + #""msg_id":"\ud800"}"#, "broken string or escape"),
            ("r-nul", head + "\"msg_id\":\"a\0\"}", "broken string or escape"),
            (
                "r-uid", head + #""msg_id":"m","conv":{"id":"c","type":"p2p"},"from":{"uid":"a\#(marks)"}}"#,
                "longer than 128 bytes at $.from.uid"
            ),
            (
                "r-key",
                head + #""msg_id":"m","conv":{"id":"c","type":"p2p"},"from":{"uid":"a"},"to":{"uids":["h"]},"#
                    + #""push":{"aps":{"a\#(marks)":1}}}"#,
                "holds a key longer than 256 bytes at $.push.aps"
            ),
            (
                "r-long", head + #""x":"\#(String(repeating: "x", count: 3_000_000))"}"#,
                "record longer than 1048576 bytes"
            ),
        ]
    }

    @Test func hostileRecordsHarmNobodyElse() throws {
        try Stage.with { stage in
            stage.kafka.limitRecords(Configuration.Topics().deadLetter, bytes: 16 << 20)
            try stage.redis(["HSET g:{im:big} " + (0..<300).map { "u\($0) 0" }.joined(separator: " ")])
            let many = (0..<10_000).map { "\"u\($0)\"" }.joined(separator: ",")
            var lines: [Line] = []
            for (index, case_) in Self.nasty.enumerated() {
                lines.append(.message(case_.id, to: ["h"], conv: "c\(index)", push: case_.push))
                lines.append(.message("ok-\(case_.id)", to: ["v\(index)"], from: "friend", conv: "c\(index)"))
            }
            for (index, bad) in Self.refused().enumerated() {
                lines.append(Line(key: Array(bad.key.utf8), value: Array(bad.value.utf8)))
                lines.append(.message("ok-\(bad.key)", to: ["w\(index)"], from: "friend", conv: bad.key))
            }
            lines.append(
                .message(
                    "n-mention", to: nil, conv: "big", type: "group",
                    #","mention":{"uids":[\#(many)]},"to":{"exclude":["u0"]}"#))
            lines.append(.message("ok-last", to: ["v0"], from: "friend", conv: "big"))
            let users = ["h"] + (0..<8).flatMap { ["v\($0)", "w\($0)"] }
            // A bind may not smuggle a header either, nor take another's place in the topic.
            let smuggled = Line.bind("h", "pad", #","topic":"com.example.im\r\napns-id: 1""#)
            let seen = try stage.play(state: users.map { .bind($0) } + [smuggled], events: lines)
            for case_ in Self.nasty {
                let outcome = try #require(seen.result(of: case_.id), "\(case_.id)")
                #expect("\(outcome["verdict"]?.string ?? "") \(outcome["reason"]?.string ?? "")" == case_.outcome)
            }
            let oks = lines.map(\.id).filter { $0.hasPrefix("e-ok-") }
            #expect(oks.count == Self.nasty.count + Self.refused().count + 1)
            for id in oks {
                let result = seen.results.first { $0["event_id"]?.string == id }
                #expect(result?["verdict"]?.string == "accepted", "\(id): \(String(describing: result))")
            }
            for bad in Self.refused() {
                let letter = try #require(seen.letters.first { $0.key == Array(bad.key.utf8) }, "\(bad.key)")
                #expect(letter.headers["carillon-error"]?.contains(bad.why) ?? false)
                #expect(letter.value == Array(bad.value.utf8), "\(bad.key): the original bytes")
            }
            #expect(seen.letters.contains { $0.headers["carillon-error"]?.contains("$.token.topic") ?? false })
            let members = seen.results.filter { $0["msg_id"]?.string == "n-mention" }
            #expect(members.count == 299, "each member but the excluded has an outcome")
            try Self.lookAtPushes(seen)
        }
    }

    /// Headers are ours, and what is shown holds no control and no open direction mark of a name.
    private static func lookAtPushes(_ seen: Seen) throws {
        for push in seen.pushes {
            #expect(push.status == 200 && push.headers["apns-topic"] == "com.example.im")
            #expect(push.headers.values.allSatisfy { $0.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7f } })
        }
        let collapse = try #require(seen.push(of: "n-crlf")?.headers["apns-collapse-id"])
        #expect(collapse.utf8.count == 64 && collapse.utf8.allSatisfy { $0 != 0x0d && $0 != 0x0a })
        let shown = try #require(seen.push(of: "n-bidi")?.json["aps"]?["alert"])
        for text in [shown["title"]?.string, shown["body"]?.string] {
            #expect(text?.unicodeScalars.contains { $0.value < 0x20 && $0.value != 0x0a } == false)
        }
        let forged = try #require(seen.push(of: "n-forge")?.json)
        #expect(forged["aps"]?["badge"]?.int != 99 && forged["aps"]?["badge"]?.int != 77)
        #expect(forged["pid"]?.string == seen.push(of: "n-forge")?.apnsID)
    }

    /// Over the dead-letter topic's own limit: the headers still tell where the record lies.
    @Test func aDeadLetterTooLargeForItsTopicGoesWithoutItsBytes() throws {
        var settings = LocalCluster.Settings()
        settings.kafkaOptions = ["message.max.bytes": "100000"]
        try Stage.with(settings) { stage in
            let value = Array(#"{"v":1,"x":"\#(String(repeating: "x", count: 200_000))"}"#.utf8)
            let seen = try stage.play(
                state: [.bind("z")],
                events: [Line(key: Array("big".utf8), value: value), .message("z-1", to: ["z"])])
            let letter = try #require(seen.letters.first { $0.key == Array("big".utf8) })
            #expect(letter.value == nil)
            #expect(
                letter.headers["carillon-error"]?.hasPrefix("bad_event: required field is missing at $.kind") ?? false)
            #expect(letter.headers["carillon-offset"].flatMap { Int($0) } != nil)
            #expect(seen.outcomes(of: "z-1") == ["z/phone accepted ok 1"])
        }
    }
}
