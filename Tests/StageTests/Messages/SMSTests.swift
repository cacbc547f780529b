// SPDX-License-Identifier: Apache-2.0
import JSON
import Testing
import VirtualStage

/// The SMS supplement: where the sender allows it and nothing else reached the user (contract section 3, `push.sms`).
@Suite(.onStage(scenario: TokenPrefix.scenario)) struct SMSTests {
    @Test func anSMSIsAskedForOnceWhereEveryPushFailed() throws {
        func dead(_ uid: String, _ device: String) -> String { token(uid, device, TokenPrefix.badToken) }
        let push = #""content":"x","sms":true"#
        let seen = try Stage.here.play(
            state: [
                .bind("q1", as: dead("q1", "phone")), .bind("q1", "pad", as: dead("q1", "pad")),
                .bind("q2", as: dead("q2", "phone")), .bind("q2", "pad"),
                .bind("q3", as: dead("q3", "phone")),
                .bind("q4"), .bind("q5", as: token("q5", "phone", TokenPrefix.tooLarge)),
                .state("mute", "q6", #""conv_id":"c-q6","level":5"#),
                .bind("q7"),
            ],
            events: [
                .message("q1-a", to: ["q1"], push: push),
                .message("q2-a", to: ["q2"], push: push),
                .message("q3-a", to: ["q3"]),
                .message("q4-a", to: ["q4"], push: push),
                .message("q5-a", to: ["q5"], push: push),
                .message("q6-a", to: ["q6"], push: push),
                .message(
                    "q7-a", to: ["q7"], push: push + #","aps":{"k":"\#(String(repeating: "x", count: 4100))"}"#),
                .message(
                    "q8-a", to: ["q8"], push: push, sentMs: nowMs - 5000, #","expire_at_ms":\#(nowMs - 1000)"#),
            ])
        let asked = seen.sms.compactMap { record -> String? in
            guard let id = record["msg_id"]?.string, id.hasPrefix("q") else { return nil }
            return "\(id) \(record["reason"]?.string ?? "?")"
        }
        // Two devices, one SMS; one device reached, none; not allowed, none; pushed, none; muted, none; expired, none.
        #expect(asked.sorted() == ["q1-a all_failed", "q5-a all_failed", "q7-a all_failed"])
    }

    /// For an SMS the token of a device that shows no alerts is of no use.
    @Test func `an SMS is asked for where all devices show no alerts`() throws {
        let off = #","alerts":false"#
        let push = #""content":"x","sms":true"#
        let seen = try Stage.here.play(
            state: [
                .bind("qa", "phone", off), .bind("qa", "pad", off), .bind("qb", "phone", off), .bind("qb", "pad"),
                .bind("qc", "phone", off),
                .read("qc", #""up_to_seq":9"#), .bind("qd", "phone", off),
                .bind("qd", "pad", as: token("qd", "pad", TokenPrefix.badToken)),
                .state("mute", "qe", #""conv_id":"c-qe","level":5"#), .bind("qe", "phone", off),
            ],
            events: ["qa", "qb", "qc", "qd", "qe"].map { Line.message("\($0)-a", to: [$0], seq: 3, push: push) }
                + [.message("qa-b", to: ["qa"], push: #""content":"x""#)])
        #expect(
            seen.outcomes(of: "qa-a").sorted() == ["qa/pad suppressed alerts_off", "qa/phone suppressed alerts_off"])
        #expect(seen.outcomes(of: "qb-a").sorted() == ["qb/pad accepted ok 1", "qb/phone suppressed alerts_off"])
        let asked = seen.sms.compactMap { record -> String? in
            guard let id = record["msg_id"]?.string, ["qa", "qb", "qc", "qd", "qe"].contains(String(id.prefix(2)))
            else { return nil }
            return "\(id) \(record["reason"]?.string ?? "?")"
        }
        #expect(asked.sorted() == ["qa-a no_token", "qd-a all_failed"])
    }

    @Test func noSMSIsAskedForWhileADeviceIsLive() throws {
        let stage = try Stage.here
        try stage.redis([
            Gateway.lease("gq9"), Gateway.presence("q9", "pc", platform: "pc", gateway: "gq9"),
            Gateway.presence("q9b", "pc", platform: "pc", gateway: "gq9"),
        ])
        let dead = token("q9", "phone", TokenPrefix.badToken)
        let push = #""content":"x","sms":true,"strategy":2"#
        let seen = try stage.play(
            state: [.bind("q9", as: dead)],
            events: [
                .message("q9-a", to: ["q9"], push: push), .message("q9-b", to: ["q9b"], push: push),
                .message("q9-c", to: ["q9-away"], conv: "c-q9", push: push),
            ])
        #expect(seen.outcomes(of: "q9-a") == ["q9/phone rejected BadDeviceToken 1"])
        #expect(seen.outcomes(of: "q9-b") == ["q9b suppressed no_token"])
        let asked = seen.sms.compactMap { $0["msg_id"]?.string }.filter { $0.hasPrefix("q9") }
        #expect(asked == ["q9-c"])
    }
}
