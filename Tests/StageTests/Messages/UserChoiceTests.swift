// SPDX-License-Identifier: Apache-2.0
import JSON
import Testing
import VirtualStage

/// What users choose for themselves: levels by type of conversation, a snooze, devices without alerts; and the title that the
/// app chooses for alerts without one.
@Suite(.onStage(UserChoiceWorld.settings)) struct UserChoiceTests {
    private static func settings(_ uid: String, sentMs: Int64? = nil, _ text: String) -> Line {
        .state("settings", uid, sentMs: sentMs, text)
    }

    @Test func `the user's level for a type stands between the group's and the app's`() throws {
        let stage = try Stage.here
        try stage.redis(["HSET g:{im:lg} l4 5 l5 -1 l6 0"])
        let seen = try stage.play(
            state: ["l1", "l2", "l3", "l4", "l5", "l6"].map { Line.bind($0) } + [
                Self.settings("l1", #""levels":{"system":-1}"#), Self.settings("l2", #""levels":{"group":5}"#),
                Self.settings("l4", #""levels":{"group":-1}"#), Self.settings("l5", #""levels":{"group":5}"#),
                Self.settings("l6", #""levels":{"group":1}"#),
            ],
            events: [
                .message("l1-a", to: ["l1"], type: "system"), .message("l2-a", to: ["l2"], type: "p2p"),
                .message("l3-a", to: ["l3"], type: "system"), .message("l-g", to: nil, conv: "lg", type: "group"),
                .message(
                    "l-m", to: nil, conv: "lg", type: "group", #","mention":{"all":false,"uids":["l6"]}"#),
            ])
        #expect(seen.outcomes(of: "l1-a") == ["l1/phone accepted ok 1"])
        #expect(seen.outcomes(of: "l2-a") == ["l2/phone accepted ok 1"])
        #expect(seen.outcomes(of: "l3-a") == ["l3 suppressed conv_muted"])
        #expect(
            seen.outcomes(of: "l-g") == [
                "l4 suppressed conv_muted", "l5/phone accepted ok 1", "l6 suppressed conv_muted",
            ])
        #expect(seen.outcomes(of: "l-m").last == "l6/phone accepted ok 1")
    }

    @Test func `no alert comes until a snooze ends, and 0 ends it`() throws {
        let stage = try Stage.here
        let end = nowMs + 120_000
        var seen = try stage.play(
            state: [.bind("s1"), Self.settings("s1", sentMs: nowMs - 5000, #""snooze_until_ms":\#(end)"#)],
            events: [
                .message("s1-a", to: ["s1"]),
                .message("s1-b", to: ["s1"], push: #""content":"x","force":{"mode":"all"}"#),
            ])
        #expect(seen.outcomes(of: "s1-a") == ["s1 suppressed dnd"])
        #expect(seen.outcomes(of: "s1-b") == ["s1 suppressed dnd"])
        seen = try stage.play(
            state: [Self.settings("s1", #""snooze_until_ms":0"#)], events: [.message("s1-c", to: ["s1"])])
        #expect(seen.outcomes(of: "s1-c") == ["s1/phone accepted ok 3"], "what was held counts")
        let later = nowMs + 60_000
        seen = try stage.play(
            state: [Self.settings("s1", sentMs: nowMs + 1, #""snooze_until_ms":\#(later)"#)],
            events: [.message("s1-d", to: ["s1"])])
        #expect(seen.outcomes(of: "s1-d") == ["s1 suppressed dnd"])
        stage.wait(.seconds(61))
        seen = try stage.play(events: [.message("s1-e", to: ["s1"])])
        #expect(seen.outcomes(of: "s1-e") == ["s1/phone accepted ok 5"], "it ends by itself")
    }

    @Test func `a device that shows no alerts gets only what is none`() throws {
        let stage = try Stage.here
        let off = #","alerts":false"#
        try stage.redis([Gateway.lease("gw-o"), Gateway.presence("o3", "phone", gateway: "gw-o")])
        var seen = try stage.play(
            state: [
                .bind("o1", "phone", off), .bind("o1", type: "voip"), .bind("o1", "pad"), .bind("o2", "phone", off),
                .bind("o3", "phone", off),
            ],
            events: [
                .message("o1-a", to: ["o1"]), .message("o1-s", to: ["o1"], push: #""silent":true"#),
                .message("o1-v", to: ["o1"], push: #""voip":true,"content":"call""#),
                .message("o2-a", to: ["o2"], push: #""content":"x","force":{"mode":"all"}"#),
                .message("o3-a", to: ["o3"]),
            ])
        #expect(seen.outcomes(of: "o1-a") == ["o1/pad accepted ok 1", "o1/phone suppressed alerts_off"])
        #expect(seen.outcomes(of: "o1-s") == ["o1/pad accepted ok", "o1/phone accepted ok"])
        #expect(seen.outcomes(of: "o1-v").first?.hasPrefix("o1/phone accepted ok") == true)
        #expect(seen.outcomes(of: "o2-a") == ["o2/phone suppressed alerts_off"])
        #expect(seen.outcomes(of: "o3-a") == ["o3/phone suppressed alerts_off"], "no ack came")
        #expect(seen.targets(of: "o3-a").count == 1 && seen.pushes(to: token("o3", "phone")).isEmpty)
        // The owner allows alerts again.
        seen = try stage.play(state: [.bind("o2", version: 2)], events: [.message("o2-b", to: ["o2"])])
        #expect(seen.outcomes(of: "o2-b") == ["o2/phone accepted ok 2"])
    }

    @Test func `an alert without a title has the conversation's name, else the sender's`() throws {
        let stage = try Stage.here
        let named = #","conv":{"id":"c-t1","type":"group","name":"Team"}"#
        let seen = try stage.play(
            state: [.bind("t1"), .bind("t2"), .bind("t3"), Self.settings("t3", #""show_detail":false"#)],
            events: [
                .message("t1-a", to: ["t1"], conv: "c-t1", type: "group", named),
                .message("t1-b", to: ["t1"], conv: "c-t1", type: "group", push: #""content":"x","title":"Own""#, named),
                .message("t2-a", to: ["t2"]), .message("t3-a", to: ["t3"]),
            ])
        func title(_ id: String) -> String? { seen.push(of: id)?.json["aps"]?["alert"]?["title"]?.string }
        #expect(title("t1-a") == "Team" && title("t1-b") == "Own" && title("t2-a") == "Nick")
        #expect(seen.push(of: "t3-a") != nil && title("t3-a") == nil)
    }
}

private enum UserChoiceWorld {
    static var settings: LocalCluster.Settings {
        var settings = LocalCluster.Settings()
        settings.sessionMs = LocalCluster.Settings.shortSessionMs
        settings.appLines = "    title: conversation\n    default_levels: {system: 5}\n"
        return settings
    }
}
