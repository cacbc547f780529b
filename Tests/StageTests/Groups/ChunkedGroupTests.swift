// SPDX-License-Identifier: Apache-2.0
import JSON
import PushCore
import Simulator
import Testing
import VirtualStage
import Worker

/// Members of a large group go to `carillon.chunks`, and all workers share one message of it.
struct ChunkedGroupTests {
    private static let members = 1200

    private static var settings: LocalCluster.Settings {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        settings.sessionMs = LocalCluster.Settings.shortSessionMs
        settings.lines = "planner: {direct_max: 1000}\n"
        return settings
    }

    private static func uid(_ number: Int) -> String { "large-\(number)" }

    private static func prepare(_ stage: Stage) throws {
        try stage.play(state: (0..<members).map { .bind(uid($0)) })
        let fields = (0..<members).map { "\(uid($0)) 0" }.joined(separator: " ")
        try stage.redis(["HSET g:{im:large} \(fields)"])
    }

    private static func message(_ turn: Int) -> Line {
        .message("large-\(turn)", to: nil, conv: "large", type: "group", push: #""content":"t\#(turn)""#)
    }

    private static func expectEachOnceInOrder(_ seen: Seen, turns: Int) {
        let wanted = (0..<turns).map { "Nick: t\($0)" }
        for number in 0..<members {
            let bodies = seen.accepted(token(uid(number), "phone")).map {
                $0.json["aps"]?["alert"]?["body"]?.string ?? ""
            }
            #expect(bodies == wanted, "\(uid(number))")
        }
    }

    @Test func twoWorkersShareOneMessageAndKeepEachMembersOrder() throws {
        try Stage.with(Self.settings) { stage in
            let first = try stage.worker
            let second = try stage.startWorker()
            try Self.prepare(stage)
            try stage.writeEvents((0..<3).map(Self.message))
            try stage.settle()
            Self.expectEachOnceInOrder(try stage.look(), turns: 3)
            for worker in [first, second] { #expect(worker.metric("carillon_chunks_settled_total") > 0) }
            let results = try stage.look().results.filter { $0["msg_id"]?.string == "large-2" }
            #expect(results.count == Self.members)
        }
    }

    @Test func aGroupUpToTheBoundIsNotDivided() throws {
        var settings = Self.settings
        settings.lines = "planner: {direct_max: 1200}\n"
        try Stage.with(settings) { stage in
            try Self.prepare(stage)
            try stage.play(events: [Self.message(0)])
            Self.expectEachOnceInOrder(try stage.look(), turns: 1)
            #expect(try stage.metric("carillon_chunks_total") == 0)
        }
    }

    /// A worker dies in the midst of it: what was in flight is at most pushed twice, the rest of its chunks once.
    @Test func aCrashRepeatsNoMoreThanWhatWasInFlight() throws {
        var settings = Self.settings
        settings.scenario = Scenario(rules: [ScenarioRule(ScenarioRule.Match(), .answer(.late(300)))])
        settings.appLines = "    limits: { in_flight: 50 }\n"
        try Stage.bare(settings) { stage in
            try stage.writeState((0..<Self.members).map { .bind(Self.uid($0)) })
            let fields = (0..<Self.members).map { "\(Self.uid($0)) 0" }.joined(separator: " ")
            try stage.redis(["HSET g:{im:large} \(fields)"])
            let first = try stage.startWorker(waits: false)
            try stage.awaitState(first)
            try stage.writeEvents([Self.message(0)])
            try until("the group is under way") { stage.apns.counters.accepted > 200 }
            stage.kill(first)
            let second = try stage.startWorker(waits: false)
            let seen = try stage.look(until: "every member has a record", within: .seconds(120)) {
                Set($0.results.compactMap { $0["uid"]?.string }).count == Self.members
            }
            #expect(try stage.stop(second))
            let pushes = (0..<Self.members).map { seen.accepted(token(Self.uid($0), "phone")).count }
            #expect(pushes.allSatisfy { $0 >= 1 })
            // In flight, and what APNs took within a second of the end.
            #expect(pushes.count { $0 > 1 } <= 50 + 200, "\(pushes.count { $0 > 1 }) twice")
        }
    }

    /// While 1:1 messages come, no more of its members are asked for than their lane's part of Redis; the others go past them.
    @Test func besideOthersALargeGroupHasItsPartOfRedisAlone() throws {
        var settings = Self.settings
        settings.redisLines = "  timeout_ms: 60000\n"
        try Stage.with(settings) { stage in
            let relay = stage.redis
            try Self.prepare(stage)
            try stage.play(state: (0...1).map { .bind("other-\($0)") }, events: [.message("o", to: ["other-0"])])
            relay.hold(after: "{im:large-")
            try stage.writeEvents([Self.message(0)])
            var number = 0
            try until("members are asked for") {
                number += 1
                try stage.writeEvents([.message("o\(number)", to: ["other-0"])])
                return relay.isHolding
            }
            // What comes later is asked for at once.
            try stage.writeEvents([.message("p", to: ["other-1"])])
            try until("the next is asked for") { relay.heldText.contains("{im:other-1}") }
            let asked = Set(
                relay.heldText.split(separator: "{im:large-").dropFirst().map { $0.prefix(while: \.isNumber) })
            // A turn's worth is 15 parts of 100 of 512 commands, three for each; of three turns.
            #expect((1...75).contains(asked.count), "\(asked.count)")
            relay.release()
            try stage.settle()
            Self.expectEachOnceInOrder(try stage.look(), turns: 1)
        }
    }

    /// Mute levels of the group's hash travel with its members.
    @Test func aMutedMemberOfAChunkGetsNothing() throws {
        try Stage.with(Self.settings) { stage in
            try Self.prepare(stage)
            try stage.redis(["HSET g:{im:large} \(Self.uid(5)) 5"])
            try stage.play(events: [Self.message(0)])
            let seen = try stage.look()
            #expect(seen.accepted(token(Self.uid(5), "phone")).isEmpty)
            #expect(seen.accepted(token(Self.uid(6), "phone")).count == 1)
        }
    }
}
