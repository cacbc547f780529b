// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage

/// What a token was bound with decides how it is pushed to: environment, credential set, topic, language, content key;
/// and whose it is, when a phone changes hands in any order of the records.
struct TokenFactsTests {
    private static var settings: LocalCluster.Settings {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        settings.credentialNames = ["first", "second"]
        settings.templates = Stage.templates
        settings.appLines = "    default_language: en\n"
        return settings
    }

    @Test func eachTokenIsPushedAsItWasBound() throws {
        try Stage.with(Self.settings) { stage in
            let devices = ["plain", "second", "unknown", "sandbox", "topic", "zh", "work"]
            try stage.play(state: [
                .bind("u", "plain"), .bind("u", "second", #","cert":"second""#),
                .bind("u", "unknown", #","cert":"third""#), .bind("u", "sandbox", #","env":"sandbox""#),
                .bind("u", "topic", #","topic":"com.example.other""#), .bind("u", "zh", #","lang":"zh-Hans""#),
                .bind("u", "work", #","content_key":"work""#),
            ])
            var seen = try stage.play(events: [
                .message("m1", to: ["u"], push: #""prefix":false"#, #","type_name":"RC:ImgMsg""#)
            ])
            #expect(seen.outcomes(of: "m1").count == devices.count)
            func pushes(_ device: String) -> [LedgerEntry] { seen.accepted(token("u", device)) }
            func connections(_ device: String) -> Set<UInt64> { Set(pushes(device).map { UInt64($0.connection) }) }
            // An environment and a credential set have connections of their own; an unknown set is the first one.
            for other in ["second", "sandbox"] {
                #expect(connections(other).isDisjoint(with: connections("plain")), "\(other)")
            }
            #expect(connections("second").isDisjoint(with: connections("sandbox")))
            #expect(connections("unknown") == connections("plain") && connections("plain").count == 1)
            // Not one of the simulator's topics: what counts is what was asked for.
            #expect(seen.pushes(to: token("u", "topic")).map { $0.headers["apns-topic"] } == ["com.example.other"])
            #expect(pushes("plain").first?.headers["apns-topic"] == "com.example.im")
            func body(_ device: String) -> String? { pushes(device).last?.json["aps"]?["alert"]?["body"]?.string }
            #expect(body("zh") == "[图片]" && body("plain") == body("second") && body("plain") != body("zh"))

            // Hidden details: each by the key of its token, in the language of its token.
            seen = try stage.play(
                state: [
                    .state("settings", "u", #""show_detail":false"#),
                    .bind("u", "zh", version: 2, #","lang":"zh-Hans","content_key":"work""#),
                ], events: [.message("m2", to: ["u"], push: #""content":"secret""#)])
            #expect(body("zh") == "你有一条新的工作消息")
            #expect(body("work") != body("plain") && body("work") != nil && body("plain") != nil)
            #expect(!seen.pushes.contains { String(decoding: $0.payload, as: UTF8.self).contains("secret") })
            // A rebind of the same token with other facts replaces them.
            #expect(pushes("zh").count == 2)
        }
    }

    /// A token that nobody heard of for a hundred days may be dead: it travels apart, until APNs takes a push to it.
    @Test func aTokenThatWasSilentForLongTravelsApartOnce() throws {
        try Stage.with(Self.settings) { stage in
            try stage.play(state: [
                .bind("s", "new"), .bind("s", "old", sentMs: nowMs - 100 * 86_400_000),
            ])
            var seen = try stage.play(events: [.message("s1", to: ["s"])])
            func connection(_ device: String, _ index: Int) -> Int? {
                let pushes = seen.accepted(token("s", device))
                return pushes.indices.contains(index) ? pushes[index].connection : nil
            }
            #expect(seen.outcomes(of: "s1").count == 2)
            #expect(connection("old", 0) != nil && connection("old", 0) != connection("new", 0))
            seen = try stage.play(events: [.message("s2", to: ["s"])])
            #expect(connection("old", 1) != nil && connection("old", 1) == connection("new", 1))
        }
    }

    /// Logging out and in on one phone, the two records in either order, an older login last: only the new user's
    /// messages arrive.
    @Test func anAccountSwitchInAnyOrderEndsAtTheNewUser() throws {
        try Stage.with(Self.settings) { stage in
            for (round, order) in [[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1], [1, 2, 0], [2, 0, 1]].enumerated() {
                let (old, new) = ("old-\(round)", "new-\(round)")
                let shared = token("switch-\(round)", "phone")
                let unbind = Line.state(
                    "unbind", old, #""token":{"device":"phone","token":"\#(shared)","bind_ver":1}"#)
                let records = [
                    unbind, .bind(new, as: shared, version: 2), .bind(old, as: shared, version: 1),
                ]
                for place in order { try stage.play(state: [records[place]]) }
                let seen = try stage.play(events: [
                    .message("\(old)-m", to: [old]), .message("\(new)-m", to: [new]),
                ])
                #expect(seen.outcomes(of: "\(old)-m") == ["\(old) suppressed no_token"], "order \(order)")
                #expect(seen.outcomes(of: "\(new)-m") == ["\(new)/phone accepted ok 1"], "order \(order)")
                #expect(seen.pushes(to: shared).count == 1)
            }
        }
    }
}
