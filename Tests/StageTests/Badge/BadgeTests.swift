// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage

/// One number per user, exact whatever happens (contract section 5).
@Suite(.onStage(scenario: TokenPrefix.scenario)) struct BadgeTests {
    @Test func messagesReadsRevokesAndReportsMakeTheExactNumber() throws {
        let stage = try Stage.here
        // The past: a report's time is never later than its record's.
        let start = nowMs - 10_000
        // Each step: what is played, and the number that a push after it carries.
        let steps: [(state: [Line], event: Line, badge: Int64?)] = [
            ([.bind("b1")], .message("b1-1", to: ["b1"], seq: 1, sentMs: start), 1),
            ([], .message("b1-2", to: ["b1"], seq: 2, sentMs: start + 1), 2),
            ([.read("b1", #""up_to_seq":1"#)], .message("b1-3", to: ["b1"], seq: 3, sentMs: start + 2), 2),
            ([.read("b1", #""up_to_seq":1"#)], .message("b1-4", to: ["b1"], seq: 4, sentMs: start + 3), 3),
            ([], .revoke("b1-5", of: "b1-4", to: "b1", sentMs: start + 4), 2),
            ([], .revoke("b1-6", of: "b1-4", to: "b1", sentMs: start + 5), 2),
            ([], .revoke("b1-7", of: "b1-1", to: "b1", sentMs: start + 6), 2),
            // The client's own total, newer than all so far; what was sent after it still counts.
            ([.report("b1", 7, clientMs: start + 6)], .message("b1-8", to: ["b1"], seq: 5, sentMs: start + 7), 8),
            ([.report("b1", 1, clientMs: start + 2)], .message("b1-9", to: ["b1"], seq: 6, sentMs: start + 8), 9),
            (
                [], .message("b1-10", to: ["b1"], seq: 7, push: #""content":"x","badge":false"#, sentMs: start + 9),
                9
            ),
        ]
        for step in steps {
            let seen = try stage.play(state: step.state, events: [step.event])
            let id = String(step.event.id.dropFirst(2))
            #expect(seen.result(of: id)?["badge"]?.int == step.badge, "after \(id)")
            #expect(try seen.payload(of: id)?["aps"]?["badge"]?.int == step.badge, "in the payload of \(id)")
        }
    }

    @Test func theAlertOfARevokeThatLoweredTheNumberCarriesZero() throws {
        let seen = try Stage.here.play(
            state: [.bind("b7")],
            events: [
                .message("b7-1", to: ["b7"]), .revoke("b7-2", of: "b7-1", to: "b7", push: #""title":"T""#),
                .revoke("b7-3", of: "b7-1", to: "b7"),
            ])
        #expect(seen.outcomes(of: "b7-2") == ["b7/phone accepted ok 0"])
        let alert = try seen.payload(of: "b7-2")?["aps"]
        #expect(alert?["badge"]?.int == 0 && alert?["alert"]?["body"]?.string == "Nick recalled a message")
        // It lowered nothing.
        #expect(seen.outcomes(of: "b7-3") == ["b7/phone accepted ok"])
    }

    @Test func aMutedMessageCountsNothingAndAForcedOneDoes() throws {
        let seen = try Stage.here.play(
            state: [
                .bind("b2"), .state("mute", "b2", #""conv_id":"quiet","level":5"#),
            ],
            events: [
                .message("b2-1", to: ["b2"], conv: "quiet"),
                .message(
                    "b2-2", to: ["b2"], conv: "quiet",
                    push: #""content":"x","force":{"mode":"all","content":"now"}"#),
            ])
        #expect(seen.outcomes(of: "b2-1") == ["b2 suppressed conv_muted"])
        #expect(seen.outcomes(of: "b2-2") == ["b2/phone accepted forced 1"])
        #expect(try seen.payload(of: "b2-2")?["aps"]?["alert"]?["body"]?.string == "Nick: now")
    }

    @Test func aMessageHeldByDNDCounts() throws {
        let seen = try Stage.here.play(
            state: [
                .bind("b3"),
                .state(
                    "settings", "b3",
                    #""dnd":{"on":true,"start":"00:00","end":"23:59","tz":"Etc/GMT\#(Self.farFromMidnight)","level":1}"#
                ),
                .state("mute", "b3", #""conv_id":"g-b3","level":-1"#),
            ],
            events: [
                .message("b3-1", to: ["b3"], conv: "g-b3", type: "group"),
                .message(
                    "b3-2", to: ["b3"], conv: "g-b3", type: "group", #","mention":{"all":false,"uids":["b3"]}"#),
            ])
        #expect(seen.outcomes(of: "b3-1") == ["b3 suppressed dnd"])
        #expect(seen.outcomes(of: "b3-2") == ["b3/phone accepted ok 2"], "level 1 lets a mention through")
    }

    @Test func aMessageReadInTheForegroundLaterCountsUntilThen() throws {
        let stage = try Stage.here
        try stage.redis([Gateway.lease("gw-b4")])
        try stage.play(state: [.bind("b4"), .ack("b4", "phone", ["b4-2"])])
        let asleep = try stage.play(events: [.message("b4-1", to: ["b4"], seq: 1)])
        #expect(asleep.outcomes(of: "b4-1") == ["b4/phone accepted ok 1"])
        try stage.redis([Gateway.presence("b4", "phone", gateway: "gw-b4", activeConversation: "elsewhere")])
        let awake = try stage.play(events: [.message("b4-2", to: ["b4"], seq: 2)])
        #expect(awake.outcomes(of: "b4-2") == ["b4/phone online acked"])
        try stage.redis([Gateway.off("b4", "phone")])
        let again = try stage.play(events: [.message("b4-3", to: ["b4"], seq: 3)])
        #expect(again.outcomes(of: "b4-3") == ["b4/phone accepted ok 3"])
        let read = try stage.play(
            state: [.read("b4", #""up_to_seq":2"#)], events: [.message("b4-4", to: ["b4"], seq: 4)])
        #expect(read.outcomes(of: "b4-4") == ["b4/phone accepted ok 2"])
    }

    @Test func aSleepingTabletGetsTheBadgeWhileAPhoneIsInTheForeground() throws {
        let stage = try Stage.here
        try stage.redis([Gateway.lease("gw-b5"), Gateway.presence("b5", "phone", gateway: "gw-b5")])
        try stage.play(state: [.bind("b5", "pad"), .ack("b5", "phone", ["b5-1"])])
        let seen = try stage.play(events: [.message("b5-1", to: ["b5"])])
        #expect(seen.outcomes(of: "b5-1") == ["b5/pad accepted ok 1", "b5/phone online acked"])
    }

    @Test func aMessageOfTheOpenConversationCountsNowhere() throws {
        let stage = try Stage.here
        try stage.redis([
            Gateway.lease("gw-b6"), Gateway.presence("b6", "phone", gateway: "gw-b6", activeConversation: "c-b6"),
        ])
        let open = try stage.play(
            state: [.bind("b6", "pad"), .ack("b6", "phone", ["b6-2"])], events: [.message("b6-1", to: ["b6"])])
        #expect(open.outcomes(of: "b6-1") == ["b6/pad accepted ok", "b6/phone online ok"])
        let other = try stage.play(events: [.message("b6-2", to: ["b6"], conv: "other-b6")])
        #expect(other.outcomes(of: "b6-2").first == "b6/pad accepted ok 1")
    }

    /// The tablet is pushed while the conversation is open on the phone. The watch does not acknowledge, and the phone leaves
    /// before that is noticed.
    @Test func aMessageCountedInItsSecondRoundReachesTheDevicesOfTheFirst() throws {
        let stage = try Stage.here
        try stage.redis([
            Gateway.lease("gw-b10"),
            Gateway.presence("b10", "phone", gateway: "gw-b10", activeConversation: "c-b10"),
            Gateway.presence("b10", "watch", state: "bg", gateway: "gw-b10", flags: "l", since: nowMs),
        ])
        try stage.play(state: [.bind("b10", "pad"), .bind("b10", "watch")])
        try stage.writeEvents([.message("b10-1", to: ["b10"])])
        let pad = token("b10", "pad")
        _ = try stage.look(until: "the tablet is pushed") { !$0.accepted(pad).isEmpty }
        try stage.redis([Gateway.off("b10", "phone")])
        let seen = try stage.look(until: "the number reaches the tablet") { $0.accepted(pad).count == 2 }
        #expect(seen.accepted(pad).map { $0.json["aps"]?["badge"]?.int } == [nil, 1])
        #expect(
            seen.accepted(pad).last.map { String(decoding: $0.payload, as: UTF8.self) } == #"{"aps":{"badge":1}}"#)
        try stage.settle()
        #expect(
            try stage.look().outcomes(of: "b10-1") == [
                "b10/pad accepted ok", "b10/phone online ok", "b10/watch accepted ok 1",
            ])
    }

    /// A zone whose hour is not the last of its day, so that the window of a whole day but a minute is active.
    private static var farFromMidnight: String { (nowMs / 3_600_000) % 24 >= 12 ? "+6" : "-6" }
}
