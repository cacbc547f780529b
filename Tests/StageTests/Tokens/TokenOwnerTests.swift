// SPDX-License-Identifier: Apache-2.0
import Testing
import VirtualStage

@testable import Worker

/// Whose a token is: asked for once per version of its user's tokens, and known from then on.
struct TokenOwnerTests {
    private static func ownersAsked(_ stage: Stage) throws -> Int {
        Int(try stage.metric("carillon_redis_command_seconds_count", #"op="owner""#))
    }

    /// One message at a time: two devices in one cell of `DeviceOccupancy` would check each other's push, with its owner.
    @Test func onlyTheFirstPushAfterABindAsksForOwners() throws {
        try Stage.with { stage in
            let users = (0..<8).map { "usual-\($0)" }
            try stage.play(state: users.map { .bind($0) })
            for user in users {
                let before = try Self.ownersAsked(stage)
                try stage.play(events: [.message("\(user)-m", to: [user])])
                let asked = try Self.ownersAsked(stage)
                #expect(asked > before)
                for round in 1...3 {
                    let seen = try stage.play(events: [.message("\(user)-\(round)", to: [user])])
                    #expect(seen.accepted(token(user, "phone")).count == 1 + round)
                }
                #expect(try Self.ownersAsked(stage) == asked)
                try stage.play(state: [.bind(user, "pad", version: 2)])
                try stage.play(events: [.message("\(user)-n", to: [user])])
                #expect(try Self.ownersAsked(stage) > asked)
            }
        }
    }

    /// One worker whose replies from Redis can be held up.
    private static func withRelay(_ body: (Stage, StageRedis) throws -> Void) throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        // What is held up for long on a busy machine is no reason to give the link up.
        settings.redisLines = "  timeout_ms: 30000\n"
        try Stage.with(settings) { stage in
            try stage.play(state: [.bind("former")])
            try stage.play(events: [.message("before", to: ["former"])])
            try body(stage, stage.redis)
        }
    }

    /// Read with the token, claimed without it: the previous owner gets no push on it.
    @Test func aTokenThatIsTakenBetweenReadAndClaimIsNotPushed() throws {
        try Self.withRelay { stage, relay in
            relay.hold(after: "former")
            try stage.writeEvents([.message("taken", to: ["former"])])
            try until("its user is read") { relay.isHolding && relay.heldText.contains("former") }
            // As a bind of another user takes it, who has it only after that.
            try stage.redis(["HDEL c:u:{im:former} ta5:phone", "HINCRBY c:s:{im:former} v 1"])
            relay.release()
            try stage.settle()
            let seen = try stage.look()
            #expect(seen.outcomes(of: "taken") == ["former suppressed no_token"])
            #expect(seen.accepted(token("former", "phone")).count == 1)
        }
    }

    /// The claim was carried out before the token moved, and its answer comes late: what it knows is old by then.
    @Test func aTokenThatIsTakenWhileTheClaimsAnswerIsLateIsNotPushed() throws {
        try Self.withRelay { stage, relay in
            relay.hold(after: "ZADD")
            try stage.writeEvents([.message("late", to: ["former"])])
            try until("it is claimed") {
                let counted = try stage.redisText("ZCARD c:l:{im:former}")
                return relay.isHolding && counted == ":2"
            }
            let phone = token("former", "phone")
            try stage.redis([
                "SET c:o:{im:\(phone)} \"1 \(StateKeys.version(2)) b 5 other6:former\"",
                "HDEL c:u:{im:former} ta5:phone", "HINCRBY c:s:{im:former} v 1",
            ])
            let movedMs = nowMs
            try until("the answer is older than a push may rely on") { nowMs > movedMs + 1_200 }
            relay.release()
            try stage.settle()
            let seen = try stage.look()
            #expect(seen.outcomes(of: "late") == ["former/phone suppressed token_moved"])
            #expect(seen.accepted(phone).count == 1)
        }
    }
}
