// SPDX-License-Identifier: Apache-2.0
import JSON
import SimulatedFleet
import SimulatedSystem
import Simulator
import Testing
import VirtualStage
import Worker

/// Two workers may push one device at once: whichever arrives last, the number at rest is the newest.
struct CrossingTests {
    private static let delayMs: Int64 = 4_000

    /// The first push to the token is answered late; all others at once.
    private static func settings(shards: Int) -> LocalCluster.Settings {
        var match = ScenarioRule.Match()
        match.tokenPrefix = Array(TokenPrefix.slow.utf8)
        match.count = 1
        var answer = ScenarioAnswer()
        answer.delayMs = delayMs
        var settings = LocalCluster.Settings()
        settings.shards = shards
        settings.sessionMs = LocalCluster.Settings.shortSessionMs
        settings.scenario = Scenario(rules: [ScenarioRule(match, .answer(answer))])
        return settings
    }

    private static let slow = token("u1", "phone", TokenPrefix.slow)

    /// Writes a message that is answered late, and when it is claimed another one to the same device.
    private func cross(_ stage: Stage, _ first: String, _ second: String) throws -> [LedgerEntry] {
        try stage.play(state: [.bind("u1", as: Self.slow)])
        let before = reads(stage)
        try stage.writeEvents([.message("m1", to: ["u1"], conv: first)])
        try until("the first one is claimed") {
            try stage.redisText("EXISTS c:l:{im:u1}") == ":1"
        }
        try stage.play(events: [.message("m2", to: ["u1"], conv: second)])
        let seen = try stage.look(until: "the number is sent again") { $0.accepted(Self.slow).count == 3 }
        let calls = reads(stage) - before
        #expect(calls == 2, "where the ledger has grown, and before the number goes")
        #expect(seen.outcomes(of: "m1") == ["u1/phone accepted ok 1"])
        #expect(seen.outcomes(of: "m2") == ["u1/phone accepted ok 2"])
        return seen.accepted(Self.slow)
    }

    @Test func theWorkerWithTheLaterAnswerSendsTheNewestBadgeAgain() throws {
        try Stage.with(Self.settings(shards: 1)) { stage in
            let conversations = try Self.conversationsOfTwo(stage)
            let pushes = try cross(stage, conversations[0], conversations[1])
            #expect(pushes.map { $0.json["aps"]?["badge"]?.int } == [2, 1, 2], "in the order of the answers")
            #expect(pushes.last.map { String(decoding: $0.payload, as: UTF8.self) } == #"{"aps":{"badge":2}}"#)
            // The number once more is no message's outcome.
            #expect(try stage.look().results.filter { $0["uid"]?.string == "u1" }.count == 2)
        }
    }

