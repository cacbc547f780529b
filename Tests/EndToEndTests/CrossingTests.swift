import JSON
import LocalServers
import Simulator
import StageWords
import Support
import Testing
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
    private func cross(_ stage: Stage, _ first: String, _ second: String) async throws -> [LedgerEntry] {
        try await stage.play(state: [.bind("u1", as: Self.slow)])
        let before = try await reads(stage)
        try await stage.writeEvents([.message("m1", to: ["u1"], conv: first)])
        try await until("the first one is claimed") {
            try await stage.redisText("EXISTS c:l:{im:u1}") == ":1"
        }
        try await stage.play(events: [.message("m2", to: ["u1"], conv: second)])
        let seen = try await stage.look(until: "the number is sent again") { $0.accepted(Self.slow).count == 3 }
        let calls = try await reads(stage) - before
        #expect(calls == 2, "where the ledger has grown, and before the number goes")
        #expect(seen.outcomes(of: "m1") == ["u1/phone accepted ok 1"])
        #expect(seen.outcomes(of: "m2") == ["u1/phone accepted ok 2"])
        return seen.accepted(Self.slow)
    }

    @Test func theWorkerWithTheLaterAnswerSendsTheNewestBadgeAgain() async throws {
        try await Stage.with(Self.settings(shards: 1)) { stage in
            let conversations = try await Self.conversationsOfTwo(stage)
            let pushes = try await cross(stage, conversations[0], conversations[1])
            #expect(pushes.map { $0.json["aps"]?["badge"]?.int } == [2, 1, 2], "in the order of the answers")
            #expect(pushes.last.map { String(decoding: $0.payload, as: UTF8.self) } == #"{"aps":{"badge":2}}"#)
            // The number once more is no message's outcome.
            #expect(try await stage.look().results.filter { $0["uid"]?.string == "u1" }.count == 2)
        }
    }

    /// Starts a second worker; gives a conversation of each of the two.
    private static func conversationsOfTwo(_ stage: Stage) async throws -> [String] {
        let first = try await stage.worker
        let second = try await stage.startWorker()
        var conversations: [String?] = [nil, nil]
        for number in 0..<64 where conversations.contains(nil) {
            let before = [await Stage.settled(first), await Stage.settled(second)]
            try await stage.play(events: [.message("p\(number)", to: ["nobody"], conv: "c\(number)")])
            let now = [await Stage.settled(first), await Stage.settled(second)]
            for index in 0..<2 where now[index] > before[index] { conversations[index] = "c\(number)" }
        }
        return [try #require(conversations[0]), try #require(conversations[1])]
    }

    /// What is parked is pushed too, and a change of user state may push the number alone.
    @Test(arguments: ["carillon.parked", "im.user-state"])
    func aNumberIsLookedAfterWhereAnotherMemberHasAPartOfThisTopicAlone(_ topic: String) async throws {
        try await Stage.with(Self.settings(shards: 1)) { stage in
            try await stage.play(state: [.bind("u5")])
            let alone = try await calls("zcard", stage)
            try await stage.play(events: [.message("m1", to: ["u5"])])
            #expect(try await calls("zcard", stage) == alone + 1, "the claim's: the worker has all partitions")
            let guest = Guest(stage, topics: [topic])
            // Four of each of its two topics, and two of one of them are the guest's.
            try await until("the guest has its share") { try stage.logText().contains(#""count":6"#) }
            try await until("the worker has the events") {
                let status = await (try stage.worker).status()
                return status.shards.reduce(0) { $0 + $1.heldPartitions } == 14
            }
            let shared = try await (calls("zcard", stage), reads(stage))
            // The guest settles nothing.
            try await stage.writeEvents([.message("m2", to: ["u5"])])
            try await until("a look after the push") { try await calls("zcard", stage) == shared.0 + 2 }
            if topic == "carillon.parked" {
                try await stage.writeState([.report("u5", 7, clientMs: nowMs)])
                try await until("the client's report is known") {
                    try await stage.redisText("HEXISTS c:s:{im:u5} b") == ":1"
                }
                try await stage.writeEvents([.message("m3", to: ["u5"])])
                try await until("the report is read, by its script and by the look") {
                    try await reads(stage) >= shared.1 + 2
                }
            }
            await guest.leave()
        }
    }

    /// The older number arrives last, and the push that was to follow it is revoked before it leaves.
    @Test func aBadgeWithARevokedFollowerIsStillCorrected() async throws {
        try await Stage.with(Self.settings(shards: 1)) { stage in
            let conversations = try await Self.conversationsOfTwo(stage)
            try await stage.play(state: [.bind("u1", as: Self.slow)])
            func counted(_ count: Int) async throws {
                try await until("\(count) are counted") {
                    try await stage.redisText("ZCARD c:l:{im:u1}") == ":\(count)"
                }
            }
            try await stage.writeEvents([.message("m1", to: ["u1"], conv: conversations[0], seq: 1)])
            try await counted(1)
            try await stage.writeEvents([.message("m2", to: ["u1"], conv: conversations[0], seq: 2)])
            try await counted(2)
            try await stage.writeEvents([.message("m3", to: ["u1"], conv: conversations[1])])
            try await counted(3)
            try await stage.writeEvents([
                .revoke("r2", of: "m2", to: "u1", conv: conversations[0], push: #""enabled":false"#)
            ])
            try await counted(2)
            func numbers() async throws -> [Int64?] {
                try await stage.look().accepted(Self.slow).map { $0.json["aps"]?["badge"]?.int }
            }
            try await until("the newest number is the last") { try await numbers().last == 2 }
            #expect(try await numbers() == [3, 1, 2])
        }
    }

    /// The client reports its own total while the push is out: it knows its number.
    @Test func aReportOfTheClientSendsNoNumber() async throws {
        try await Stage.with(Self.settings(shards: 1)) { stage in
            let conversations = try await Self.conversationsOfTwo(stage)
            try await stage.play(state: [.bind("u1", as: Self.slow)])
            let before = try await calls("zcard", stage)
            try await stage.writeEvents([.message("m1", to: ["u1"], conv: conversations[0])])
            try await until("it is claimed") { try await stage.redisText("EXISTS c:l:{im:u1}") == ":1" }
            try await stage.writeState([.report("u1", 7, clientMs: nowMs)])
            try await until("the claim, the report, and a look after the push") {
                try await calls("zcard", stage) >= before + 3
            }
            try await stage.settle()
            let seen = try await stage.look()
            #expect(seen.outcomes(of: "m1") == ["u1/phone accepted ok 1"])
            #expect(seen.accepted(Self.slow).map { $0.json["aps"]?["badge"]?.int } == [1])
        }
    }

    /// The number at rest is the newest whatever crosses, and the pushes are not doubled for it.
    @Test func aStormOverTwoWorkersEndsWithTheNewestNumberAndLittleMoreThanItsPushes() async throws {
        var answer = ScenarioAnswer()
        answer.delayMs = 20
        var settings = Self.settings(shards: 1)
        settings.scenario = Scenario(rules: [ScenarioRule(ScenarioRule.Match(), .answer(answer))])
        try await Stage.with(settings) { stage in
            try await stage.startWorker()
            try await stage.play(state: [.bind("u3")])
            let count = 200
            try await stage.play(
                events: (0..<count).map { .message("m\($0)", to: ["u3"], conv: "c\($0 % 16)", seq: Int64($0 / 16 + 1)) }
            )
            let phone = token("u3", "phone")
            let seen = try await stage.look(until: "the newest number is the last") {
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
    @Test func noPushHasAnOlderNumberThanOneBeforeItThatWaited() async throws {
        var answer = ScenarioAnswer()
        answer.delayMs = 25
        var settings = Self.settings(shards: 1)
        settings.scenario = Scenario(rules: [ScenarioRule(ScenarioRule.Match(), .answer(answer))])
        try await Stage.with(settings) { stage in
            try await stage.play(state: [.bind("u6")])
            var count = 0
            func write(_ more: Int, whenLeft pushed: Int) async throws {
                try await until("\(pushed) have left") { await stage.world.simulator.entries.count >= pushed }
                let numbers = count + 1...count + more
                count += more
                try await stage.writeEvents(numbers.map { .message("m\($0)", to: ["u6"], seq: Int64($0)) })
            }
            for _ in 0..<10 {
                // The fifth waits for so long that it is checked, which counts the two that come meanwhile.
                try await write(5, whenLeft: count)
                try await write(2, whenLeft: count - 3)
            }
            try await stage.settle()
            let pushes = try await stage.look().accepted(token("u6", "phone"))
            let numbers = pushes.map { $0.json["aps"]?["badge"]?.int ?? 0 }
            #expect(numbers.count == count && numbers == numbers.sorted() && numbers.last == Int64(count), "\(numbers)")
        }
    }

    /// One shard's claim is answered only after another shard has pushed newer numbers: its own is looked at again before it goes.
    @Test func theShardWithALateClaimReplyPushesNoOlderBadge() async throws {
        let relay = try HeldRelay()
        var settings = Self.settings(shards: 2)
        relay.carry(&settings)
        try await Stage.bare(settings) { stage in
            relay.begin(to: stage.world.redis.port)
            defer { relay.close() }
            _ = try await stage.startWorker()
            try await stage.play(state: [.bind("u4")])
            // The ledger is named by claims alone.
            relay.hold(after: "c:l:{im:u4}")
            try await stage.writeEvents([.message("late", to: ["u4"], conv: "c0")])
            try await until("its claim is asked") { relay.isHolding }
            // Of so many conversations some are the other shard's.
            try await stage.writeEvents((1..<16).map { .message("m\($0)", to: ["u4"], conv: "c\($0)") })
            _ = try await stage.look(until: "the other shard has pushed") { !$0.accepted(token("u4", "phone")).isEmpty }
            relay.release()
            try await stage.settle()
            let pushes = try await stage.look().accepted(token("u4", "phone"))
            let numbers = pushes.map { $0.json["aps"]?["badge"]?.int ?? 0 }
            let story = pushes.map { "\($0.json["aps"]?["thread-id"]?.string ?? "") \($0.connection) \($0.atMs)" }
            #expect(
                numbers == numbers.sorted() && numbers.count == 16 && numbers.last == 16, "\(numbers) of \(story)")
        }
    }

    @Test func aWorkerWithAllPartitionsAsksForNoNumber() async throws {
        try await Stage.with(Self.settings(shards: 2)) { stage in
            try await stage.play(state: [.bind("u2")])
            var number = 0
            func readsOfMessages(_ count: Int) async throws -> Int {
                let before = try await calls("zcard", stage)
                let events = (number..<number + count).map { Line.message("m\($0)", to: ["u2"], conv: "c\($0)") }
                number += count
                try await stage.play(events: events)
                return try await calls("zcard", stage) - before
            }
            // The number of partitions is asked for after the assignment.
            // A push that had to wait is checked again, which costs another: so each count is tried again.
            for _ in 0..<5 {
                try await until("a message costs only its claim's ZCARD") { try await readsOfMessages(1) == 1 }
            }
        }
    }

    /// HGETs so far: of a message to one user only the look at the newest number makes one, where the ledger has grown or
    /// the client has reported.
    private func reads(_ stage: Stage) async throws -> Int { try await calls("hget", stage) }

    /// Calls of a Redis command so far. A claim makes one ZCARD, and a look another.
    private func calls(_ command: String, _ stage: Stage) async throws -> Int {
        let stats = try await stage.redisText("INFO commandstats")
        guard let at = stats.firstRange(of: "cmdstat_\(command):calls=") else { return 0 }
        return Int(stats[at.upperBound...].prefix { $0.isNumber }) ?? 0
    }
}
