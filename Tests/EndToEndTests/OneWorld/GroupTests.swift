import JSON
import Support
import Testing
import Trial

/// Groups whose members are read from Redis.
extension OneWorld {
    @Suite struct Groups {
        /// m0 … m999 with level 0, 1, 2, 4 and 5 by the last digit: 0-5 → 0, 6 → 1, 7 → 2, 8 → 4, 9 → 5. All have phones.
        private static func level(_ index: Int) -> Int { [0, 0, 0, 0, 0, 0, 1, 2, 4, 5][index % 10] }

        private func fill(_ stage: Stage, _ name: String, count: Int) async throws {
            let members = (0..<count).map { "\(name)-m\($0) \(Self.level($0))" }
            for start in stride(from: 0, to: count, by: 200) {
                let page = members[start..<min(count, start + 200)].joined(separator: " ")
                try await stage.redis(["HSET g:{im:\(name)} \(page) \(name)-sender 0"])
            }
            try await stage.play(state: (0..<count).map { .bind("\(name)-m\($0)") })
        }

        @Test func aThousandMembersGetWhatTheirLevelsAndTheMentionSay() async throws {
            let stage = try Stage.here
            try await fill(stage, "g1", count: 1000)
            let excluded = "g1-m10"
            let seen = try await stage.play(events: [
                .message("g1-plain", to: nil, from: "g1-sender", conv: "g1", type: "group"),
                .message(
                    "g1-me", to: nil, from: "g1-sender", conv: "g1", type: "group",
                    #","mention":{"all":false,"uids":["g1-m6","g1-m7","g1-m8","g1-m9"]}"#),
                .message(
                    "g1-all", to: nil, from: "g1-sender", conv: "g1", type: "group",
                    #","mention":{"all":true,"uids":[]}"#),
                .message(
                    "g1-force", to: nil, from: "g1-sender", conv: "g1", type: "group",
                    push: #""content":"x","force":{"mode":"list","uids":["g1-m9"],"content":"now"}"#),
                Line.excluding(excluded, "g1-out", conv: "g1", from: "g1-sender"),
                .message(
                    "g1-everyone", to: nil, from: "g1-sender", conv: "g1", type: "group",
                    push: #""content":"x","force":{"mode":"all"}"#),
            ])
            func count(_ message: String, _ end: String) -> Int {
                seen.outcomes(of: message).count { $0.contains(" \(end)") }
            }
            #expect(count("g1-plain", "accepted ok") == 600 && count("g1-plain", "suppressed conv_muted") == 400)
            // Level 1 and 2 hear a mention of them; 4 (only @all) and 5 do not.
            #expect(count("g1-me", "accepted ok") == 602 && count("g1-me", "suppressed conv_muted") == 398)
            #expect(count("g1-all", "accepted ok") == 800 && count("g1-all", "suppressed conv_muted") == 200)
            #expect(count("g1-force", "accepted ok") == 600 && count("g1-force", "accepted forced") == 1)
            #expect(count("g1-out", "accepted ok") == 599 && seen.outcomes(of: "g1-out").count == 999)
            #expect(count("g1-everyone", "accepted forced") == 1000)
            #expect(!seen.results.contains { $0["uid"]?.string == "g1-sender" })
            #expect(
                !seen.outcomes(of: "g1-out").contains { $0.hasPrefix(excluded + "/") || $0.hasPrefix(excluded + " ") })
            #expect(seen.outcomes(of: "g1-plain").count == 1000, "one result each, and no more")
            // 0: five let through and one forced for all; blocked: the two forced ones.
            #expect(seen.outcomes(of: "g1-everyone").contains("g1-m0/phone accepted forced 6"))
            #expect(seen.outcomes(of: "g1-everyone").contains("g1-m9/phone accepted forced 2"))
            #expect(seen.doubled.isEmpty)
        }

        @Test func aGivenUidsLevelIsReadFromTheGroupToo() async throws {
            let stage = try Stage.here
            try await stage.redis(["HSET g:{im:g2} g2-a 5 g2-b 0"])
            let seen = try await stage.play(
                state: [.bind("g2-a"), .bind("g2-b")],
                events: [.message("g2-1", to: ["g2-a", "g2-b"], conv: "g2", type: "group")])
            #expect(seen.outcomes(of: "g2-1") == ["g2-a suppressed conv_muted", "g2-b/phone accepted ok 1"])
        }

        @Test func aGroupThatNobodyKnowsIsSettledWithoutAResult() async throws {
            let seen = try await Stage.here.play(events: [
                .message("g3-1", to: nil, conv: "g3-unknown", type: "group"),
                .message(
                    "g3-2", to: nil, conv: "g3-unknown", type: "ultra", sentMs: nowMs - 5000,
                    #","expire_at_ms":\#(nowMs - 1)"#),
            ])
            #expect(seen.outcomes(of: "g3-1").isEmpty)
            #expect(seen.outcomes(of: "g3-2") == [" expired expired"], "one with an empty uid")
        }
    }
}

extension Line {
    /// A group message that leaves one member out.
    fileprivate static func excluding(_ uid: String, _ id: String, conv: String, from: String) -> Line {
        .message(id, to: nil, from: from, conv: conv, type: "group", #","to":{"exclude":["\#(uid)"]}"#)
    }
}
