// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage
import Worker

/// Redis refuses writes, and changes of users are read that it has not stored: nothing is decided by what they replace.
@Suite struct UnstoredTests {
    private func withFullRedis(
        _ state: [Line], _ body: (Stage) throws -> Void, then: (Stage) throws -> Void
    ) throws {
        try Stage.with { stage in
            // Events are read once the user state of the beginning is applied.
            try stage.play(state: state, events: [.message("us-0", to: ["us"])])
            try stage.redis(["CONFIG SET maxmemory 1"])
            try body(stage)
            try stage.redis(["CONFIG SET maxmemory 0"])
            try stage.settle()
            try then(stage)
        }
    }

    private func unbind(_ uid: String, version: Int = 1) -> Line {
        .state(
            "unbind", uid,
            "\"token\":{\"device\":\"phone\",\"token\":\"\(token(uid, "phone"))\",\"bind_ver\":\(version)}")
    }

    @Test func noTextOfTheFormerOwnerGoesToAPhoneThatAnotherUserHasBound() throws {
        let phone = token("us1", "phone")
        try withFullRedis([.bind("us1")]) { stage in
            try stage.writeState([unbind("us1"), .bind("us2", as: phone, version: 2)])
            stage.wait(.seconds(8))
            try stage.writeEvents([.message("us1-1", to: ["us1"]), .message("us2-1", to: ["us2"])])
            stage.wait(.seconds(8))
            let seen = try stage.look()
            #expect(seen.pushes(to: phone).isEmpty)
            #expect(seen.outcomes(of: "us1-1").isEmpty && seen.outcomes(of: "us2-1").isEmpty, "nothing is final")
            #expect(seen.parked.count == 2, "both wait in the topic")
        } then: { stage in
            let seen = try stage.look()
            #expect(seen.outcomes(of: "us1-1") == ["us1 suppressed no_token"])
            #expect(seen.outcomes(of: "us2-1") == ["us2/phone accepted ok 1"])
            #expect(seen.accepted(phone).count == 1 && seen.parked.count == 2, "parked once")
        }
    }

