// SPDX-License-Identifier: Apache-2.0
import JSON
import LocalServers
import RedisModel
import Testing
import VirtualStage

/// A Redis that comes back empty.
@Suite struct TokenLossTests {
    enum Emptying: CaseIterable {
        case flush
        /// The worker's commands get no reply in time, and it connects again.
        case whileSilent
        /// As another process, without data.
        case restart
        case whileRepliesAreHeld

        func empty(_ stage: Stage) throws {
            switch self {
            case .flush: try stage.redis(["FLUSHALL"])
            case .whileSilent:
                stage.redis.freeze()
                stage.wait(.seconds(3))
                try stage.redis(["FLUSHALL"])
                stage.redis.thaw()
            case .restart:
                try stage.redis(["FLUSHALL"])
                stage.redis.restart()
            case .whileRepliesAreHeld:
                stage.redis.hold(after: "DBSIZE")
                try until("a count is on its way") { stage.redis.isHolding }
                try stage.redis(["FLUSHALL"])
                stage.redis.release()
            }
        }
    }

    /// A worker that sees Redis come back empty decides of nobody that he has no token, and goes on by an operator's word.
    @Test(arguments: Emptying.allCases)
    func anEmptiedRedisStopsReadingUntilItIsAcceptedOrFilledAgain(_ way: Emptying) throws {
        try Stage.with(Self.settings(shards: 1)) { stage in
            let crowd = Crowd(name: "lost", count: 60)
            try stage.play(state: crowd.binds, events: [.message("before", to: [crowd.uid(0)])])
            try Self.letTheKeysStand(stage)
            try way.empty(stage)
            try stage.writeEvents(crowd.messages)
            try until("it is told") {
                let page = try stage.page("/readyz")
                return page.status == 503 && page.text.contains("Redis lost its tokens")
            }
            #expect(try stage.metric("carillon_token_loss") == 1)
            #expect(try stage.look().results.allSatisfy { $0["reason"]?.string != "no_token" })
            try stage.writeState(crowd.binds)
            try stage.settleState()
            try Self.accept(stage)
            try stage.settle()
            let seen = try stage.look()
            #expect(crowd.accepted(seen.pushes).allSatisfy { $0 >= 1 }, "bound anew before it was accepted")
            try until("it is ready again") { try stage.page("/readyz").status == 200 }
        }
    }

    /// Contract 12: an acceptance applies to shards too that had not stopped for the loss.
    @Test func anAcceptedLossStopsNoOtherShardLater() throws {
        try Stage.with(Self.settings(shards: 2)) { stage in
            let crowd = Crowd(name: "twoshards", count: 60)
            try stage.play(state: crowd.binds, events: [.message("before-2", to: [crowd.uid(0)])])
            try Self.letTheKeysStand(stage)
            try stage.redis(["FLUSHALL"])
            try stage.writeEvents([.message("first", to: [crowd.uid(1)])])
            try until("one shard has stopped") { try stage.page("/readyz").text.contains("Redis lost its tokens") }
            try Self.accept(stage)
            _ = try stage.look(until: "it goes on") { !$0.outcomes(of: "first").isEmpty }
            // Of every partition, and so of both shards.
            try stage.writeEvents(crowd.messages)
            try stage.settle()
            let stops = try stage.logText().ranges(of: "Redis lost keys and users have no tokens").count
            #expect(stops == 1, "one shard stopped")
            #expect(try stage.page("/readyz").status == 200)
        }
    }

    /// An operator let Redis evict, near its limit: far fewer than half of the keys go.
    @Test func `keys that Redis evicts are lost tokens, however few they are`() throws {
        try Stage.with(Self.settings(shards: 1)) { stage in
            let crowd = Crowd(name: "evicted", count: 60)
            try stage.play(state: crowd.binds, events: [.message("before-3", to: [crowd.uid(0)])])
            try Self.letTheKeysStand(stage)
            try stage.redis(["CONFIG SET maxmemory-policy allkeys-lru"])
            try until("it is told") { try stage.page("/readyz").text.contains("maxmemory-policy is allkeys-lru") }
            #expect(try stage.page("/readyz").status == 200)
            try stage.redis((0..<20).map { "DEL c:u:{im:\(crowd.uid($0))}" })
            stage.redis.server.evictedKeys = 20
            try stage.writeEvents(crowd.messages)
            try until("it stops") {
                let page = try stage.page("/readyz")
                return page.status == 503 && page.text.contains("Redis lost its tokens")
            }
            #expect(try stage.look().results.allSatisfy { $0["reason"]?.string != "no_token" })
            #expect(try stage.logText().contains("Redis evicted keys"))
            try stage.redis(["CONFIG SET maxmemory-policy noeviction"])
            try stage.writeState((0..<20).map { .bind(crowd.uid($0), version: 2) })
            try stage.settleState()
            try Self.accept(stage)
            try stage.settle()
            let seen = try stage.look()
            #expect(crowd.accepted(seen.pushes).allSatisfy { $0 >= 1 }, "bound anew before it was accepted")
            try until("it is ready again") { try stage.page("/readyz").text.contains("redis: ok") }
        }
    }

    private static func settings(shards: Int) -> LocalCluster.Settings {
        var settings = LocalCluster.Settings()
        settings.shards = shards
        return settings
    }

    /// Changes of half a minute before the newest one are made again in a new process. Keys of the last ten counts are no sign.
    private static func letTheKeysStand(_ stage: Stage) throws {
        stage.wait(.seconds(40))
        try stage.play(state: [.bind("newest")])
        stage.wait(.seconds(11))
        #expect(try stage.metric("carillon_redis_keys") >= 120)
    }

    /// As `carillon tokens accept` does.
    private static func accept(_ stage: Stage) throws { try stage.redis(["SET c:w:{accepted} \(nowMs)"]) }
}
