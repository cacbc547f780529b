// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage

/// Groups whose members are read from Redis.
@Suite(.onStage(scenario: TokenPrefix.scenario)) struct GroupTests {
    /// m0 … m999 with level 0, 1, 2, 4 and 5 by the last digit: 0-5 → 0, 6 → 1, 7 → 2, 8 → 4, 9 → 5. All have phones.
    private static func level(_ index: Int) -> Int { [0, 0, 0, 0, 0, 0, 1, 2, 4, 5][index % 10] }

    private func fill(_ stage: Stage, _ name: String, count: Int) throws {
        let members = (0..<count).map { "\(name)-m\($0) \(Self.level($0))" }
        for start in stride(from: 0, to: count, by: 200) {
            let page = members[start..<min(count, start + 200)].joined(separator: " ")
            try stage.redis(["HSET g:{im:\(name)} \(page) \(name)-sender 0"])
        }
        try stage.play(state: (0..<count).map { .bind("\(name)-m\($0)") })
    }

    @Test func aThousandMembersGetWhatTheirLevelsAndTheMentionSay() throws {
        let stage = try Stage.here
        try fill(stage, "g1", count: 1000)
        let excluded = "g1-m10"
        _ = try stage.play(events: [
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
        ])
        // Alone, since of events that are in work at once any may carry the highest number.
        let seen = try stage.play(events: [
            .message(
                "g1-everyone", to: nil, from: "g1-sender", conv: "g1", type: "group",
                push: #""content":"x","force":{"mode":"all"}"#)
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

    /// The plain message is read twice, since the members' own levels turn what the group's denies, and the mention once.
    @Test func aRecipientReadTwiceIsNotOvertakenByALaterMention() throws {
        let stage = try Stage.here
        let members = (0..<20).map { "g7-m\($0)" }
        try stage.redis(["HSET g:{im:g7} " + members.map { "\($0) 1" }.joined(separator: " ")])
        try stage.play(
            state: members.map { .bind($0) }
                + members.map { .state("mute", $0, #""conv_id":"g7","level":-1"#) })
        let seen = try stage.play(events: [
            .message("g7-plain", to: nil, conv: "g7", type: "group"),
            .message("g7-all", to: nil, conv: "g7", type: "group", #","mention":{"all":true,"uids":[]}"#),
        ])
        for member in members {
            let ids = seen.pushIDs(of: ["g7-plain", "g7-all"], to: member)
            #expect(seen.accepted(token(member, "phone")).map(\.apnsID) == ids, "\(member)")
        }
    }

    @Test func anEmptyFieldOfAGroupIsSkipped() throws {
        let stage = try Stage.here
        try stage.redis([#"HSET g:{im:g9} g9-a 0 "" 0"#])
        let seen = try stage.play(
            state: [.bind("g9-a")], events: [.message("g9-1", to: nil, conv: "g9", type: "group")])
        #expect(seen.outcomes(of: "g9-1") == ["g9-a/phone accepted ok 1"])
    }

    @Test func factsThatCanLiftADenialByTheGroupAreRead() throws {
        let stage = try Stage.here
        try stage.redis([
            "HSET g:{im:g4} g4-a 5 g4-b 5 g4-c 5 g4-d 5", Gateway.lease("gw-g4"),
            Gateway.presence("g4-c", "phone", gateway: "gw-g4"),
        ])
        let beforeRead = nowMs
        let first = Line.message("g4-1", to: nil, conv: "g4", type: "group")
        let seen = try stage.play(
            state: ["g4-a", "g4-b", "g4-c", "g4-d"].map { .bind($0) } + [
                .state("mute", "g4-b", #""conv_id":"g4","level":-1"#),
                .read("g4-d", conv: "g4", #""up_to_ms":\#(nowMs)"#),
            ], events: [first, first])
        let expected = [
            "g4-a suppressed conv_muted", "g4-b/phone accepted ok 1", "g4-c suppressed conv_muted",
            "g4-d suppressed already_read",
        ]
        #expect(seen.outcomes(of: "g4-1") == expected, "his own level, a live device, a read mark; and repeats")
        let delivered = seen.targets(of: "g4-1")
        #expect(delivered.count == 1 && delivered.first?["uid"]?.string == "g4-c")
        #expect(delivered.first?["alert"]?.bool == false)

        let later = try stage.play(events: [
            first,
            .message(
                "g4-2", to: nil, conv: "g4", type: "group", push: #""enabled":false"#, sentMs: beforeRead),
            .message("g4-3", to: ["g4-a"]),
        ])
        #expect(later.outcomes(of: "g4-1") == expected, "a repeat writes nothing")
        #expect(
            later.outcomes(of: "g4-2") == [
                "g4-a suppressed msg_push_off", "g4-b suppressed msg_push_off", "g4-c suppressed msg_push_off",
                "g4-d suppressed already_read",
            ])
        #expect(later.outcomes(of: "g4-3") == ["g4-a/phone accepted ok 1"], "what was denied is not counted")
    }

    @Test func aGivenUidsLevelIsReadFromTheGroupToo() throws {
        let stage = try Stage.here
        try stage.redis(["HSET g:{im:g2} g2-a 5 g2-b 0"])
        let seen = try stage.play(
            state: [.bind("g2-a"), .bind("g2-b")],
            events: [.message("g2-1", to: ["g2-a", "g2-b"], conv: "g2", type: "group")])
        #expect(seen.outcomes(of: "g2-1") == ["g2-a suppressed conv_muted", "g2-b/phone accepted ok 1"])
    }

    /// A member without an ack is decided again: by its level in the group then, not by the app's default.
    @Test func aLevelThatChangesBeforeTheAckIsDueEndsThePush() throws {
        let stage = try Stage.here
        try stage.redis([
            "HSET g:{im:g11} g11-a 0 g11-b 0", Gateway.lease("gw-g11"),
            Gateway.presence("g11-a", "phone", state: "bg", gateway: "gw-g11", flags: "l", since: nowMs - 30_000),
        ])
        try stage.play(state: [.bind("g11-a"), .bind("g11-b")])
        try stage.writeEvents([.message("g11-1", to: nil, conv: "g11", type: "group")])
        stage.wait(.seconds(1))
        try stage.redis(["HSET g:{im:g11} g11-a 5"])
        try stage.settle()
        #expect(
            try stage.look().outcomes(of: "g11-1") == [
                "g11-a/phone suppressed conv_muted", "g11-b/phone accepted ok 1",
            ])
    }

    @Test func aGroupThatNobodyKnowsHasOneRecordForNobody() throws {
        let seen = try Stage.here.play(events: [
            .message("g3-1", to: nil, conv: "g3-unknown", type: "group"),
            .message(
                "g3-2", to: nil, conv: "g3-unknown", type: "ultra", sentMs: nowMs - 5000,
                #","expire_at_ms":\#(nowMs - 1)"#),
        ])
        #expect(seen.outcomes(of: "g3-1") == [" suppressed no_recipients"])
        #expect(seen.outcomes(of: "g3-2") == [" expired expired"])
    }
}

extension Line {
    /// A group message that leaves one member out.
    fileprivate static func excluding(_ uid: String, _ id: String, conv: String, from: String) -> Line {
        .message(id, to: nil, from: from, conv: conv, type: "group", #","to":{"exclude":["\#(uid)"]}"#)
    }
}