    /// The bind names the token, not the user who has it.
    @Test func nothingGoesToAPhoneWhoseBindIsNotStored() throws {
        let phone = token("us3", "phone")
        try withFullRedis([.bind("us3"), .bind("us3", type: "voip")]) { stage in
            try stage.writeState([.bind("us4", as: phone, version: 2)])
            stage.wait(.seconds(1))
            try stage.writeEvents([
                .message("us3-1", to: ["us3"]), .message("us3-2", to: ["us3"], push: #""content":"call","voip":true"#),
                .message("us3-3", to: nil, conv: "us3-3", ",\"to\":{\"tokens\":[\"\(phone)\"]}"),
            ])
            stage.wait(.seconds(8))
            let seen = try stage.look()
            #expect(seen.pushes(to: phone).isEmpty)
            #expect(seen.pushes(to: Line.usualToken("us3", "phone", "voip")).isEmpty, "it is on the same phone")
        } then: { stage in
            let seen = try stage.look()
            #expect(!seen.outcomes(of: "us3-1").contains { $0.contains("accepted") })
            #expect(seen.outcomes(of: "us3-3") == ["us4/phone accepted ok 1"])
        }
    }

    /// It was decided before the change was read.
    @Test func aPushThatWaitsForAPNsWaitsForTheChangeToo() throws {
        let phone = token("us5", "phone")
        try withFullRedis([.bind("us5")]) { stage in
            stage.answerPushes(.unavailable)
            try stage.writeEvents([.message("us5-1", to: ["us5"])])
            try until("the push was refused once") { stage.apns.requests.contains { $0.token == phone } }
            try stage.writeState([.bind("us6", as: phone, version: 2)])
            stage.wait(.milliseconds(200))
            stage.answerPushes(nil)
            stage.wait(.seconds(30))
            #expect(try stage.look().accepted(phone).isEmpty)
        } then: { stage in
            let seen = try stage.look()
            #expect(seen.outcomes(of: "us5-1") == ["us5/phone suppressed token_moved"])
            #expect(seen.accepted(phone).isEmpty)
        }
    }

    @Test func aMuteThatIsNotStoredIsObeyed() throws {
        try withFullRedis([.bind("us8")]) { stage in
            try stage.writeState([.state("mute", "us8", #""conv_id":"c-us8","level":5"#)])
            stage.wait(.seconds(1))
            try stage.writeEvents([.message("us8-1", to: ["us8"])])
            stage.wait(.seconds(8))
            #expect(try stage.look().pushes(to: token("us8", "phone")).isEmpty)
        } then: { stage in
            let seen = try stage.look()
            #expect(seen.outcomes(of: "us8-1") == ["us8 suppressed conv_muted"])
        }
    }

    @Test func othersArePushedMeanwhileAndLiveDevicesGetTheirDeliveries() throws {
        try withFullRedis([.bind("us9"), .bind("us10")]) { stage in
            try stage.redis([
                "CONFIG SET maxmemory 0", Gateway.lease("gw-us9"), Gateway.presence("us9", "pad", gateway: "gw-us9"),
                "CONFIG SET maxmemory 1",
            ])
            try stage.writeState([.read("us9", #""up_to_seq":1"#)])
            stage.wait(.seconds(1))
            try stage.writeEvents([.message("us9-1", to: ["us9"]), .message("us10-1", to: ["us10"])])
            stage.wait(.seconds(3))
            let seen = try stage.look()
            #expect(seen.outcomes(of: "us10-1") == ["us10/phone accepted ok"])
            #expect(seen.targets(of: "us9-1").compactMap { $0["device"]?.string } == ["pad"])
            #expect(seen.pushes(to: token("us9", "phone")).isEmpty)
        } then: { stage in
            let seen = try stage.look()
            #expect(seen.accepted(token("us9", "phone")).count == 1)
        }
    }

    // MARK: Numbers

    /// The claims that Redis refused are stored within seconds; until then the number of a later message is too low.
    @Test func noNumberIsSentBeforeAllCountedMessagesAreStored() throws {
        var settings = LocalCluster.Settings()
        settings.appLines = "    clear_on_read: true\n"
        try Stage.with(settings) { stage in
            let phone = token("us7", "phone")
            try stage.play(state: [.bind("us7")])
            try stage.redis(["CONFIG SET maxmemory 1"])
            try stage.writeEvents((1...6).map { .message("us7-\($0)", to: ["us7"], conv: "us7-\($0)") })
            _ = try stage.look(until: "six are pushed") { $0.accepted(phone).count == 6 }
            // The claims are tried again every few seconds.
            stage.wait(.seconds(20))
            try stage.redis(["CONFIG SET maxmemory 0"])
            try stage.writeEvents([.message("us7-7", to: ["us7"], conv: "us7-7")])
            let seen = try stage.look(until: "the device shows the number", within: .seconds(20)) {
                $0.accepted(phone).last?.json["aps"]?["badge"] != nil
            }
            let numbers = seen.accepted(phone).compactMap { $0.json["aps"]?["badge"]?.int }
            #expect(numbers.allSatisfy { $0 == 7 } && !numbers.isEmpty, "\(numbers)")
            try stage.settle()
            #expect(try stage.redisText("ZCARD c:l:{im:us7}") == ":7")
            #expect(try stage.look().accepted(phone).last?.json["aps"]?["badge"]?.int == 7)
        }
    }

    // MARK: What a crash repeats

    /// Reports of opens are read from Redis before they are refused, which does not mean that it accepts writes.
    @Test(arguments: [false, true])
    func aCrashRepeatsNothingThatWasAcceptedASecondBefore(withReports: Bool) throws {
        try Stage.with { stage in
            let uids = (1...10).map { "us2\($0)" }
            try stage.play(state: uids.flatMap { [.bind($0), .bind($0, "pad")] } + [.bind("us20")])
            let first = try stage.play(events: [.message("us20-1", to: ["us20"])])
            let pid = try #require(first.push(of: "us20-1")?.json["pid"]?.string)
            try stage.redis(
                [Gateway.lease("gw-us20")] + uids.map { Gateway.presence($0, "phone", gateway: "gw-us20") }
                    + ["CONFIG SET maxmemory 1"])
            try stage.writeEvents([.message("us20-2", to: uids, conv: "us20", type: "group")])
            let pads = uids.map { token($0, "pad") }
            _ = try stage.look(until: "all have it") { seen in pads.allSatisfy { seen.accepted($0).count == 1 } }
            for _ in 1...11 {
                if withReports {
                    try stage.writeState([
                        .state(
                            "open_report", "us20",
                            #""device":"phone","pid":"\#(pid)","opened_ms":\#(nowMs),"msg_id":"us20-1""#)
                    ])
                }
                stage.wait(.milliseconds(100))
            }
            stage.kill(try stage.worker)
            try stage.redis(["CONFIG SET maxmemory 0"])
            try stage.startWorker()
            try stage.settle(within: .seconds(180))
            let seen = try stage.look()
            #expect(seen.doubled.isEmpty)
            #expect(pads.allSatisfy { seen.accepted($0).count == 1 })
            let told = seen.outcomes(of: "us20-2").filter { $0.contains("/pad accepted") }
            #expect(told.count == 10)
        }
    }

    /// What `carillon trace` and reports of opens look for.
    @Test func theMarkOfAPaidClaimSaysWhatHappened() throws {
        try withFullRedis([.bind("us11")]) { stage in
            try stage.writeEvents([.message("us11-1", to: ["us11"])])
            _ = try stage.look(until: "it is pushed") { $0.accepted(token("us11", "phone")).count == 1 }
        } then: { stage in
            let length = try stage.redisText("STRLEN c:d4:{im:us11}mus11-1")
            #expect(Int(length.dropFirst()) ?? 0 > 15, "\(length)")
        }
    }
}
