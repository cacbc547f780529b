// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage

/// What one message makes: payload, headers, records.
@Suite(.onStage(scenario: TokenPrefix.scenario)) struct MessageTests {
    @Test func aPushCarriesTheContractsPayloadHeadersAndResult() throws {
        let seen = try Stage.here.play(
            state: [.bind("m1")],
            events: [
                .message(
                    "m1-a", to: ["m1"], seq: 1,
                    push:
                        #""title":"Ann","content":"See you","payload":{"k":[1]},"collapse_id":"c1","priority":"normal""#
                )
            ])
        let push = try #require(seen.push(of: "m1-a"))
        #expect(push.token == token("m1", "phone"))
        #expect(push.headers["apns-topic"] == "com.example.im")
        #expect(push.headers["apns-push-type"] == "alert")
        #expect(push.headers["apns-priority"] == "5")
        #expect(push.headers["apns-collapse-id"] == "c1")
        let expiration = try #require(push.headers["apns-expiration"].flatMap { Int64($0) })
        #expect((86_000...86_500).contains(expiration - nowMs / 1000))
        let payload = push.json
        #expect(payload["aps"]?["alert"]?["title"]?.string == "Ann")
        #expect(payload["aps"]?["alert"]?["body"]?.string == "Nick: See you")
        #expect(payload["aps"]?["badge"]?.int == 1)
        #expect(payload["aps"]?["mutable-content"]?.int == 1)
        #expect(payload["aps"]?["sound"]?.string == "default")
        #expect(payload["aps"]?["thread-id"]?.string == "c-m1")
        #expect(payload["k"]?.array?.count == 1)
        #expect(payload["sessionid"]?.string == "sender")
        let result = try #require(seen.result(of: "m1-a"))
        #expect(
            result.members?.map(\.key) == [
                "v", "app", "event_id", "msg_id", "lane", "uid", "device", "verdict", "reason", "pid", "apns_id",
                "status", "badge", "credential", "attempts", "latency_ms", "at_ms",
            ])
        let pid = try #require(result["pid"]?.string)
        #expect(pid == push.apnsID && pid == result["apns_id"]?.string && pid == payload["pid"]?.string)
        #expect(pid.count == 36 && pid == pid.lowercased())
        #expect(result["v"]?.int == 1 && result["status"]?.int == 200 && result["attempts"]?.int == 1)
        #expect(seen.outcomes(of: "m1-a") == ["m1/phone accepted ok 1"])
    }

    @Test func aRevokeTakesItsOriginalsCollapseID() throws {
        let seen = try Stage.here.play(
            state: [.bind("m2")],
            events: [
                .message("m2-a", to: ["m2"], push: #""content":"oops","collapse_id":"oops-1""#),
                .message("m2-b", to: ["m2"], push: #""content":"plain""#),
                .revoke("m2-c", of: "m2-b", to: "m2"),
                // What its own sender chose goes with the original, wherever the revoke's own would lead.
                .revoke("m2-d", of: "m2-a", to: "m2"),
                .revoke("m2-e", of: "m2-a", to: "m2", push: #""content":"x","collapse_id":"elsewhere""#),
                .message("m2-f", to: ["m2"], push: #""content":"y","payload":{"apns-collapse-id":"界"}"#),
                .revoke("m2-g", of: "m2-f", to: "m2"),
                // Nor where the original's sender chose none: that one went with what follows from its id.
                .revoke("m2-h", of: "m2-b", to: "m2", push: #""content":"z","collapse_id":"own""#),
            ])
        let original = try #require(seen.push(of: "m2-b")?.headers["apns-collapse-id"])
        #expect(seen.push(of: "m2-c")?.headers["apns-collapse-id"] == original)
        #expect(seen.push(of: "m2-h")?.headers["apns-collapse-id"] == original)
        for id in ["m2-a", "m2-d", "m2-e"] {
            #expect(seen.push(of: id)?.headers["apns-collapse-id"] == "oops-1", "\(id)")
        }
        let hashed = try #require(seen.push(of: "m2-f")?.headers["apns-collapse-id"])
        #expect(hashed.count == 64 && seen.push(of: "m2-g")?.headers["apns-collapse-id"] == hashed)
    }

    /// The original adds nothing to the badge, so Redis knows of it only after its end.
    @Test func `a revoke takes the collapse id of an original that is still in work`() throws {
        let seen = try Stage.here.play(
            state: [.bind("m10")],
            events: [
                .message("m10-a", to: ["m10"], push: #""content":"oops","badge":false"#),
                .revoke("m10-b", of: "m10-a", to: "m10", push: #""content":"x","collapse_id":"own""#),
            ])
        let original = try #require(seen.push(of: "m10-a")?.headers["apns-collapse-id"])
        #expect(seen.push(of: "m10-b")?.headers["apns-collapse-id"] == original)
    }

    /// The note for the revoke is lost with the link, or cannot be sent at all.
    @Test(arguments: [Duration.zero, .seconds(4)])
    func `a revoke takes the collapse id of an original that came while Redis was away`(since: Duration) throws {
        try Stage.with(.oneShard) { stage in
            try stage.play(state: [.bind("m11")], events: [.message("m11-0", to: ["m11"])])
            stage.redis.freeze()
            stage.wait(since)
            try stage.writeEvents([
                .message("m11-a", to: ["m11"], push: #""content":"oops","collapse_id":"oops-1""#)
            ])
            stage.wait(.seconds(4))
            stage.redis.restart()
            stage.redis.thaw()
            try stage.settle()
            let seen = try stage.play(events: [.revoke("m11-b", of: "m11-a", to: "m11")])
            #expect(seen.push(of: "m11-b")?.headers["apns-collapse-id"] == "oops-1")
        }
    }

    /// Redis reads, and takes the note only later.
    @Test func `a revoke takes the collapse id of an original that came while Redis was full`() throws {
        try Stage.with(.oneShard) { stage in
            try stage.play(state: [.bind("m12")], events: [.message("m12-0", to: ["m12"])])
            try stage.redis(["CONFIG SET maxmemory 1"])
            try stage.writeEvents([
                .message("m12-a", to: ["m12"], push: #""content":"oops","collapse_id":"oops-1""#)
            ])
            stage.wait(.seconds(4))
            try stage.redis(["CONFIG SET maxmemory 0"])
            try stage.settle()
            let seen = try stage.play(events: [.revoke("m12-b", of: "m12-a", to: "m12")])
            #expect(seen.push(of: "m12-b")?.headers["apns-collapse-id"] == "oops-1")
        }
    }

    @Test func aRevokeOfAnUnknownMessageHasItsOwnCollapseID() throws {
        let seen = try Stage.here.play(
            state: [.bind("m9")],
            events: [
                .revoke("m9-a", of: "m9-x", to: "m9", push: #""content":"x","collapse_id":"own""#),
                .revoke(
                    "m9-b", of: "m9-y", to: "m9", push: #""content":"x","payload":{"apns-collapse-id":"lifted"}"#),
                .revoke("m9-c", of: "m9-z", to: "m9"), .message("m9-z", to: ["m9"], push: #""content":"late""#),
            ])
        #expect(seen.push(of: "m9-a")?.headers["apns-collapse-id"] == "own")
        #expect(seen.push(of: "m9-b")?.headers["apns-collapse-id"] == "lifted")
        #expect(seen.push(of: "m9-c")?.headers["apns-collapse-id"]?.count == 32)
    }

    @Test func aSilentPushShowsNothingAndHasPriorityFive() throws {
        let seen = try Stage.here.play(
            state: [.bind("m3")],
            events: [
                .message("m3-a", to: ["m3"], push: #""silent":true,"payload":{"sync":1}"#),
                .message("m3-b", to: ["m3"]),
            ])
        let push = try #require(seen.push(of: "m3-a"))
        #expect(push.headers["apns-push-type"] == "background" && push.headers["apns-priority"] == "5")
        #expect(push.json["aps"] == .object([.init("content-available", .number("1"))]))
        #expect(push.json["sync"]?.int == 1)
        #expect(seen.outcomes(of: "m3-b") == ["m3/phone accepted ok 2"], "a silent one counts like any other")
    }

    @Test func voipGoesToVoipTokensOnlyAndOrdinaryPushesNeverDo() throws {
        let seen = try Stage.here.play(
            state: [.bind("m4"), .bind("m4", type: "voip")],
            events: [
                .message("m4-a", to: ["m4"], push: #""content":"call","voip":true"#),
                .message("m4-b", to: ["m4"]),
            ])
        let call = try #require(seen.push(of: "m4-a"))
        #expect(call.token == Line.usualToken("m4", "phone", "voip"))
        #expect(call.headers["apns-topic"] == "com.example.im.voip")
        #expect(call.headers["apns-push-type"] == "voip" && call.headers["apns-expiration"] == "0")
        #expect(seen.pushes(to: call.token).count == 1)
        #expect(seen.push(of: "m4-b")?.token == token("m4", "phone"))
    }

    @Test func hiddenDetailsReplaceWhatIsShown() throws {
        let seen = try Stage.here.play(
            state: [.bind("m5"), .state("settings", "m5", #""show_detail":false"#)],
            events: [
                .message(
                    "m5-a", to: ["m5"],
                    push:
                        #""title":"secret-title","content":"secret-body","payload":{"k":1},"aps":{"alert":"secret-alert"}"#
                ),
                .message("m5-b", to: ["m5"], push: #""content":"open","force_detail":true"#),
            ])
        let hidden = String(decoding: try #require(seen.push(of: "m5-a")).payload, as: UTF8.self)
        #expect(!hidden.contains("secret") && !hidden.contains("Nick"))
        #expect(try seen.payload(of: "m5-a")?["k"]?.int == 1, "custom keys are not shown, so they stay")
        #expect(try seen.payload(of: "m5-b")?["aps"]?["alert"]?["body"]?.string == "Nick: open")
    }

    @Test func nobodyIsPushedWhereTheMessageSaysSoOrIsOver() throws {
        let seen = try Stage.here.play(
            state: [.bind("m6")],
            events: [
                .message("m6-a", to: ["m6"], push: #""content":"x","enabled":false,"force":{"mode":"all"}"#),
                .message("m6-b", to: ["m6"], sentMs: nowMs - 5000, #","expire_at_ms":\#(nowMs - 1000)"#),
                .message("m6-c", to: ["m6", "sender", "m6x"], conv: "c-m6", #","custom":false"#),
                .message("m6-d", to: ["m6-nobody"], conv: "c-m6", push: #""content":"x","sms":true"#),
            ])
        #expect(seen.outcomes(of: "m6-a") == ["m6 suppressed msg_push_off"])
        #expect(seen.outcomes(of: "m6-b") == ["m6 expired expired"])
        #expect(seen.outcomes(of: "m6-c") == ["m6/phone accepted ok 1", "m6x suppressed no_token"])
        #expect(seen.outcomes(of: "m6-d") == ["m6-nobody suppressed no_token"])
        let sms = seen.sms.filter { $0["msg_id"]?.string == "m6-d" }
        #expect(
            sms.count == 1 && sms.first?["reason"]?.string == "no_token" && sms.first?["uid"]?.string == "m6-nobody"
        )
        #expect(
            sms.first?.members?.map(\.key) == ["v", "app", "event_id", "msg_id", "uid", "reason", "body", "at_ms"])
        #expect(seen.pushes(to: token("m6", "phone")).count == 1)
    }

    @Test func tooLargePayloadsAreTrimmedOrNotSent() throws {
        let aps = String(repeating: "x", count: 4100)
        let seen = try Stage.here.play(
            state: [.bind("m7")],
            events: [
                .message("m7-a", to: ["m7"], push: #""content":"x","aps":{"big":"\#(aps)"}"#),
                .message(
                    "m7-b", to: ["m7"],
                    push:
                        #""content":"\#(String(repeating: "界", count: 500))","payload":{"k":"\#(String(repeating: "y", count: 1900))"},"title":"t""#
                ),
            ])
        #expect(seen.outcomes(of: "m7-a") == ["m7/phone suppressed payload_too_large"])
        let push = try #require(seen.push(of: "m7-b"))
        #expect(push.bytes <= 4096 && push.status == 200)
    }
}

/// Messages to some devices, to tokens, and to nobody.
@Suite(.onStage(scenario: TokenPrefix.scenario)) struct AddressedTests {
    private func message(_ id: String, to: String, type: String = "p2p", conv: String? = nil) -> Line {
        .message(id, to: nil, conv: conv, type: type, ",\"to\":{\(to)}")
    }

    @Test func onlyTheNamedDevicesArePushed() throws {
        let seen = try Stage.here.play(
            state: [.bind("to1"), .bind("to1", "pad"), .bind("to2")],
            events: [message("to1-1", to: #""uids":["to1","to2"],"devices":["pad","watch"]"#)])
        #expect(seen.outcomes(of: "to1-1") == ["to1/pad accepted ok 1", "to2 suppressed no_token"])
    }

    @Test func tokensReachTheirOwnersDevices() throws {
        let stage = try Stage.here
        try stage.play(state: [.bind("to3"), .bind("to3", "pad"), .bind("to4", type: "voip"), .bind("to4")])
        let tokens = [token("to3", "pad"), Line.usualToken("to4", "phone", "voip").uppercased()]
        let list = tokens.map { "\"\($0)\"" }.joined(separator: ",")
        let seen = try stage.play(events: [
            message("to3-1", to: "\"tokens\":[\(list)]"),
            message("to3-2", to: "\"tokens\":[\(list),\"abab\",\"cdcd\"]"),
        ])
        let devices = ["to3/pad accepted ok 1", "to4/phone accepted ok 1"]
        #expect(seen.outcomes(of: "to3-1").map { String($0.dropLast()) } == devices.map { String($0.dropLast()) })
        #expect(seen.outcomes(of: "to3-2").count == 3)
        #expect(seen.outcomes(of: "to3-2").first == " suppressed no_token", "one record for both unowned tokens")
    }

    @Test func anExpiredMessageToTokensLooksUpNoOwner() throws {
        let stage = try Stage.here
        try stage.play(state: [.bind("to5")])
        let seen = try stage.play(events: [
            .message(
                "to5-1", to: nil, sentMs: nowMs - 9_000,
                ",\"expire_at_ms\":\(nowMs - 1_000),\"to\":{\"tokens\":[\"\(token("to5", "phone"))\",\"abab\"]}")
        ])
        #expect(seen.outcomes(of: "to5-1") == [" expired expired"])
    }

    @Test func anExpiredRevokeLowersTheBadgeOfTheTokensOwner() throws {
        let stage = try Stage.here
        try stage.play(state: [.bind("to6")], events: [.message("to6-1", to: ["to6"])])
        let revoke = Line.revoke(
            "to6-2", of: "to6-1", to: "to6", sentMs: nowMs - 9_000,
            ",\"expire_at_ms\":\(nowMs - 1_000),\"to\":{\"tokens\":[\"\(token("to6", "phone"))\"]}")
        let seen = try stage.play(events: [revoke])
        #expect(seen.outcomes(of: "to6-2") == ["to6 expired expired"])
        let next = try stage.play(events: [.message("to6-3", to: ["to6"])])
        #expect(next.outcomes(of: "to6-3") == ["to6/phone accepted ok 1"])
    }

    @Test func anEventWithoutRecipientsHasOneRecord() throws {
        let stage = try Stage.here
        try stage.play(state: [.bind("to7")])
        let events = [
            Line.message("to7-1", to: nil, conv: "no-such-group", type: "group"),
            .message(
                "to7-2", to: ["sender", "to7"], ",\"to\":{\"uids\":[\"sender\",\"to7\"],\"exclude\":[\"to7\"]}"),
            message("to7-3", to: "\"tokens\":[\"\(token("to7", "phone"))\"],\"exclude\":[\"to7\"]"),
            .activityForAll("to7-4", #""activity_id":"no-such-activity","event":"update","state":{"a":1}"#),
        ]
        try stage.play(events: events)
        let seen = try stage.play(events: events)
        for event in events {
            let id = event.id.isEmpty ? "e-to7-4" : event.id
            #expect(
                seen.outcomes(of: id) == [" suppressed no_recipients"], "\(id), written once though it came twice")
        }
        #expect(seen.pushes(to: token("to7", "phone")).isEmpty)
    }
}
