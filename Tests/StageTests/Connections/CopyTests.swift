// SPDX-License-Identifier: Apache-2.0
import JSON
import Testing
import VirtualStage

/// Strategy 4: what the live device's connection gets after the push (contract section 5, routes).
@Suite(.onStage(scenario: TokenPrefix.scenario)) struct CopyTests {
    private func live(_ uid: String, _ device: String = "phone", open conversation: String = "-") -> [String] {
        [
            Gateway.lease("gw-\(uid)"),
            Gateway.presence(uid, device, gateway: "gw-\(uid)", activeConversation: conversation),
        ]
    }

    /// Two of one collapse id to a device that APNs wants left alone: the newer one takes the older one's place and expires.
    @Test func nothingIsSentOfWhatExpiredAndTheNewerPushAlertsForTheOlder() throws {
        let stage = try Stage.here
        try stage.redis(live("k1"))
        try stage.play(state: [.bind("k1", as: token("k1", "phone", TokenPrefix.busy))])
        let push = #""content":"x","strategy":4,"collapse_id":"same""#
        let end = #","expire_at_ms":\#(nowMs + 3000)"#
        try stage.writeEvents([.message("k1-1", to: ["k1"], push: push, end)])
        try until("the first one is refused") {
            try !stage.look().pushes(to: token("k1", "phone", TokenPrefix.busy)).isEmpty
        }
        try stage.writeEvents([.message("k1-2", to: ["k1"], push: push, end)])
        try stage.settle()
        let seen = try stage.look()
        #expect(seen.outcomes(of: "k1-1") == ["k1/phone suppressed coalesced 1"])
        #expect(seen.targets(of: "k1-1").map { $0["alert"]?.bool } == [false])
        #expect(seen.outcomes(of: "k1-2") == ["k1/phone expired expired 2"])
        #expect(seen.targets(of: "k1-2").isEmpty)
    }

    @Test func theCopyOfAFailedPushAlertsOnlyWhereTheConnectionMay() throws {
        let stage = try Stage.here
        try stage.redis(live("k2") + live("k3", open: "c-k3") + live("k4"))
        let big = String(repeating: "x", count: 4100)
        let seen = try stage.play(
            state: ["k2", "k3", "k4"].map { .bind($0, as: token($0, "phone", TokenPrefix.tooLarge)) },
            events: [
                .message("k2-1", to: ["k2"], push: #""content":"x","strategy":4,"silent":true"#),
                .message("k3-1", to: ["k3"], push: #""content":"x","strategy":4"#),
                .message("k3-2", to: ["k3"], push: #""content":"x","strategy":4,"aps":{"big":"\#(big)"}"#),
                .message("k4-1", to: ["k4"], push: #""content":"x","strategy":4"#),
            ])
        for (message, alerts) in [("k2-1", false), ("k3-1", false), ("k3-2", false), ("k4-1", true)] {
            let copy = seen.targets(of: message)
            #expect(copy.map { $0["alert"]?.bool } == [alerts], "\(message)")
            #expect(copy.map { $0["pushed"]?.bool } == [false], "\(message)")
        }
    }

    /// As a crash left it: the pad's push was accepted and marked, and its copy was lost with the worker. The watch is live
    /// and was not pushed; the phone is not live.
    @Test func aDeliveryLostInACrashIsWrittenByTheWorkerThatResumes() throws {
        let stage = try Stage.here
        try stage.redis(live("k5", "pad") + live("k5", "watch"))
        try stage.play(state: [.bind("k5"), .bind("k5", "pad"), .bind("k5", "watch")])
        try stage.redis(["SET c:d2:{im:k5}mk5-1 ca3:pad"])
        let seen = try stage.play(events: [
            .message("k5-1", to: ["k5"], push: #""content":"x","strategy":4"#)
        ])
        #expect(
            seen.outcomes(of: "k5-1").map { $0.split(separator: " ").prefix(3).joined(separator: " ") } == [
                "k5/pad accepted ok", "k5/phone accepted ok", "k5/watch accepted ok",
            ])
        let copies = seen.targets(of: "k5-1")
        #expect(copies.compactMap { $0["device"]?.string }.sorted() == ["pad", "watch"])
        for copy in copies {
            #expect(copy["pushed"]?.bool == true && copy["alert"]?.bool == false && copy["pid"] != nil)
        }
        #expect(seen.pushes(to: token("k5", "pad")).isEmpty)
    }
}
