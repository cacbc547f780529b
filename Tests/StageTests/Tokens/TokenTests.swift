// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage
import Worker

/// Tokens that move, die or are refused.
@Suite(.onStage(scenario: TokenPrefix.scenario)) struct TokenTests {
    @Test func aTokenThatMovedIsNeverPushedForItsFormerOwner() throws {
        let stage = try Stage.here
        let shared = token("t1", "shared")
        let seen = try stage.play(
            state: [
                .bind("t1", as: shared, version: 1),
                .bind("t2", "phone2", as: shared, version: 2),
            ],
            events: [.message("t1-1", to: ["t1"]), .message("t2-1", to: ["t2"])])
        #expect(seen.outcomes(of: "t1-1") == ["t1 suppressed no_token"])
        #expect(seen.outcomes(of: "t2-1") == ["t2/phone2 accepted ok 1"])
        #expect(seen.pushes(to: shared).count == 1)
    }

    /// Events and moves at once, again and again: whoever is pushed owned the token a moment before.
    @Test func movesAndEventsSideBySideLeaveOneOutcomePerEvent() throws {
        let stage = try Stage.here
        let shared = token("t3", "shared")
        try stage.play(state: [.bind("t3", as: shared, version: 1)])
        for version in 2..<12 {
            let owner = version % 2 == 0 ? "t4" : "t3"
            try stage.writeEvents([
                .message("t3-\(version)", to: ["t3"], conv: "c-t3"),
                .message("t4-\(version)", to: ["t4"], conv: "c-t4"),
            ])
            try stage.writeState([.bind(owner, as: shared, version: version)])
        }
        try stage.settle()
        // Everything is bound to t3 by now: what comes later goes nowhere else.
        let seen = try stage.play(events: [.message("t3-z", to: ["t3"]), .message("t4-z", to: ["t4"])])
        #expect(seen.outcomes(of: "t4-z") == ["t4 suppressed no_token"])
        #expect(seen.outcomes(of: "t3-z").first?.hasPrefix("t3/phone accepted ok") ?? false)
        for version in 2..<12 {
            for user in ["t3", "t4"] {
                let outcomes = seen.outcomes(of: "\(user)-\(version)")
                #expect(outcomes.count == 1, "one outcome of \(user)-\(version)")
                let isKnown = outcomes.allSatisfy {
                    $0.contains("accepted ok") || $0.contains("no_token") || $0.contains("token_moved")
                }
                #expect(isKnown, "\(outcomes)")
            }
        }
    }

    /// The second push waits behind a slow one; meanwhile the phone changes hands, or the message is read.
    @Test func aPushThatWaitedIsLookedAtAgain() throws {
        let stage = try Stage.here
        let moved = token("t12", "shared", TokenPrefix.slow)
        let still = token("t14", "phone", TokenPrefix.slow)
        try stage.play(state: [.bind("t12", as: moved, version: 1), .bind("t14", as: still)])
        try stage.writeEvents([
            .message("t12-1", to: ["t12"]), .message("t12-2", to: ["t12"]),
            .message("t14-1", to: ["t14"], seq: 1), .message("t14-2", to: ["t14"], seq: 2),
            .message("t14-3", to: ["t14"], seq: 3),
        ])
        try until("both first pushes are out and the rest waits") {
            try stage.page("/metrics").text.contains("carillon_device_lane_waiting 3")
        }
        try stage.play(state: [
            .bind("t13", as: moved, version: 2), .read("t14", #""up_to_seq":2"#),
        ])
        let seen = try stage.look()
        #expect(seen.outcomes(of: "t12-2") == ["t12/phone suppressed token_moved"])
        #expect(seen.pushes(to: moved).count == 1)
        #expect(seen.outcomes(of: "t14-2") == ["t14/phone suppressed already_read"])
        #expect(seen.outcomes(of: "t14-3") == ["t14/phone accepted ok 1"], "the number of the moment it is sent")
    }

    @Test func anUnboundTokenIsNotPushedAndAnOlderUnbindChangesNothing() throws {
        let stage = try Stage.here
        func unbind(_ uid: String, _ version: Int) -> Line {
            .state(
                "unbind", uid,
                #""token":{"device":"phone","token":"\#(token(uid, "phone"))","bind_ver":\#(version)}"#)
        }
        let seen = try stage.play(
            state: [.bind("t5", version: 3), unbind("t5", 3), .bind("t6", version: 3), unbind("t6", 2)],
            events: [.message("t5-1", to: ["t5"]), .message("t6-1", to: ["t6"])])
        #expect(seen.outcomes(of: "t5-1") == ["t5 suppressed no_token"])
        #expect(seen.outcomes(of: "t6-1") == ["t6/phone accepted ok 1"])
    }

    @Test func aReboundDeviceIsPushedByItsNewTokenOnly() throws {
        let new = token("t7", "new")
        let seen = try Stage.here.play(
            state: [.bind("t7"), .bind("t7", as: new, version: 2)], events: [.message("t7-1", to: ["t7"])])
        #expect(seen.outcomes(of: "t7-1") == ["t7/phone accepted ok 1"])
        #expect(seen.push(of: "t7-1")?.token == new)
    }

    /// Contract 14, "Users".
    @Test func `a forgotten user begins anew`() throws {
        let stage = try Stage.here
        try stage.play(state: [.bind("f1")], events: [.message("f1-1", to: ["f1"])])
        try stage.play(state: [.state("forget", "f1", #""x":1"#)])
        #expect(try stage.redisText("EXISTS c:o:{im:\(token("f1", "phone"))} c:l:{im:f1} c:d2:{im:f1}mf1-1") == ":0")
        var seen = try stage.play(events: [.message("f1-2", to: ["f1"])])
        #expect(seen.outcomes(of: "f1-2") == ["f1 suppressed no_token"])
        try stage.play(state: [.bind("f1", sentMs: nowMs)])
        seen = try stage.play(events: [.message("f1-3", to: ["f1"])])
        #expect(seen.outcomes(of: "f1-3") == ["f1/phone accepted ok 2"], "two messages since")
    }

    /// Each bind is cheap, and none asks many former owners.
    @Test func `a token that many users bind at once costs few commands for each bind`() throws {
        let stage = try Stage.here
        let shared = token("crowd", "shared")
        func changes() throws -> Int {
            Int(try stage.metric("carillon_redis_command_seconds_count", #"op="change""#))
        }
        let before = try changes()
        try stage.writeState((1...800).map { .bind("crowd-\($0 % 100)", as: shared, version: $0) })
        try stage.settle()
        #expect(try changes() - before < 800 * 6)
        let seen = try stage.play(events: (0..<100).map { .message("crowd-\($0)-m", to: ["crowd-\($0)"]) })
        #expect(seen.pushes(to: shared).count == 1)
        #expect(seen.outcomes(of: "crowd-0-m") == ["crowd-0/phone accepted ok 1"])
    }

    /// `push.state-results` may take no records for long. A stored bind does not wait for it.
    @Test func `a bind does not wait for the result record of an earlier bind of its token`() throws {
        var settings = LocalCluster.Settings.oneShard
        settings.lines = "state_results: true\n"
        try Stage.with(settings) { stage in
            try stage.play(state: [.bind("t15")], events: [.message("t15-0", to: ["t15"])])
            let results = Configuration.Topics().stateResults
            stage.kafka.refuse(results, code: 29)
            try stage.writeState([.bind("t15", version: 2), .bind("t15", version: 3, #","alerts":false"#)])
            stage.wait(.seconds(2))
            try stage.writeEvents([.message("t15-1", to: ["t15"])])
            try until("the message has an outcome") { try !stage.look().outcomes(of: "t15-1").isEmpty }
            #expect(try stage.look().outcomes(of: "t15-1") == ["t15/phone suppressed alerts_off"])
            #expect(stage.records(of: results).count == 1)
            stage.kafka.refuse(results, code: nil)
            try stage.settle()
            #expect(stage.records(of: results).count == 3)
        }
    }

    @Test func aRefusalOlderThanTheBindKeepsTheToken() throws {
        let old = token("t8", "phone", TokenPrefix.goneLongAgo)
        let seen = try Stage.here.play(
            state: [.bind("t8", as: old)], events: [.message("t8-1", to: ["t8"]), .message("t8-2", to: ["t8"])])
        for message in ["t8-1", "t8-2"] {
            #expect(seen.outcomes(of: message).first?.hasPrefix("t8/phone rejected Unregistered") ?? false)
        }
        #expect(!seen.feedback.contains { $0["token"]?.string == old })
    }

    @Test func aDeadTokenIsRemovedAndReported() throws {
        let stage = try Stage.here
        let cases = [
            ("t9", TokenPrefix.gone, "ExpiredToken", 410), ("t10", TokenPrefix.badToken, "BadDeviceToken", 400),
        ]
        for (user, prefix, cause, status) in cases {
            let dead = token(user, "phone", prefix)
            let bound = nowMs - 60_000
            try stage.play(
                state: [.bind(user, as: dead, sentMs: bound)],
                events: [.message("\(user)-1", to: [user], push: #""content":"x","sms":true"#)])
            let seen = try stage.play(events: [.message("\(user)-2", to: [user])])
            let result = try #require(seen.result(of: "\(user)-1"))
            #expect(result["verdict"]?.string == "rejected" && result["reason"]?.string == cause)
            #expect(result["status"]?.int == Int64(status))
            #expect(seen.outcomes(of: "\(user)-2") == ["\(user) suppressed no_token"])
            let reports = seen.feedback.filter { $0["token"]?.string == dead }
            #expect(reports.count == 1)
            #expect(
                reports.first?.members?.map(\.key) == [
                    "v", "app", "uid", "device", "token", "env", "topic", "cause", "bound_ms", "at_ms",
                ])
            #expect(reports.first?["cause"]?.string == cause && reports.first?["bound_ms"]?.int == bound)
            #expect(
                seen.sms.filter { $0["msg_id"]?.string == "\(user)-1" }.map { $0["reason"]?.string } == [
                    "all_failed"
                ])
        }
    }
}
