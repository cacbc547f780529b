// SPDX-License-Identifier: Apache-2.0
import Simulator
import Testing
import VirtualStage
import Worker

/// Marks of a group's finished members in one key of the message.
@Suite struct GroupMarksTests {
    private static let users = (0..<40).map { "q\($0)" }

    private static var settings: LocalCluster.Settings {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        return settings
    }

    private func marks(_ stage: Stage) throws -> (own: Int, together: Int) {
        let keys = try stage.redisText("KEYS c:d*").split(whereSeparator: \.isWhitespace).count {
            $0.contains("c:d")
        }
        let fields = try stage.redisText("HKEYS c:e:{im:q-1}").split(whereSeparator: \.isWhitespace)
        return (keys, fields.count { $0.hasPrefix("q") })
    }

    @Test func finishedMembersLieInOneKeyAndARepeatPushesNobody() throws {
        try Stage.with(Self.settings) { stage in
            try stage.play(state: Self.users.map { .bind($0) })
            try stage.redis(
                ["HSET g:{im:q} \(Self.users.map { "\($0) \($0 == "q7" ? 5 : 0)" }.joined(separator: " "))"])
            var seen = try stage.play(events: [.message("q-1", to: nil, conv: "q", type: "group")])
            let expected = Self.users.map { $0 == "q7" ? "q7 suppressed conv_muted" : "\($0)/phone accepted ok 1" }
            #expect(seen.outcomes(of: "q-1") == expected.sorted() && seen.doubled.isEmpty)
            var found = try marks(stage)
            #expect(found.own == 0 && found.together == 40, "\(found)")
            seen = try stage.play(events: [.message("q-1", to: nil, conv: "q", type: "group", event: "q-1-again")]
            )
            #expect(seen.outcomes(of: "q-1") == expected.sorted() && seen.doubled.isEmpty)
            found = try marks(stage)
            #expect(found.own == 0 && found.together == 40, "\(found)")
            // What was revoked, read or not, is counted once.
            seen = try stage.play(events: [.message("q-2", to: nil, conv: "q", type: "group")])
            #expect(seen.outcomes(of: "q-2").contains("q3/phone accepted ok 2"))
        }
    }

    /// Half of the members were finished by a worker of 1.0, which marks each by itself: both forms are read. Also of those whom
    /// their level denies, who are read by a shorter way.
    @Test func bothFormsAreRead() throws {
        try Stage.with(Self.settings) { stage in
            try stage.play(state: Self.users.map { .bind($0) })
            let muted: Set = ["q5", "q6", "q7"]
            try stage.redis(
                ["HSET g:{im:q} \(Self.users.map { "\($0) \(muted.contains($0) ? 5 : 0)" }.joined(separator: " "))"])
            // Another worker has begun it, and its marks lie in either form.
            try stage.redis([
                "HSET c:e:{im:q-1} \"\" 12345 q1 f q2 f q6 f", "SET c:d2:{im:q3}mq-1 f", "SET c:d2:{im:q4}mq-1 f",
                "SET c:d2:{im:q5}mq-1 f",
            ])
            let seen = try stage.play(events: [.message("q-1", to: nil, conv: "q", type: "group")])
            let finished: Set = ["q1", "q2", "q3", "q4", "q5", "q6"]
            let expected = Self.users.filter { !finished.contains($0) }.map {
                $0 == "q7" ? "q7 suppressed conv_muted" : "\($0)/phone accepted ok 1"
            }
            #expect(seen.outcomes(of: "q-1") == expected.sorted() && seen.doubled.isEmpty)
        }
    }

    /// Repeats that come while the first is in work wait for its end, and find its mark.
    @Test func repeatsInProgressPushNobodyTwice() throws {
        try Stage.with(Self.settings) { stage in
            try stage.play(state: Self.users.map { .bind($0) })
            try stage.redis(["HSET g:{im:q} \(Self.users.map { "\($0) 0" }.joined(separator: " "))"])
            let seen = try stage.play(
                events: (0..<4).map { .message("q-1", to: nil, conv: "q", type: "group", event: "q-1-\($0)") })
            #expect(seen.outcomes(of: "q-1") == Self.users.map { "\($0)/phone accepted ok 1" }.sorted())
            #expect(seen.doubled.isEmpty)
            for user in Self.users { #expect(seen.accepted(token(user, "phone")).count == 1) }
        }
    }

    /// A revoke that came before its message, as after a crash of who worked on both.
    @Test func aRevokeBeforeItsMessageIsSeen() throws {
        try Stage.with(Self.settings) { stage in
            let users = Array(Self.users.prefix(5))
            try stage.play(state: users.map { .bind($0) })
            try stage.redis(["HSET g:{im:q} \(users.map { "\($0) 0" }.joined(separator: " "))"])
            try stage.redis(["HSET c:e:{im:q-1} \"\" r", "SET c:d2:{im:q1}mq-1 tx1763600000000;"])
            let seen = try stage.play(events: [.message("q-1", to: nil, conv: "q", type: "group")])
            let expected = users.map { $0 == "q1" ? "q1/phone suppressed revoked" : "\($0)/phone accepted ok 1" }
            #expect(seen.outcomes(of: "q-1") == expected.sorted())
        }
    }

    /// No claim looks into the common key: an uncounted original is in none of the member's own keys.
    @Test func aRevokeReplacesAnOriginalThatIsMarkedInTheCommonKey() throws {
        try Stage.with(Self.settings) { stage in
            let users = Array(Self.users.prefix(5))
            try stage.play(state: users.map { .bind($0) })
            try stage.redis(["HSET g:{im:q} \(users.map { "\($0) 0" }.joined(separator: " "))"])
            let push = #""content":"x","collapse_id":"own""#
            var seen = try stage.play(
                events: [.message("q-1", to: nil, conv: "q", type: "group", push: #""content":"hello","badge":false"#)])
            let original = try #require(seen.push(of: "q-1")?.headers["apns-collapse-id"])
            #expect(try marks(stage).own == 0)
            seen = try stage.play(events: [.revoke("q-2", of: "q-1", to: nil, conv: "q", type: "group", push: push)])
            #expect(seen.push(of: "q-2")?.headers["apns-collapse-id"] == original)
        }
    }
}