    /// Starts a second worker; gives a conversation of each of the two.
    private static func conversationsOfTwo(_ stage: Stage) throws -> [String] {
        let first = try stage.worker
        let second = try stage.startWorker()
        var conversations: [String?] = [nil, nil]
        for number in 0..<64 where conversations.contains(nil) {
            let before = [first.settled, second.settled]
            try stage.play(events: [.message("p\(number)", to: ["nobody"], conv: "c\(number)")])
            let now = [first.settled, second.settled]
            for index in 0..<2 where now[index] > before[index] { conversations[index] = "c\(number)" }
        }
        return [try #require(conversations[0]), try #require(conversations[1])]
    }

    /// The first worker has read its facts before the pause. It sends a claim by them before it hears from Kafka that the
    /// record is another worker's. So it never learns that the claim counted too much.
    @Test func `a message that another worker ended meanwhile counts no more when a paused worker goes on`() throws {
        var settings = Self.settings(shards: 1)
        settings.scenario = Scenario(rules: [])
        settings.redisLines = "  timeout_ms: 30000\n"
        try Stage.with(settings) { stage in
            let first = try stage.worker
            let conversation = try Self.conversationsOfTwo(stage)[0]
            try stage.play(state: [.bind("u1")])
            try stage.redis([Gateway.lease("gw-p"), Gateway.presence("u1", "web", state: "bg", gateway: "gw-p")])
            // The lease is the last that a decision reads.
            stage.redis.hold(after: "gw-p")
            try stage.writeEvents([.message("m1", to: ["u1"], conv: conversation, seq: 1)])
            try until("the lease is asked") { stage.redis.isHolding }
            first.seat.kafka.pause()
            first.seat.process.pause(nanos: 25_000_000_000)
            stage.redis.release()
            let seen = try stage.look(until: "the second worker has pushed") { !$0.outcomes(of: "m1").isEmpty }
            #expect(seen.outcomes(of: "m1") == ["u1/phone accepted ok 1"])
            try stage.writeState([.read("u1", conv: conversation, #""up_to_seq":1"#)])
            try until("the read is applied") { try stage.redisText("ZCARD c:l:{im:u1}") == ":0" }
            stage.redis.hold(after: "ZADD")
            stage.wait(.seconds(25))
            first.seat.kafka.goOn()
            stage.wait(.seconds(5))
            stage.redis.hold(after: "")
            stage.redis.release()
            #expect(try stage.redisText("ZCARD c:l:{im:u1}") == ":0")
            let last = try stage.play(events: [.message("m2", to: ["u1"], conv: "another")])
            #expect(last.outcomes(of: "m2") == ["u1/phone accepted ok 1"])
        }
    }

    /// What is parked is pushed too, and a change of user state may push the number alone.
    @Test(arguments: ["carillon.parked", "im.user-state"])
    func aNumberIsLookedAfterWhereAnotherMemberHasAPartOfThisTopicAlone(_ topic: String) throws {
        try Stage.with(Self.settings(shards: 1)) { stage in
            try stage.play(state: [.bind("u5")])
            let alone = try calls("zcard", stage)
            try stage.play(events: [.message("m1", to: ["u5"])])
            #expect(try calls("zcard", stage) == alone + 1, "the claim's: the worker has all partitions")
            let guest = try Guest(stage, topics: [topic])
            // Four of each of its two topics, and two of one of them are the guest's.
            try until("the guest has its share") { try stage.logText().contains(#""count":6"#) }
            try until("the worker has the events") {
                let status = try stage.worker.status()
                return status.shards.reduce(0) { $0 + $1.heldPartitions } == 14
            }
            let shared = (try calls("zcard", stage), reads(stage))
            // The guest settles nothing.
            try stage.writeEvents([.message("m2", to: ["u5"])])
            try until("a look after the push") { try calls("zcard", stage) == shared.0 + 2 }
            if topic == "carillon.parked" {
                try stage.writeState([.report("u5", 7, clientMs: nowMs)])
                try until("the client's report is known") {
                    try stage.redisText("HEXISTS c:s:{im:u5} b") == ":1"
                }
                try stage.writeEvents([.message("m3", to: ["u5"])])
                try until("the report is read by the look") { reads(stage) > shared.1 }
            }
            guest.leave()
        }
    }

    /// The older number arrives last, and the push that was to follow it is revoked before it leaves.
    @Test func aBadgeWithARevokedFollowerIsStillCorrected() throws {
        try Stage.with(Self.settings(shards: 1)) { stage in
            let conversations = try Self.conversationsOfTwo(stage)
            try stage.play(state: [.bind("u1", as: Self.slow)])
            func counted(_ count: Int) throws {
                try until("\(count) are counted") {
                    try stage.redisText("ZCARD c:l:{im:u1}") == ":\(count)"
                }
            }
            try stage.writeEvents([.message("m1", to: ["u1"], conv: conversations[0], seq: 1)])
            try counted(1)
            try stage.writeEvents([.message("m2", to: ["u1"], conv: conversations[0], seq: 2)])
            try counted(2)
            try stage.writeEvents([.message("m3", to: ["u1"], conv: conversations[1])])
            try counted(3)
            try stage.writeEvents([
                .revoke("r2", of: "m2", to: "u1", conv: conversations[0], push: #""enabled":false"#)
            ])
            try counted(2)
            func numbers() throws -> [Int64?] {
                try stage.look().accepted(Self.slow).map { $0.json["aps"]?["badge"]?.int }
            }
            try until("the newest number is the last") { try numbers().last == 2 }
            #expect(try numbers() == [3, 1, 2])
        }
    }

    /// The client reports its own total while the push is out: it knows its number.
    @Test func aReportOfTheClientSendsNoNumber() throws {
        try Stage.with(Self.settings(shards: 1)) { stage in
            let conversations = try Self.conversationsOfTwo(stage)
            try stage.play(state: [.bind("u1", as: Self.slow)])
            let before = try calls("zcard", stage)
            try stage.writeEvents([.message("m1", to: ["u1"], conv: conversations[0])])
            try until("it is claimed") { try stage.redisText("EXISTS c:l:{im:u1}") == ":1" }
            try stage.writeState([.report("u1", 7, clientMs: nowMs)])
            try until("the claim, the report, and a look after the push") {
                try calls("zcard", stage) >= before + 3
            }
            try stage.settle()
            let seen = try stage.look()
            #expect(seen.outcomes(of: "m1") == ["u1/phone accepted ok 1"])
            #expect(seen.accepted(Self.slow).map { $0.json["aps"]?["badge"]?.int } == [1])
        }
    }

    /// The number at rest is the newest whatever crosses, and the pushes are not doubled for it.
    @Test func aStormOverTwoWorkersEndsWithTheNewestNumberAndLittleMoreThanItsPushes() throws {
        var answer = ScenarioAnswer()
        answer.delayMs = 20
        var settings = Self.settings(shards: 1)
        settings.scenario = Scenario(rules: [ScenarioRule(ScenarioRule.Match(), .answer(answer))])
        try Stage.with(settings) { stage in
            try stage.startWorker()
            try stage.play(state: [.bind("u3")])
            let count = 200
            try stage.play(
                events: (0..<count).map { .message("m\($0)", to: ["u3"], conv: "c\($0 % 16)", seq: Int64($0 / 16 + 1)) }
            )
            let phone = token("u3", "phone")
            let seen = try stage.look(until: "the newest number is the last") {
                $0.accepted(phone).last?.json["aps"]?["badge"]?.int == Int64(count)
            }
            let pushes = seen.accepted(phone)
            #expect(pushes.last?.json["aps"]?["badge"]?.int == Int64(count))
            #expect(Set(pushes.map(\.connection)).count > 1 && seen.doubled.isEmpty)
            let alone = pushes.filter { $0.json["pid"] == nil }.count
            #expect(pushes.count - alone == count)
            #expect(alone <= count / 10, "numbers alone")
        }
    }

    /// A push that waited goes with the number of now; those behind it that waited for less have numbers of before.
    @Test func noPushHasAnOlderNumberThanOneBeforeItThatWaited() throws {
        var answer = ScenarioAnswer()
        answer.delayMs = 25
        var settings = Self.settings(shards: 1)
        settings.scenario = Scenario(rules: [ScenarioRule(ScenarioRule.Match(), .answer(answer))])
        try Stage.with(settings) { stage in
            try stage.play(state: [.bind("u6")])
            var count = 0
            func write(_ more: Int, whenLeft pushed: Int) throws {
                try until("\(pushed) have left") { stage.apns.requests.count >= pushed }
                let numbers = count + 1...count + more
                count += more
                try stage.writeEvents(numbers.map { .message("m\($0)", to: ["u6"], seq: Int64($0)) })
            }
            for _ in 0..<10 {
                // The fifth waits for so long that it is checked, which counts the two that come meanwhile.
                try write(5, whenLeft: count)
                try write(2, whenLeft: count - 3)
            }
            try stage.settle()
            let pushes = try stage.look().accepted(token("u6", "phone"))
            let numbers = pushes.map { $0.json["aps"]?["badge"]?.int ?? 0 }
            #expect(numbers.count == count && numbers == numbers.sorted() && numbers.last == Int64(count), "\(numbers)")
        }
    }

    /// One shard's claim is answered only after another shard has pushed newer numbers: its own is looked at again before it goes.
    @Test func theShardWithALateClaimReplyPushesNoOlderBadge() throws {
        try Stage.with(Self.settings(shards: 2)) { stage in
            let relay = stage.redis
            try stage.play(state: [.bind("u4")])
            // The ledger is named by claims alone.
            relay.hold(after: "c:l:{im:u4}")
            try stage.writeEvents([.message("late", to: ["u4"], conv: "c0")])
            try until("its claim is asked") { relay.isHolding }
            // Of so many conversations some are the other shard's.
            try stage.writeEvents((1..<16).map { .message("m\($0)", to: ["u4"], conv: "c\($0)") })
            _ = try stage.look(until: "the other shard has pushed") { !$0.accepted(token("u4", "phone")).isEmpty }
            relay.release()
            try stage.settle()
            let pushes = try stage.look().accepted(token("u4", "phone"))
            let numbers = pushes.map { $0.json["aps"]?["badge"]?.int ?? 0 }
            let story = pushes.map { "\($0.json["aps"]?["thread-id"]?.string ?? "") \($0.connection) \($0.atMs)" }
            #expect(
                numbers == numbers.sorted() && numbers.count == 16 && numbers.last == 16, "\(numbers) of \(story)")
        }
    }

    @Test func aWorkerWithAllPartitionsAsksForNoNumber() throws {
        try Stage.with(Self.settings(shards: 2)) { stage in
            try stage.play(state: [.bind("u2")])
            var number = 0
            func readsOfMessages(_ count: Int) throws -> Int {
                let before = try calls("zcard", stage)
                let events = (number..<number + count).map { Line.message("m\($0)", to: ["u2"], conv: "c\($0)") }
                number += count
                try stage.play(events: events)
                return try calls("zcard", stage) - before
            }
            // The number of partitions is asked for after the assignment.
            // A push that had to wait is checked again, which costs another: so each count is tried again.
            for _ in 0..<5 {
                try until("a message costs only its claim's ZCARD") { try readsOfMessages(1) == 1 }
            }
        }
    }

    /// HGETs outside of scripts so far: of a message to one user only the look at the newest number makes one, where the ledger has grown or
    /// the client has reported.
    private func reads(_ stage: Stage) -> Int { stage.redis.reads(by: "HGET") }

    /// Calls of a Redis command so far. A claim makes one ZCARD, and a look another.
    private func calls(_ command: String, _ stage: Stage) throws -> Int {
        let stats = try stage.redisText("INFO commandstats")
        guard let at = stats.firstRange(of: "cmdstat_\(command):calls=") else { return 0 }
        return Int(stats[at.upperBound...].prefix { $0.isNumber }) ?? 0
    }
}
