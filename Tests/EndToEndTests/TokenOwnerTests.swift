import LocalServers
import Processes
import Support
import Testing

/// Whose a token is: known of the usual push by the version of its user's tokens, and asked for otherwise.
@Suite(.serialized) struct TokenOwnerTests {
    private static func ownersAsked(_ stage: Stage) async throws -> Int {
        Int(try await stage.metric("carillon_redis_command_seconds_count", #"op="owner""#))
    }

    @Test func theUsualPushAsksForNoOwner() async throws {
        try await Stage.with { stage in
            let users = (0..<20).map { "usual-\($0)" }
            try await stage.play(state: users.map { .bind($0) })
            let seen = try await stage.play(events: users.map { .message("\($0)-m", to: [$0]) })
            for user in users { #expect(seen.accepted(token(user, "phone")).count == 1) }
            #expect(try await Self.ownersAsked(stage) == 0)
        }
    }

    /// Read with the token, claimed without it: the former owner gets no push on it.
    @Test func aTokenThatIsTakenBetweenReadAndClaimIsNotPushed() async throws {
        let relay = try HeldRelay()
        var settings = LocalCluster.Settings()
        settings.shards = 1
        settings.redisURL = relay.url
        settings.usesRedisCluster = false
        try await Stage.bare(settings) { stage in
            relay.begin(to: stage.world.redis.port)
            defer { relay.close() }
            try await stage.startWorker()
            let phone = token("former", "phone")
            try await stage.play(state: [.bind("former")])
            relay.hold(after: "former")
            try await stage.writeEvents([.message("taken", to: ["former"])])
            try await until("its user is read") { relay.isHolding && relay.heldText.contains("former") }
            // As a bind of another user takes it, who has it only after that.
            try await stage.redis(["HDEL c:u:{im:former} ta5:phone", "HINCRBY c:s:{im:former} v 1"])
            relay.release()
            try await stage.settle()
            let seen = try await stage.look()
            #expect(seen.outcomes(of: "taken") == ["former suppressed no_token"])
            #expect(seen.accepted(phone).isEmpty)
        }
    }

    /// The process that took over may lack the newest binds of the one before it.
    @Test func afterAFailoverOwnersAreAskedFor() async throws {
        var settings = LocalCluster.Settings()
        settings.usesRedisCluster = true
        try await Stage.with(settings) { stage in
            guard let cluster = stage.world.redisCluster else { throw SetupFault("there is no cluster") }
            let users = (0..<20).map { "over-\($0)" }
            try await stage.play(state: users.map { .bind($0) })
            try await stage.play(events: users.map { .message("\($0)-1", to: [$0]) })
            #expect(try await Self.ownersAsked(stage) == 0)
            for index in RedisCluster.masterCount..<cluster.nodes.count { try await cluster.awaitReplica(index) }
            try await cluster.failOver(to: 3)
            // Each message may be the one by which the worker hears of it.
            var round = 1
            try await until("the worker has heard of it") {
                round += 1
                try await stage.play(events: users.map { .message("\($0)-\(round)", to: [$0]) })
                return try await Self.ownersAsked(stage) >= users.count
            }
        }
    }
}
