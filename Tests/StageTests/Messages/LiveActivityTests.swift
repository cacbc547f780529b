// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage

/// Live Activities from start to end.
@Suite(.onStage(scenario: TokenPrefix.scenario)) struct LiveActivityTests {
    @Test func startUpdateAndEndGoToTheirTokens() throws {
        let stage = try Stage.here
        let sent = nowMs
        let seen = try stage.play(
            state: [
                .bind("l1"), .bind("l1", type: "start"),
                .bind("l1", type: "activity", #","activity_id":"order""#),
            ],
            events: [
                .activity(
                    "l1-a", to: "l1",
                    #""activity_id":"order","event":"start","state":{"eta":9},"attributes_type":"Order","attributes":{"n":1},"alert":{"title":"t","body":"b"}"#,
                    sentMs: sent),
                .activity(
                    "l1-b", to: "l1",
                    #""activity_id":"order","event":"update","state":{"eta":5},"stale_ms":\#(sent + 60_000),"relevance":80,"priority":"normal""#,
                    sentMs: sent + 1000),
                .activity(
                    "l1-c", to: "l1",
                    #""activity_id":"order","event":"end","state":{"eta":0},"dismissal_ms":\#(sent + 90_000)"#,
                    sentMs: sent + 2000),
            ])
        func push(_ id: String) throws -> (headers: [String: String], aps: JSONTree, token: String) {
            let result = try #require(seen.results.first { $0["event_id"]?.string == id })
            let entry = try #require(seen.pushes.first { $0.apnsID == result["apns_id"]?.string })
            return (entry.headers, try #require(entry.json["aps"]), entry.token)
        }
        let start = try push("e-l1-a")
        #expect(start.token == Line.usualToken("l1", "phone", "start"))
        #expect(start.headers["apns-push-type"] == "liveactivity")
        #expect(start.headers["apns-topic"] == "com.example.im.push-type.liveactivity")
        #expect(start.aps["event"]?.string == "start" && start.aps["attributes-type"]?.string == "Order")
        #expect(start.aps["timestamp"]?.int == sent / 1000 && start.aps["content-state"]?["eta"]?.int == 9)
        let update = try push("e-l1-b")
        #expect(update.token == Line.usualToken("l1", "phone", "activity"))
        #expect(update.headers["apns-priority"] == "5" && update.aps["relevance-score"]?.double == 80)
        #expect(update.aps["stale-date"]?.int == (sent + 60_000) / 1000 && update.aps["event"]?.string == "update")
        let end = try push("e-l1-c")
        #expect(end.aps["event"]?.string == "end" && end.aps["dismissal-date"]?.int == (sent + 90_000) / 1000)
        #expect(seen.pushes(to: token("l1", "phone")).isEmpty, "alert tokens hear nothing of it")
    }

    private static func broadcast(_ id: String, _ channel: String, _ event: String, _ more: String = "") -> Line {
        .activityForAll(
            id, #""activity_id":"match","event":"\#(event)","state":{"goals":1},"channel":"\#(channel)"\#(more)"#)
    }

    @Test func `an event to a broadcast channel is one push of the app`() throws {
        let stage = try Stage.here
        let channel = stage.apns.makeChannel(of: "com.example.im")
        let large = #","alert":{"body":"\#(String(repeating: "x", count: 4_500))"}"#
        let update = Self.broadcast("b1", channel, "update")
        // Somebody who bound an activity of this id gets nothing of it.
        let seen = try stage.play(
            state: [.bind("b0", type: "activity", #","activity_id":"match""#)],
            events: [
                update, update, Self.broadcast("b2", channel, "end", large), Self.broadcast("b3", channel, "update"),
                Self.broadcast("b4", "dW5rbm93bg==", "update"),
                Self.broadcast(
                    "b5", channel, "update", #","alert":{"body":"\#(String(repeating: "x", count: 5_200))"}"#),
            ])
        #expect(seen.outcomes(of: "e-b1") == [" accepted ok"], "once, although it came twice")
        // An end does not stop later events: the subscribed devices know their activity.
        #expect(seen.outcomes(of: "e-b2") == [" accepted ok"])
        #expect(seen.outcomes(of: "e-b3") == [" accepted ok"])
        #expect(seen.outcomes(of: "e-b4") == [" rejected ChannelNotRegistered"])
        #expect(seen.outcomes(of: "e-b5") == [" suppressed payload_too_large"])
        #expect(seen.results.allSatisfy { $0["device"] == nil || $0["uid"]?.string != "" })
        let sent = seen.pushes.filter { $0.headers["apns-channel-id"] == channel }
        #expect(sent.count == 3)
        let first = try #require(sent.first)
        #expect(first.headers["apns-topic"] == nil && first.headers["apns-push-type"] == "liveactivity")
        #expect(first.headers["apns-expiration"] == "0" && first.headers["apns-priority"] == "10")
        #expect(
            first.json["aps"]?["event"]?.string == "update" && first.json["aps"]?["content-state"]?["goals"]?.int == 1)
        #expect(seen.feedback.isEmpty)
    }

    @Test func theSameActivityEventTwiceIsPushedOnce() throws {
        let line = Line.activity("l2-a", to: "l2", #""activity_id":"x","event":"update","state":{"a":1}"#)
        let seen = try Stage.here.play(
            state: [.bind("l2", type: "activity", #","activity_id":"x""#)], events: [line, line])
        #expect(seen.pushes(to: Line.usualToken("l2", "phone", "activity")).count == 1)
        #expect(seen.outcomes(of: "e-l2-a") == ["l2/phone accepted ok"])
    }

    private static func la(_ event: String) -> String {
        #""activity_id":"x","event":"\#(event)","state":{"a":1},"attributes_type":"T","attributes":{"n":1},"#
            + #""alert":{"title":"t","body":"b"}"#
    }

    @Test func afterAnAcceptedEndNoUpdateGoesUntilANewStart() throws {
        let stage = try Stage.here
        let sent = nowMs
        try stage.play(state: [
            .bind("l4", type: "start"), .bind("l4", type: "activity", #","activity_id":"x""#),
            .bind("l4", "pad", type: "activity", #","activity_id":"x""#),
        ])
        for (index, event) in ["start", "update", "end", "update", "end", "start", "update"].enumerated() {
            let line = Line.activity("l4-\(index)", to: "l4", Self.la(event), sentMs: sent + Int64(index))
            try stage.play(events: [line])
        }
        let seen = try stage.look()
        #expect(seen.outcomes(of: "e-l4-1").count == 2, "to both devices")
        #expect(seen.outcomes(of: "e-l4-2") == ["l4/pad accepted ok", "l4/phone accepted ok"])
        #expect(seen.outcomes(of: "e-l4-3") == ["l4 suppressed activity_over"])
        #expect(seen.outcomes(of: "e-l4-4") == ["l4/pad accepted ok", "l4/phone accepted ok"])
        #expect(seen.outcomes(of: "e-l4-6") == ["l4/pad accepted ok", "l4/phone accepted ok"])
    }

    /// Contract 14, "Live Activities".
    @Test func `another token begins an activity that was ended anew`() throws {
        let stage = try Stage.here
        let new = token("l6", "phone/second")
        try stage.play(
            state: [.bind("l6", type: "activity", #","activity_id":"x""#)],
            events: [.activity("l6-a", to: "l6", Self.la("end"))])
        try stage.play(state: [
            .bind("l6", type: "activity", as: new, version: 2, sentMs: nowMs, #","activity_id":"x""#)
        ])
        let seen = try stage.play(events: [.activity("l6-b", to: "l6", Self.la("update"))])
        #expect(seen.outcomes(of: "e-l6-b") == ["l6/phone accepted ok"])
        #expect(seen.accepted(new).count == 1)
    }

    @Test func anUpdateThatWaitedBehindTheEndIsNotSent() throws {
        let stage = try Stage.here
        let slow = token("l5", "phone/activity", TokenPrefix.slow)
        try stage.play(state: [.bind("l5", type: "activity", as: slow, #","activity_id":"x""#)])
        try stage.writeEvents([
            .activity("l5-a", to: "l5", Self.la("end")), .activity("l5-b", to: "l5", Self.la("update")),
        ])
        try stage.settle()
        let seen = try stage.look()
        #expect(seen.outcomes(of: "e-l5-a") == ["l5/phone accepted ok"])
        #expect(seen.outcomes(of: "e-l5-b") == ["l5/phone suppressed activity_over"])
        #expect(seen.pushes(to: slow).count == 1)
    }

    @Test func anActivityWithoutItsTokenReachesNobody() throws {
        let seen = try Stage.here.play(
            state: [.bind("l3")],
            events: [.activity("l3-a", to: "l3", #""activity_id":"x","event":"update","state":{"a":1}"#)])
        #expect(seen.outcomes(of: "e-l3-a") == ["l3 suppressed no_token"])
    }
}
