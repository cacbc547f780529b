// SPDX-License-Identifier: Apache-2.0
import JSON
import Testing
import VirtualStage

/// Who acknowledged was reached, whatever later rounds find; and each device that was delivered to has its one record.
@Suite(.onStage(scenario: TokenPrefix.scenario)) struct ReachedTests {
    private static let push = #""content":"x","sms":true"#

    private func foreground(_ uid: String, _ device: String, platform: String) -> String {
        Gateway.presence(uid, device, platform: platform, gateway: "gw-\(uid)")
    }

    /// Both live, no tokens: the PC acknowledges and goes off, the browser never does.
    @Test func aUserWithAnAckGetsNeitherNoTokenNorAnSMS() throws {
        let stage = try Stage.here
        try stage.redis([
            Gateway.lease("gw-re1"), foreground("re1", "pc", platform: "pc"),
            foreground("re1", "web", platform: "web"),
        ])
        try stage.play(state: [.ack("re1", "pc", ["re1-1"])])
        try stage.writeEvents([.message("re1-1", to: ["re1"], push: Self.push)])
        try until("the PC's ack is seen") {
            try stage.look().outcomes(of: "re1-1").contains("re1/pc online acked")
        }
        try stage.redis([Gateway.off("re1", "pc")])
        try stage.settle()
        let seen = try stage.look()
        #expect(seen.outcomes(of: "re1-1") == ["re1/pc online acked", "re1/web suppressed no_token"])
        #expect(!seen.sms.contains { $0["msg_id"]?.string == "re1-1" })
    }

    /// As a crash left it: delivered and acknowledged; by now suspended. Without a token, with one by strategy 3, with
    /// another device that is live.
    @Test func anAckOfAnEarlierTryIsRecordedAndPreventsAnSMS() throws {
        let stage = try Stage.here
        let users = ["re2", "re3", "re4"]
        try stage.redis([Gateway.lease("gw-re4"), foreground("re4", "pc", platform: "pc")])
        try stage.play(state: [.bind("re3"), .ack("re4", "pc", ["other"])])
        try stage.redis(
            users.flatMap { ["SET c:d3:{im:\($0)}m\($0)-1 c", "HSET c:k:{im:\($0)} \($0)-1 a5:phone"] })
        let seen = try stage.play(events: [
            .message("re2-1", to: ["re2"], push: Self.push),
            .message("re3-1", to: ["re3"], push: Self.push + #","strategy":3"#),
            .message("re4-1", to: ["re4"], push: Self.push),
        ])
        #expect(seen.outcomes(of: "re2-1") == ["re2/phone online acked"])
        #expect(seen.outcomes(of: "re3-1") == ["re3/phone online acked"])
        // The PC never acknowledges: it is told by itself.
        #expect(seen.outcomes(of: "re4-1") == ["re4/pc suppressed no_token", "re4/phone online acked"])
        #expect(!seen.sms.contains { users.contains(String($0["msg_id"]?.string?.prefix(3) ?? "")) })
    }

    /// The phone acknowledges late, while its push waits behind another; the pad's push is refused.
    @Test func aLateAckKeepsTheSMSOfFailedPushesAway() throws {
        let stage = try Stage.here
        let slow = token("re5", "phone", TokenPrefix.verySlow)
        try stage.redis([
            Gateway.lease("gw-re5"),
            Gateway.presence("re5", "phone", state: "bg", gateway: "gw-re5", flags: "l", since: nowMs - 30_000),
        ])
        try stage.play(state: [
            .bind("re5", as: slow), .bind("re5", "pad", as: token("re5", "pad", TokenPrefix.tooLarge)),
        ])
        try stage.writeEvents((1...2).map { .message("re5-\($0)", to: ["re5"], push: Self.push) })
        try until("one is out and one waits") {
            try stage.page("/metrics").text.contains("carillon_device_lane_waiting 1")
        }
        try stage.redis(["HSET c:k:{im:re5} re5-1 a5:phone", "HSET c:k:{im:re5} re5-2 a5:phone"])
        try stage.settle()
        let seen = try stage.look()
        let ends = ["re5-1", "re5-2"].flatMap { seen.outcomes(of: $0) }.sorted()
        #expect(ends.count == 4)
        #expect(ends.filter { $0 == "re5/phone online acked" }.count == 1)
        #expect(ends.filter { $0.hasPrefix("re5/pad rejected PayloadTooLarge") }.count == 2)
        #expect(!seen.sms.contains { $0["uid"]?.string == "re5" })
    }

    /// No tokens at all: the browser's deadline is four seconds earlier than the PC's. Each device is named, and one SMS is asked for.
    @Test func silentConnectionsWithoutATokenAreNamedAndHaveOneSMS() throws {
        let stage = try Stage.here
        try stage.redis([
            Gateway.lease("gw-re6"), foreground("re6", "pc", platform: "pc"),
            Gateway.presence(
                "re6", "web", state: "bg", platform: "web", gateway: "gw-re6", flags: "l", since: nowMs - 5000),
        ])
        let seen = try stage.play(events: [.message("re6-1", to: ["re6"], push: Self.push)])
        #expect(seen.outcomes(of: "re6-1") == ["re6/pc suppressed no_token", "re6/web suppressed no_token"])
        #expect(
            seen.sms.filter { $0["uid"]?.string == "re6" }.map { $0["reason"]?.string } == ["no_token"])
    }
}
