import LocalServers
import Processes
import StageWords
import Support
import Testing

@testable import Worker

/// Whose a token is: asked for once per version of its user's tokens, and known from then on.
struct TokenOwnerTests {
    private static func ownersAsked(_ stage: Stage) async throws -> Int {
        Int(try await stage.metric("carillon_redis_command_seconds_count", #"op="owner""#))
    }

    @Test func onlyTheFirstPushAfterABindAsksForOwners() async throws {
        try await Stage.with { stage in
            let users = (0..<20).map { "usual-\($0)" }
            try await stage.play(state: users.map { .bind($0) })
            try await stage.play(events: users.map { .message("\($0)-m", to: [$0]) })
            let asked = try await Self.ownersAsked(stage)
            #expect(asked > 0)
            for round in 1...3 {
                let seen = try await stage.play(events: users.map { .message("\($0)-\(round)", to: [$0]) })
                for user in users { #expect(seen.accepted(token(user, "phone")).count == 1 + round) }
            }
            #expect(try await Self.ownersAsked(stage) == asked)
            try await stage.play(state: users.map { .bind($0, "pad", version: 2) })
            try await stage.play(events: users.map { .message("\($0)-n", to: [$0]) })
            #expect(try await Self.ownersAsked(stage) > asked)
        }
    }

    /// One worker whose replies from Redis can be held up.
    private static func withRelay(_ body: (Stage, HeldRelay) async throws -> Void) async throws {
        let relay = try HeldRelay()
        var settings = LocalCluster.Settings()
        settings.shards = 1
        relay.carry(&settings)
        // What is held up for long on a busy machine is no reason to give the link up.
        settings.redisLines = "  timeout_ms: 30000\n"
        try await Stage.bare(settings) { stage in
            relay.begin(to: stage.world.redis.port)
            defer { relay.close() }
            try await stage.startWorker()
            try await stage.play(state: [.bind("former")])
            try await stage.play(events: [.message("before", to: ["former"])])
            try await body(stage, relay)
        }
    }

    /// Read with the token, claimed without it: the previous owner gets no push on it.
    @Test func aTokenThatIsTakenBetweenReadAndClaimIsNotPushed() async throws {
        try await Self.withRelay { stage, relay in
            relay.hold(after: "former")
            try await stage.writeEvents([.message("taken", to: ["former"])])
            try await until("its user is read") { relay.isHolding && relay.heldText.contains("former") }
            // As a bind of another user takes it, who has it only after that.
            try await stage.redis(["HDEL c:u:{im:former} ta5:phone", "HINCRBY c:s:{im:former} v 1"])
            relay.release()
            try await stage.settle()
            let seen = try await stage.look()
            #expect(seen.outcomes(of: "taken") == ["former suppressed no_token"])
            #expect(seen.accepted(token("former", "phone")).count == 1)
        }
    }

    /// The claim was carried out before the token moved, and its answer comes late: what it knows is old by then.
    @Test func aTokenThatIsTakenWhileTheClaimsAnswerIsLateIsNotPushed() async throws {
        try await Self.withRelay { stage, relay in
            relay.hold(after: "ZADD")
            try await stage.writeEvents([.message("late", to: ["former"])])
            try await until("it is claimed") {
                let counted = try await stage.redisText("ZCARD c:l:{im:former}")
                return relay.isHolding && counted == ":2"
            }
            let phone = token("former", "phone")
            try await stage.redis([
                "SET c:o:{im:\(phone)} \"1 \(StateKeys.version(2)) b 5 other6:former\"",
                "HDEL c:u:{im:former} ta5:phone", "HINCRBY c:s:{im:former} v 1",
            ])
            let movedMs = nowMs
            try await until("the answer is older than a push may rely on") { nowMs > movedMs + 1_200 }
            relay.release()
            try await stage.settle()
            let seen = try await stage.look()
            #expect(seen.outcomes(of: "late") == ["former/phone suppressed token_moved"])
            #expect(seen.accepted(phone).count == 1)
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
            let asked = try await Self.ownersAsked(stage)
            #expect(asked == users.count)
            for index in RedisCluster.masterCount..<cluster.nodes.count { try await cluster.awaitReplica(index) }
            try await cluster.failOver(to: 3)
            // Each message may be the one by which the worker hears of it.
            var round = 1
            try await until("the worker has heard of it") {
                round += 1
                try await stage.play(events: users.map { .message("\($0)-\(round)", to: [$0]) })
                return try await Self.ownersAsked(stage) >= asked + users.count
            }
        }
    }
}
