// SPDX-License-Identifier: Apache-2.0
import EventLoop
import JSON
import Simulator
import Testing
import VirtualStage

/// Devices that are connected: deliveries, acknowledgements, what follows where none comes, strategies.
@Suite(.onStage(scenario: TokenPrefix.scenario)) struct ConnectionTests {
    /// In background for half a minute with local alerts: the ack is due in four seconds.
    private func background(_ uid: String, _ device: String = "phone") -> [String] {
        [
            Gateway.lease("gw-\(uid)"),
            Gateway.presence(uid, device, state: "bg", gateway: "gw-\(uid)", flags: "l", since: nowMs - 30_000),
        ]
    }

    private func foreground(_ uid: String, _ device: String = "phone", platform: String = "ios") -> [String] {
        [Gateway.lease("gw-\(uid)"), Gateway.presence(uid, device, platform: platform, gateway: "gw-\(uid)")]
    }

    @Test func aDeliveryCarriesTheEventAndWantsItsAck() throws {
        let stage = try Stage.here
        try stage.redis(foreground("n1"))
        let event = Line.message("n1-1", to: ["n1"])
        let seen = try stage.play(
            state: [.bind("n1"), .ack("n1", "phone", ["n1-1"])], events: [event])
        let record = try #require(seen.deliveries.first { $0["event"]?["msg_id"]?.string == "n1-1" })
        #expect(record.members?.map(\.key) == ["v", "app", "gateway", "event", "to"])
        #expect(record["gateway"]?.string == "gw-n1" && record["app"]?.string == "im")
        #expect(record["event"] == (try JSONTree(parsing: Array(event.text.utf8))))
        let target = try #require(seen.targets(of: "n1-1").first)
        #expect(target.members?.map(\.key) == ["uid", "device", "conn_epoch", "alert", "pushed", "ack_by_ms"])
        #expect(target["alert"]?.bool == true && target["pushed"]?.bool == false)
        let dueMs = try #require(target["ack_by_ms"]?.int)
        #expect((8000...12_000).contains(dueMs - (record["event"]?["sent_ms"]?.int ?? 0)))
        #expect(seen.outcomes(of: "n1-1") == ["n1/phone online acked"])
        #expect(seen.pushes(to: token("n1", "phone")).isEmpty)
    }

    /// It was read 0.9 seconds before the message, and the other gateway's answer takes 0.2 seconds.
    @Test func aLeaseThatAgesWhileAnotherIsReadStillCounts() throws {
        let stage = try Stage.here
        try stage.redis([
            Gateway.lease("gw-a"), Gateway.lease("gw-b"), Gateway.presence("ol1", "phone", gateway: "gw-a"),
            Gateway.presence("ol2", "phone", gateway: "gw-a"), Gateway.presence("ol2", "pad", gateway: "gw-b"),
        ])
        let acks: [Line] = [
            .ack("ol1", "phone", ["ol-1"]), .ack("ol2", "phone", ["ol-2"]), .ack("ol2", "pad", ["ol-2"]),
        ]
        try stage.play(state: [.bind("ol2"), .bind("ol2", "pad")] + acks)
        try stage.writeEvents([.message("ol-1", to: ["ol1"])])
        try until("the first gateway's lease is read") { try stage.look().targets(of: "ol-1").count == 1 }
        stage.wait(.milliseconds(900))
        stage.redis.hold(after: "gw:{gw-b}")
        try stage.writeEvents([.message("ol-2", to: ["ol2"])])
        try until("the second one's is asked for") { stage.redis.isHolding }
        stage.wait(.milliseconds(200))
        stage.redis.release()
        try stage.settle()
        #expect(try stage.look().outcomes(of: "ol-2") == ["ol2/pad online acked", "ol2/phone online acked"])
    }

    /// The phone's ack is awaited while the pad, which has its push, gets another name.
    @Test func aTokenWithAnotherNameInALaterRoundIsNotPushedAgain() throws {
        let stage = try Stage.here
        let pad = token("rn1", "pad")
        try stage.redis(background("rn1"))
        try stage.play(state: [.bind("rn1"), .bind("rn1", "pad", as: pad)])
        try stage.writeEvents([.message("rn1-1", to: ["rn1"])])
        try until("the pad has its push") { try !stage.look().accepted(pad).isEmpty }
        try stage.writeState([.bind("rn1", "tablet", as: pad)])
        try stage.settle()
        let seen = try stage.look()
        #expect(seen.outcomes(of: "rn1-1") == ["rn1/pad accepted ok 1", "rn1/phone accepted ok 1"])
        #expect(seen.accepted(pad).count == 1)
    }

    /// Three at once: nobody acknowledges; one does; one does for another device's sake only.
    @Test func withoutAnAckThereIsExactlyOnePushAndWithOneThereIsNone() throws {
        let stage = try Stage.here
        let users = ["n2", "n3", "n4"]
        for user in users { try stage.redis(background(user)) }
        try stage.play(state: users.flatMap { [.bind($0), .bind($0, "pad")] })
        let begun = nowMs
        try stage.writeEvents(users.map { .message("\($0)-1", to: [$0]) })
        // Both come while the message waits.
        try stage.writeState([.ack("n3", "phone", ["n3-1"]), .ack("n4", "pad", ["n4-1"])])
        try stage.settle()
        let seen = try stage.look()
        #expect(seen.outcomes(of: "n2-1") == ["n2/pad accepted ok 1", "n2/phone accepted ok 1"])
        #expect(seen.outcomes(of: "n3-1") == ["n3/pad accepted ok 1", "n3/phone online acked"])
        #expect(seen.outcomes(of: "n4-1") == ["n4/pad accepted ok 1", "n4/phone accepted ok 1"])
        let late = try #require(seen.accepted(token("n2", "phone")).first)
        #expect(late.atMs - begun >= 3900, "after the deadline of four seconds")
        #expect(seen.accepted(token("n2", "phone")).count == 1)
        #expect(seen.accepted(token("n3", "phone")).isEmpty)
        #expect(seen.targets(of: "n2-1").count == 1, "the suspect connection gets it once")
    }

    /// Both deadlines pass; the first push takes two seconds, the second waits behind it, and is acknowledged then.
    @Test func anAckAfterTheDeadlineStillKeepsAWaitingPushAway() throws {
        let stage = try Stage.here
        let slow = token("n24", "phone", TokenPrefix.slow)
        try stage.redis(background("n24"))
        try stage.play(state: [.bind("n24", as: slow)])
        try stage.writeEvents((1...2).map { .message("n24-\($0)", to: ["n24"], seq: Int64($0)) })
        try until("one is out and one waits") {
            try stage.page("/metrics").text.contains("carillon_device_lane_waiting 1")
        }
        try stage.redis(["HSET c:k:{im:n24} n24-1 a5:phone", "HSET c:k:{im:n24} n24-2 a5:phone"])
        try stage.settle()
        let seen = try stage.look()
        #expect(seen.accepted(slow).count == 1)
        let ends = ["n24-1", "n24-2"].flatMap { seen.outcomes(of: $0) }.sorted()
        #expect(ends.count == 2 && ends[0].hasPrefix("n24/phone accepted ok"))
        #expect(ends.last == "n24/phone online acked")
    }

    /// As a crash left it: claimed, delivered, acknowledged, not finished. The phone is suspended by now, the pad live.
    @Test func aDeviceThatAcknowledgedAnEarlierTryGetsNothingMore() throws {
        let stage = try Stage.here
        try stage.redis(foreground("n20", "pad"))
        try stage.play(state: [.bind("n20"), .bind("n20", "pad"), .bind("n20", "watch")])
        try stage.redis([
            "SET c:d3:{im:n20}mn20-1 c", "HSET c:k:{im:n20} n20-1 a5:phonea3:pad",
        ])
        let seen = try stage.play(events: [.message("n20-1", to: ["n20"])])
        #expect(
            seen.outcomes(of: "n20-1") == [
                "n20/pad online acked", "n20/phone online acked", "n20/watch accepted ok",
            ])
        #expect(seen.targets(of: "n20-1").isEmpty)
        #expect(seen.pushes(to: token("n20", "phone")).isEmpty && seen.pushes(to: token("n20", "pad")).isEmpty)
    }

    /// A desktop of an earlier try acknowledged: the phones behind it are done as well.
    @Test func anEarlierAckOfADesktopIsFinalToo() throws {
        let stage = try Stage.here
        try stage.redis(foreground("n21", "pc", platform: "pc"))
        try stage.play(state: [
            .bind("n21"), .state("settings", "n21", #""push_when_desktop_online":false,"hold_s":0"#),
        ])
        try stage.redis(["SET c:d3:{im:n21}mn21-1 c", "HSET c:k:{im:n21} n21-1 a2:pc"])
        let seen = try stage.play(events: [.message("n21-1", to: ["n21"])])
        #expect(seen.outcomes(of: "n21-1") == ["n21/pc online acked", "n21/phone suppressed desktop_online"])
    }

    /// One record per gateway, with everyone behind it; a group's members on two gateways, one without a lease of
    /// its epoch.
    @Test func membersBehindOneGatewayShareARecord() throws {
        let stage = try Stage.here
        let members = (0..<6).map { "n22-\($0)" }
        try stage.redis([
            "HSET g:{im:n22} " + members.map { "\($0) 0" }.joined(separator: " "), Gateway.lease("gw-n22-a"),
            Gateway.lease("gw-n22-b"), Gateway.lease("gw-n22-old", epoch: 2),
        ])
        for (index, member) in members.enumerated() {
            let gateway = ["gw-n22-a", "gw-n22-b", "gw-n22-old"][index % 3]
            try stage.redis([Gateway.presence(member, "phone", gateway: gateway)])
        }
        try stage.play(state: members.flatMap { [.bind($0), .ack($0, "phone", ["n22-1"])] })
        let seen = try stage.play(events: [.message("n22-1", to: nil, conv: "n22", type: "group")])
        let records = seen.deliveries.filter { $0["event"]?["msg_id"]?.string == "n22-1" }
        #expect(records.compactMap { $0["gateway"]?.string }.sorted() == ["gw-n22-a", "gw-n22-b"])
        for record in records { #expect(record["to"]?.array?.count == 2) }
        for (index, member) in members.enumerated() {
            let ways = seen.outcomes(of: "n22-1").filter { $0.hasPrefix(member) }
            #expect(ways == [index % 3 == 2 ? "\(member)/phone accepted ok 1" : "\(member)/phone online acked"])
        }
    }

    /// The connection that did not acknowledge is suspect, not the device: its next connection is live again, and a
    /// message that comes later goes there.
    @Test func aNewConnectionIsNotSuspect() throws {
        let stage = try Stage.here
        try stage.redis(background("n23"))
        var seen = try stage.play(state: [.bind("n23")], events: [.message("n23-1", to: ["n23"])])
        #expect(seen.outcomes(of: "n23-1") == ["n23/phone accepted ok 1"])
        #expect(seen.targets(of: "n23-1").count == 1)
        try stage.redis([
            "HSET p:{im:n23} phone bg,ios,gw-n23,1,2,\(nowMs),\(nowMs),-,l"
        ])
        seen = try stage.play(
            state: [.ack("n23", "phone", ["n23-2"])], events: [.message("n23-2", to: ["n23"])])
        #expect(seen.outcomes(of: "n23-2") == ["n23/phone online acked"])
        #expect(seen.targets(of: "n23-2").first?["conn_epoch"]?.int == 2)
    }

    @Test func mutedOrVisibleConversationsAreDeliveredWithoutAnAlert() throws {
        let stage = try Stage.here
        try stage.redis(foreground("n5"))
        try stage.redis([
            Gateway.lease("gw-n6"), Gateway.presence("n6", "phone", gateway: "gw-n6", activeConversation: "c-n6"),
        ])
        let seen = try stage.play(
            state: [.bind("n5"), .bind("n6"), .state("mute", "n5", #""conv_id":"c-n5","level":5"#)],
            events: [.message("n5-1", to: ["n5"]), .message("n6-1", to: ["n6"])])
        for message in ["n5-1", "n6-1"] {
            let target = try #require(seen.targets(of: message).first)
            #expect(target["alert"]?.bool == false && target["ack_by_ms"] == nil)
        }
        #expect(seen.outcomes(of: "n5-1") == ["n5 suppressed conv_muted"])
        #expect(seen.outcomes(of: "n6-1") == ["n6/phone online ok"])
        #expect(seen.pushes(to: token("n5", "phone")).isEmpty && seen.pushes(to: token("n6", "phone")).isEmpty)
    }

    @Test func aPresenceWithoutItsLeaseIsVoid() throws {
        let stage = try Stage.here
        try stage.redis([Gateway.presence("n7", "phone", gateway: "gw-n7-gone")])
        let seen = try stage.play(state: [.bind("n7")], events: [.message("n7-1", to: ["n7"])])
        #expect(seen.outcomes(of: "n7-1") == ["n7/phone accepted ok 1"])
        #expect(seen.targets(of: "n7-1").isEmpty)
    }

    @Test func aDesktopHoldsPhonesForAWhileUnlessTheMessageIsRead() throws {
        let stage = try Stage.here
        let users = ["n8", "n9"]
        for user in users { try stage.redis(foreground(user, "pc", platform: "pc")) }
        try stage.play(
            state: users.flatMap {
                [
                    .bind($0), .state("settings", $0, #""push_when_desktop_online":false,"hold_s":1"#),
                    .ack($0, "pc", ["\($0)-1"]),
                ]
            })
        let begun = nowMs
        try stage.writeEvents(users.map { .message("\($0)-1", to: [$0], seq: 5) })
        try stage.writeState([.read("n9", #""up_to_seq":5"#)])
        try stage.settle()
        let seen = try stage.look()
        #expect(seen.outcomes(of: "n8-1") == ["n8/pc online acked", "n8/phone accepted ok 1"])
        let held = try #require(seen.accepted(token("n8", "phone")).first)
        #expect(held.atMs - begun >= 1000)
        // Of the user where the read was known at the decision, of the phone where it came before the push.
        #expect(
            seen.outcomes(of: "n9-1").contains { $0.hasPrefix("n9") && $0.hasSuffix(" suppressed already_read") })
        #expect(seen.pushes(to: token("n9", "phone")).isEmpty)
    }

    @Test func aHeldMessageThatExpiresEndsWithoutAPush() throws {
        let stage = try Stage.here
        try stage.redis(foreground("n10", "pc", platform: "pc"))
        let seen = try stage.play(
            state: [
                .bind("n10"), .state("settings", "n10", #""push_when_desktop_online":false,"hold_s":3"#),
                .ack("n10", "pc", ["n10-1"]),
            ],
            events: [.message("n10-1", to: ["n10"], #","expire_at_ms":\#(nowMs + 2000)"#)])
        #expect(seen.pushes(to: token("n10", "phone")).isEmpty)
        #expect(seen.outcomes(of: "n10-1").contains { $0.hasPrefix("n10") && $0.hasSuffix(" expired expired") })
    }

    @Test func aDesktopsAckIsFinalWhereNothingIsHeld() throws {
        let stage = try Stage.here
        for user in ["n11", "n12"] { try stage.redis(foreground(user, "pc", platform: "pc")) }
        // The second one's desktop never acknowledges: after eight seconds the phone is pushed.
        let seen = try stage.play(
            state: ["n11", "n12"].flatMap {
                [.bind($0), .state("settings", $0, #""push_when_desktop_online":false,"hold_s":0"#)]
            } + [.ack("n11", "pc", ["n11-1"])],
            events: [.message("n11-1", to: ["n11"]), .message("n12-1", to: ["n12"])])
        #expect(seen.outcomes(of: "n11-1") == ["n11/pc online acked", "n11/phone suppressed desktop_online"])
        #expect(seen.outcomes(of: "n12-1") == ["n12/pc suppressed no_token", "n12/phone accepted ok 1"])
    }

    /// `hold_s` 0 and pushes for the desktop itself: phones are pushed where its push fails.
    @Test func phonesAreNotGivenUpForADesktopThatIsNotAlerted() throws {
        let stage = try Stage.here
        let users = ["n16", "n17", "n18", "n19", "n25"]
        for user in users { try stage.redis(foreground(user, "pc", platform: "pc")) }
        var state: [Line] = users.flatMap {
            [.bind($0), .state("settings", $0, #""push_when_desktop_online":false,"hold_s":0"#)]
        }
        for user in ["n17", "n18"] { state.append(.bind(user, "pc")) }
        for user in ["n19", "n25"] { state.append(.bind(user, "pc", as: token(user, "pc", TokenPrefix.tooLarge))) }
        let strategies = [("n16", 2), ("n17", 2), ("n18", 4), ("n19", 4), ("n25", 2)]
        let seen = try stage.play(
            state: state,
            events: strategies.map {
                .message("\($0.0)-1", to: [$0.0], push: #""content":"x","strategy":\#($0.1)"#)
            })
        #expect(seen.outcomes(of: "n16-1") == ["n16/phone suppressed desktop_online"])
        for user in ["n17", "n18"] {
            #expect(
                seen.outcomes(of: "\(user)-1") == [
                    "\(user)/pc accepted ok 1", "\(user)/phone suppressed desktop_online",
                ])
        }
        for user in ["n19", "n25"] {
            #expect(
                seen.outcomes(of: "\(user)-1") == [
                    "\(user)/pc rejected PayloadTooLarge 1", "\(user)/phone accepted ok 1",
                ])
        }
    }

    @Test func strategiesChooseTheWay() throws {
        let stage = try Stage.here
        try stage.redis(foreground("n13"))
        let events: [Line] = (2...4).map {
            .message("n13-\($0)", to: ["n13"], push: #""content":"x","strategy":\#($0)"#)
        }
        let seen = try stage.play(
            state: [.bind("n13"), .bind("n13", "pad"), .ack("n13", "phone", ["n13-3"])], events: events)
        // A phone in the foreground with no conversation open: each message counts.
        #expect(seen.outcomes(of: "n13-2") == ["n13/pad accepted ok 1", "n13/phone accepted ok 1"])
        #expect(seen.targets(of: "n13-2").isEmpty)
        #expect(seen.outcomes(of: "n13-3") == ["n13/pad suppressed connection_only", "n13/phone online acked"])
        #expect(seen.outcomes(of: "n13-4") == ["n13/pad accepted ok 3", "n13/phone accepted ok 3"])
        let copy = try #require(seen.targets(of: "n13-4").first)
        #expect(copy["pushed"]?.bool == true && copy["alert"]?.bool == false && copy["ack_by_ms"] == nil)
        let phone = seen.results.first {
            $0["msg_id"]?.string == "n13-4" && $0["device"]?.string == "phone"
        }
        #expect(copy["pid"]?.string == phone?["pid"]?.string && copy["pid"] != nil)
    }

    @Test func aPushThatFailsLeavesTheAlertToTheConnection() throws {
        let stage = try Stage.here
        for user in ["n14", "n15"] { try stage.redis(foreground(user)) }
        let refused = token("n14", "phone", TokenPrefix.tooLarge)
        let big = String(repeating: "x", count: 4100)
        let seen = try stage.play(
            state: [.bind("n14", as: refused), .bind("n15")],
            events: [
                .message("n14-1", to: ["n14"], push: #""content":"x","strategy":4"#),
                .message("n15-1", to: ["n15"], push: #""content":"x","strategy":4,"aps":{"big":"\#(big)"}"#),
            ])
        #expect(seen.outcomes(of: "n14-1") == ["n14/phone rejected PayloadTooLarge 1"])
        #expect(seen.outcomes(of: "n15-1") == ["n15/phone suppressed payload_too_large"])
        for message in ["n14-1", "n15-1"] {
            let copies = seen.targets(of: message)
            #expect(copies.count == 1, "\(message) reaches the live device all the same")
            #expect(copies.first?["pushed"]?.bool == false && copies.first?["alert"]?.bool == true)
        }
    }
}
