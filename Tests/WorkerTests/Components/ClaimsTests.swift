// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis
import Testing

@testable import Worker

/// Claims alone: a decided recipient in; commands, and claimed, unsettled or failed recipients out.
struct ClaimsTests {
    private static func with(_ body: (ScriptedShard, Claims) throws -> Void) throws {
        try ScriptedShard.with { world in
            let claims = Claims(world.shard, world.work)
            world.component = claims
            try body(world, claims)
        }
    }

    /// A recipient that is decided for these devices, with its claim sent.
    private static func claim(
        _ world: ScriptedShard, _ claims: Claims, devices: String..., areOwnersKnown: Bool = true, plainly: Bool = true
    ) throws -> RecipientJob {
        let job = try world.recipient()
        world.decide(job, pushingTo: "phone")
        job.candidate?.areOwnersKnown = areOwnersKnown
        job.candidate?.plainPast = plainly ? 0 : nil
        try world.turn {
            claims.claim(job)
            claims.sendGathered()
        }
        return job
    }

    private static let plain = ["ZADD c:l:{im:u}", "ZCARD c:l:{im:u}", "HMGET c:s:{im:u}"]

    /// The second read: version, base, read mark, age of the ledger, revokes.
    private static func look(version: Int = 1) -> ScriptedRedis.Answer {
        .array([.string("\(version)"), .null, .null, .null, .null])
    }

    @Test func anOrdinaryMessageIsClaimedByThreePlainCommands() throws {
        try Self.with { world, claims in
            let job = try Self.claim(world, claims)
            #expect(world.redis.commands == Self.plain)
            world.answer(.integer(1), .integer(3), Self.look())
            #expect(claims.claimed.taken().count == 1)
            #expect(job.candidate?.claim?.badge == 3 && job.candidate?.claim?.state == .fresh)
        }
    }

    @Test func unknownOwnersAreAskedWithTheClaim() throws {
        try Self.with { world, claims in
            let job = try Self.claim(world, claims, areOwnersKnown: false)
            #expect(world.redis.commands == Self.plain + ["GET c:o:{im:\(String(repeating: "a0", count: 32))}"])
            world.answer(.integer(1), .integer(1), Self.look(), ScriptedShard.owner("somebody"))
            #expect(claims.claimed.taken().count == 1 && job.candidate?.lostTokens == [0])
        }
    }

    @Test func aFactThatChangedSinceTheReadIsSettledByTheScript() throws {
        try Self.with { world, claims in
            let job = try Self.claim(world, claims)
            world.answer(.integer(1), .integer(1), Self.look(version: 2))
            #expect(claims.claimed.isEmpty && claims.unsettled.taken().count == 1)
            try world.turn { claims.settle(job) }
            #expect(world.redis.commands.first == "claim c:d1:{im:u}mm")
        }
    }

    @Test func aLinkThatBreaksFailsTheClaim() throws {
        try Self.with { world, claims in
            _ = try Self.claim(world, claims)
            world.redis.breakOff(world.system)
            world.pass(.seconds(1))
            #expect(claims.failed.taken().count == 1 && claims.claimed.isEmpty)
        }
    }

    @Test func aRefusedWriteLeavesAPushWithoutABadgeAndAnOwedClaim() throws {
        try Self.with { world, claims in
            let job = try Self.claim(world, claims, plainly: false)
            #expect(world.redis.commands.first == "claim c:d1:{im:u}mm")
            world.answer(.error("OOM command not allowed"))
            #expect(world.redis.commands.last == "peek c:d1:{im:u}mm")
            #expect(job.candidate?.refusal == .forNow)
            #expect(!world.shard.isBadgeExact(app: "im", uid: "u"), "the next message's number would lack it")
            #expect(world.shard.isBadgeExact(app: "im", uid: "v") == world.shard.share.isWhole)
        }
    }

    @Test func aSecondDeliveryOfAMessageWaitsForTheFirst() throws {
        try Self.with { world, claims in
            let (first, second) = (try world.recipient(), try world.recipient())
            #expect(claims.takeKey(first) == .goesOn && claims.takeKey(second) == .kept)
            #expect(claims.releaseKey(first) == [second.ref])
        }
    }
}
