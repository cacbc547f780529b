import JSON
import LocalServers
import Processes
import StageWords
import Support
import Testing

/// A Redis that comes back empty.
@Suite struct TokenLossTests {
    /// A worker that sees Redis come back empty decides of nobody that he has no token, and goes on by an operator's word.
    @Test func anEmptiedRedisStopsReadingUntilItIsAcceptedOrFilledAgain() async throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        try await Stage.with(settings) { stage in
            let crowd = Crowd(name: "lost", count: 60)
            try await stage.play(state: crowd.binds, events: [.message("before", to: [crowd.uid(0)])])
            try await until("the keys were counted") { try await stage.metric("carillon_redis_keys") >= 120 }
            // What came in the last ten counts is no sign.
            let counts = try await Self.keyCounts(stage)
            try await until("they have stood") { try await Self.keyCounts(stage) >= counts + 10 }
            try await stage.redis(["FLUSHALL"])
            try await stage.writeEvents(crowd.messages)
            try await until("it is told") {
                let page = try await stage.page("/readyz")
                return page.status == 503 && page.text.contains("Redis lost its tokens")
            }
            #expect(try await stage.metric("carillon_token_loss") == 1)
            #expect(try await stage.look().results.allSatisfy { $0["reason"]?.string != "no_token" })
            try await stage.writeState(crowd.binds)
            try await stage.settleState()
            let path = try stage.world.writeConfiguration()
            let accepted = try await offPool { try CommandRun("tokens", "accept", "--config", path, "--json") }
            #expect(accepted.code == 0)
            try await stage.settle()
            let seen = try await stage.look()
            #expect(crowd.accepted(seen.pushes).allSatisfy { $0 >= 1 }, "bound anew before it was accepted")
            try await until("it is ready again") { try await stage.page("/readyz").status == 200 }
        }
    }

    /// Contract 12: an acceptance applies to shards too that had not stopped for the loss.
    @Test func anAcceptedLossStopsNoOtherShardLater() async throws {
        var settings = LocalCluster.Settings()
        settings.shards = 2
        try await Stage.with(settings) { stage in
            let crowd = Crowd(name: "twoshards", count: 60)
            try await stage.play(state: crowd.binds, events: [.message("before-2", to: [crowd.uid(0)])])
            let counts = try await Self.keyCounts(stage)
            try await until("they have stood") { try await Self.keyCounts(stage) >= counts + 24 }
            try await stage.redis(["FLUSHALL"])
            try await stage.writeEvents([.message("first", to: [crowd.uid(1)])])
            try await until("one shard has stopped") {
                try await stage.page("/readyz").text.contains("Redis lost its tokens")
            }
            let path = try stage.world.writeConfiguration()
            let accepted = try await offPool { try CommandRun("tokens", "accept", "--config", path) }
            #expect(accepted.code == 0)
            _ = try await stage.look(until: "it goes on") { !$0.outcomes(of: "first").isEmpty }
            // Of every partition, and so of both shards.
            try await stage.writeEvents(crowd.messages)
            try await stage.settle()
            let log = try stage.logText()
            let stops = log.ranges(of: "Redis lost keys and users have no tokens").count
            #expect(stops == 1, "one shard stopped")
            #expect(try await stage.page("/readyz").status == 200)
        }
    }

    private static func keyCounts(_ stage: Stage) async throws -> Int {
        let stats = try await stage.redisText("INFO commandstats")
        guard let at = stats.firstRange(of: "cmdstat_dbsize:calls=") else { return 0 }
        return Int(stats[at.upperBound...].prefix { $0.isNumber }) ?? 0
    }
}
