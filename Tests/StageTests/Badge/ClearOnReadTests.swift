// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage
import Worker

/// `clear_on_read`: what a read takes off the badge is told to the devices that were pushed.
@Suite(.onStage(appLines: "    clear_on_read: true\n    badge_cap: 99\n"))
struct ClearOnReadTests {
    /// Pushes that carry nothing but a number.
    private func numbers(_ seen: Seen, to token: String) -> [String] {
        seen.accepted(token).map { String(decoding: $0.payload, as: UTF8.self) }.filter { !$0.contains("pid") }
    }

    @Test func aReadThatLowersTheBadgeUpdatesThePushedDevices() throws {
        let stage = try Stage.here
        // The pad is connected: it gets deliveries, and no push.
        try stage.redis([
            Gateway.lease("gw-r1"),
            Gateway.presence("r1", "pad", state: "bg", gateway: "gw-r1", flags: "l", since: nowMs - 10_000),
        ])
        try stage.play(
            state: [.bind("r1"), .bind("r1", "pad"), .ack("r1", "pad", ["r1-1", "r1-2"])],
            events: [
                .message("r1-1", to: ["r1"], conv: "r1-a", seq: 1), .message("r1-2", to: ["r1"], conv: "r1-b", seq: 1),
            ])
        let phone = token("r1", "phone")
        var seen = try stage.play(state: [.read("r1", conv: "r1-a", #""up_to_seq":1"#)])
        #expect(numbers(seen, to: phone) == [#"{"aps":{"badge":1}}"#])
        // Nothing is lower by a read that is known, or of what was not counted.
        seen = try stage.play(state: [
            .read("r1", conv: "r1-a", #""up_to_seq":1"#), .read("r1", conv: "r1-c", #""up_to_seq":7"#),
        ])
        #expect(numbers(seen, to: phone).count == 1)
        seen = try stage.play(state: [.read("r1", conv: "r1-b", #""up_to_seq":1"#)])
        #expect(numbers(seen, to: phone) == [#"{"aps":{"badge":1}}"#, #"{"aps":{"badge":0}}"#])
        #expect(seen.pushes(to: token("r1", "pad")).isEmpty)
        let push = try #require(seen.accepted(phone).last)
        #expect(push.headers["apns-push-type"] == "alert" && push.headers["apns-priority"] == "10")
        #expect(push.headers["apns-topic"] == "com.example.im")
        let results = seen.results.filter { $0["event_id"]?.string == "s-r1-read" }
        #expect(results.map { $0["badge"]?.int } == [1, 0])
        #expect(results.allSatisfy { $0["verdict"]?.string == "accepted" && $0["device"]?.string == "phone" })
        #expect(results.last?["apns_id"]?.string == push.apnsID)
    }

    /// The number of the revoke waits for the claim of the later message, and both messages have waited in the topic.
    @Test func `a revoke that owes a number does not keep a later message of its conversation waiting`() throws {
        let stage = try Stage.here
        try stage.play(
            state: [.bind("r10")],
            events: [.message("r10-1", to: ["r10"], seq: 1), .message("r10-2", to: ["r10"], seq: 2)])
        try stage.redis([
            Gateway.lease("gw-r10"), Gateway.presence("r10", "phone", gateway: "gw-r10"), "CONFIG SET maxmemory 1",
        ])
        try stage.writeEvents([.revoke("r10-r", of: "r10-1", to: "r10")])
        try until("the revoke waits for an ack in the topic") { try stage.look().parked.count == 1 }
        stage.wait(.seconds(1))
        try stage.writeEvents([.message("r10-3", to: ["r10"], seq: 3)])
        try until("both wait for an ack in the topic") { try stage.look().parked.count == 2 }
        // No alert of the revoke brings the number then.
        try stage.writeState([.ack("r10", "phone", ["r10-r"])])
        try stage.redis(["CONFIG SET maxmemory 0"])
        let seen = try stage.look(until: "the message is pushed", within: .seconds(60)) {
            !$0.outcomes(of: "r10-3").isEmpty
        }
        #expect(seen.outcomes(of: "r10-3") == ["r10/phone accepted ok 2"])
    }

    /// One device of the revoke waits for APNs again; the message goes to the other one.
    @Test func `a revoke that parks again and owes a number does not keep a later message waiting`() throws {
        let stage = try Stage.here
        try stage.play(
            state: [.bind("r11"), .bind("r11", "pad")],
            events: [.message("r11-1", to: ["r11"], seq: 1), .message("r11-2", to: ["r11"], seq: 2)])
        try stage.redis([
            Gateway.lease("gw-r11"), Gateway.presence("r11", "phone", gateway: "gw-r11"),
            Gateway.presence("r11", "pad", gateway: "gw-r11"), "CONFIG SET maxmemory 1",
        ])
        func waits(_ message: String) throws -> Bool {
            try stage.look().parked.contains { $0["msg_id"]?.string == message }
        }
        try stage.writeEvents([.revoke("r11-r", of: "r11-1", to: "r11")])
        try until("the revoke waits for an ack in the topic") { try waits("r11-r") }
        stage.wait(.seconds(1))
        try stage.writeEvents([.message("r11-3", to: ["r11"], seq: 3)])
        try until("the message does too") { try waits("r11-3") }
        var answer = ScenarioAnswer(429, "TooManyRequests")
        answer.retryAfterSeconds = 120
        var match = ScenarioRule.Match()
        match.tokenPrefix = Array(token("r11", "pad").utf8)
        stage.apns.set(Scenario(rules: [ScenarioRule(match, .answer(answer))]))
        defer { stage.answerPushes(nil) }
        try stage.redis(["CONFIG SET maxmemory 0"])
        let seen = try stage.look(until: "the message is pushed to the phone", within: .seconds(60)) {
            $0.outcomes(of: "r11-3").contains { $0.hasPrefix("r11/phone accepted") }
        }
        #expect(seen.accepted(token("r11", "pad")).count == 2)
    }

    /// The revoke's alert goes without a number while Redis takes no writes.
    @Test func aRevokeThatIsClaimedLaterUpdatesThePushedDevices() throws {
        let stage = try Stage.here
        try stage.play(
            state: [.bind("r9")],
            events: [.message("r9-1", to: ["r9"], seq: 1), .message("r9-2", to: ["r9"], seq: 2)])
        try stage.redis(["CONFIG SET maxmemory 1"])
        try stage.writeEvents([.revoke("r9-r", of: "r9-1", to: "r9")])
        try until("the revoke is pushed") { try stage.look().outcomes(of: "r9-r").count == 1 }
        try stage.redis(["CONFIG SET maxmemory 0"])
        try until("the device has the number") {
            numbers(try stage.look(), to: token("r9", "phone")) == [#"{"aps":{"badge":1}}"#]
        }
    }

    @Test func readsOfABurstShareOnePush() throws {
        let stage = try Stage.here
        let conversations = (0..<6).map { "r2-\($0)" }
        try stage.play(
            state: [.bind("r2")], events: conversations.map { .message("\($0)-m", to: ["r2"], conv: $0, seq: 1) })
        let seen = try stage.play(
            state: conversations.map { .read("r2", conv: $0, #""up_to_seq":1"#) })
        #expect(numbers(seen, to: token("r2", "phone")) == [#"{"aps":{"badge":0}}"#])
    }

    /// A device with the revoke's alert has its number; the others that were pushed get it alone.
    @Test func aRevokesAlertTakesThePlaceOfTheNumberAlone() throws {
        let stage = try Stage.here
        let (phone, pad) = (token("r8", "phone"), token("r8", "pad"))
        var seen = try stage.play(
            state: [.bind("r8"), .bind("r8", "pad")], events: [.message("r8-1", to: ["r8"])])
        #expect(seen.accepted(phone).count == 1 && seen.accepted(pad).count == 1)
        // The pad is connected now, so the revoke's alert goes to the phone alone by APNs.
        try stage.redis([
            Gateway.lease("gw-r8"),
            Gateway.presence("r8", "pad", state: "bg", gateway: "gw-r8", flags: "l", since: nowMs - 10_000),
        ])
        seen = try stage.play(
            state: [.ack("r8", "pad", ["r8-2"])], events: [.revoke("r8-2", of: "r8-1", to: "r8")])
        #expect(numbers(seen, to: phone).isEmpty && numbers(seen, to: pad) == [#"{"aps":{"badge":0}}"#])
        let alert = try #require(seen.accepted(phone).last)
        #expect(alert.json["aps"]?["badge"]?.int == 0 && alert.json["aps"]?["alert"] != nil)
    }

    @Test func aMovedTokenGetsNoBadgeUpdate() throws {
        let stage = try Stage.here
        let shared = token("r3", "shared")
        try stage.play(state: [.bind("r3", as: shared)], events: [.message("r3-1", to: ["r3"], seq: 1)])
        let seen = try stage.play(state: [
            .bind("r4", as: shared, version: 2), .read("r3", #""up_to_seq":1"#),
        ])
        #expect(numbers(seen, to: shared).isEmpty)
    }

    @Test func aSilentPushAndARevokeChangeNothingOfIt() throws {
        let stage = try Stage.here
        let seen = try stage.play(
            state: [.bind("r5")],
            events: [
                .message("r5-1", to: ["r5"], seq: 1, push: #""silent":true"#)
            ])
        #expect(seen.accepted(token("r5", "phone")).count == 1)
        let after = try stage.play(state: [.read("r5", #""up_to_seq":1"#)])
        #expect(numbers(after, to: token("r5", "phone")).isEmpty, "a silent push set no number")
    }
}

struct ClearOrderTests {
    /// APNs accepts the alert, and refuses the number alone.
    @Test func aTokenThatIsRefusedForANumberAloneIsRemovedAndReported() throws {
        var match = ScenarioRule.Match()
        match.skip = 1
        var settings = LocalCluster.Settings()
        settings.scenario = Scenario(rules: [ScenarioRule(match, .answer(ScenarioAnswer(400, "BadDeviceToken")))])
        settings.appLines = "    clear_on_read: true\n"
        try Stage.with(settings) { stage in
            try stage.play(state: [.bind("r10")], events: [.message("r10-1", to: ["r10"], seq: 1)])
            let seen = try stage.play(state: [.read("r10", #""up_to_seq":1"#)])
            #expect(seen.pushes(to: token("r10", "phone")).count == 2)
            let reports = seen.feedback.filter { $0["token"]?.string == token("r10", "phone") }
            #expect(reports.map { $0["cause"]?.string } == ["BadDeviceToken"])
            try until("the user's copy is gone") {
                try stage.redisText("HEXISTS c:u:{im:r10} ta5:phone").hasPrefix(":0")
            }
            let after = try stage.play(events: [.message("r10-2", to: ["r10"], seq: 2)])
            #expect(after.outcomes(of: "r10-2") == ["r10 suppressed no_token"])
        }
    }

    /// The alert's answer takes two seconds; the read comes as soon as it is claimed. Within one shard there is one push
    /// in flight per device, whatever it is.
    @Test func theNumberWaitsBehindTheAlertThatIsOnItsWay() throws {
        var settings = LocalCluster.Settings()
        settings.scenario = TokenPrefix.scenario
        settings.appLines = "    clear_on_read: true\n"
        settings.shards = 1
        try Stage.with(settings) { stage in
            let slow = token("r6", "phone", TokenPrefix.slow)
            try stage.play(state: [.bind("r6", as: slow)])
            try stage.writeEvents([.message("r6-1", to: ["r6"], seq: 1)])
            try until("the message is counted") {
                try stage.redisText("ZCARD c:l:{im:r6}").hasPrefix(":1")
            }
            try stage.writeState([.read("r6", #""up_to_seq":1"#)])
            try stage.settle()
            let pushes = try stage.look().accepted(slow)
            #expect(pushes.count == 2 && pushes[0].json["pid"] != nil)
            #expect(pushes.last?.payload == Array(#"{"aps":{"badge":0}}"#.utf8))
            #expect(pushes[1].atMs - pushes[0].atMs >= 1900, "not before the alert's answer")
        }
    }

    /// What waits for APNs goes to the next owner, as a push does; Redis keeps that the number is owed.
    @Test func aNumberThatWaitsForAPNsDoesNotHoldUpTheEnd() throws {
        var settings = LocalCluster.Settings.oneShard
        settings.appLines = "    clear_on_read: true\n"
        try Stage.with(settings) { stage in
            let phone = token("r7", "phone")
            try stage.play(state: [.bind("r7")], events: [.message("r7-1", to: ["r7"], seq: 1)])
            let worker = try stage.worker
            _ = stage.takeAPNsDown()
            try stage.writeState([.read("r7", #""up_to_seq":1"#)])
            try until("the number waits for APNs") {
                worker.status().shards.contains { shard in shard.clients.contains { $0.queued > 0 } }
            }
            #expect(try stage.stop(worker), "drained")
            stage.bringAPNsUp()
            try stage.startWorker(waits: false)
            let seen = try stage.look(until: "the number is told") { !$0.accepted(phone).isEmpty }
            #expect(seen.accepted(phone).map(\.payload) == [Array(#"{"aps":{"badge":0}}"#.utf8)])
        }
    }
}
