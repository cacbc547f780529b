// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@testable import Worker

/// Lookup alone: a recipient in; reads, and known or postponed recipients out.
struct LookupTests {
    private static func with(_ body: (ScriptedShard, Lookup) throws -> Void) throws {
        try ScriptedShard.with { world in
            let lookup = Lookup(world.shard, world.work)
            world.component = lookup
            try body(world, lookup)
        }
    }

    private static let reads = ["HMGET c:s:{im:u}", "HGETALL c:u:{im:u}", "HRANDFIELD p:{im:u}", "GET c:d1:{im:u}mm"]
    private static let noState = ScriptedRedis.Answer.array([.null, .null, .null, .null, .null])

    private static func read(_ job: RecipientJob, _ lookup: Lookup, _ world: ScriptedShard) throws {
        try world.turn {
            lookup.read(job)
            lookup.sendGathered()
        }
    }

    @Test func aRecipientIsReadInOneStep() throws {
        try Self.with { world, lookup in
            let job = try world.recipient()
            try Self.read(job, lookup, world)
            #expect(world.redis.commands == Self.reads)
            world.answer(Self.noState, .empty, .empty)
            #expect(lookup.known.isEmpty, "its mark is not read")
            world.answer(.null)
            #expect(lookup.known.taken().map(\.uid) == ["u"])
            #expect(job.candidate?.plainPast == 0)
        }
    }

    @Test func aFinishedMarkSaysThatItEndedBefore() throws {
        try Self.with { world, lookup in
            let job = try world.recipient()
            try Self.read(job, lookup, world)
            world.answer(Self.noState, .empty, .empty, .string("f"))
            #expect(lookup.known.taken().count == 1)
            #expect(job.candidate?.earlierTry == .ended && job.candidate?.plainPast == nil)
        }
    }

    @Test func aLiveConnectionNeedsTheLeaseOfItsGatewayOnce() throws {
        try Self.with { world, lookup in
            let presence = ScriptedRedis.Answer.strings(
                "web", "fg,web,g1,1,1,1,-,-,-")
            for uid in ["u", "v"] { try Self.read(try world.recipient(uid), lookup, world) }
            for _ in 0..<2 { world.answer(Self.noState, .empty, presence, .null) }
            #expect(world.redis.commands == ["GET gw:{g1}"], "both wait for one answer")
            world.answer(.integer(1))
            #expect(lookup.known.taken().map(\.uid) == ["u", "v"])
        }
    }

    @Test(arguments: [
        ("WRONGTYPE presence", 2, true), ("WRONGTYPE user", 1, true), ("LOADING it starts", 1, false),
    ])
    func aReadThatCanNeverBeAnsweredCountsAsAbsentAndAnyOtherIsRetried(
        text: String, place: Int, isKnown: Bool
    ) throws {
        try Self.with { world, lookup in
            let job = try world.recipient()
            try Self.read(job, lookup, world)
            var answers = [Self.noState, .empty, .empty, .null]
            answers[place] = .error(text)
            for answer in answers where !world.redis.open.isEmpty { world.answer(answer) }
            #expect(lookup.known.taken().isEmpty == !isKnown)
            #expect((job.candidate?.phase == .postponed) == !isKnown)
        }
    }

    @Test func anAnswerAfterTheEndOfARecipientChangesNothing() throws {
        try Self.with { world, lookup in
            let job = try world.recipient()
            try Self.read(job, lookup, world)
            world.work.remove(job)
            world.answer(Self.noState, .empty, .empty, .null)
            #expect(lookup.known.isEmpty)
        }
    }
}
