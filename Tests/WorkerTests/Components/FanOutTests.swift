// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@testable import Worker

/// FanOut alone: events in; reads of members, and recipients out.
struct FanOutTests {
    private static func with(_ body: (ScriptedShard, FanOut) throws -> Void) throws {
        try ScriptedShard.with { world in
            let planner = Planner(world.shard, outbox: world.parts.outbox, topic: world.parts.topics.chunks)
            let fanOut = FanOut(world.shard, world.work, planner: planner)
            world.component = fanOut
            try body(world, fanOut)
        }
    }

    private static let room = FanOut.Room(isAPNsFree: true, recipients: 100, ofChunks: 0)

    private static func begin(_ event: EventJob, _ fanOut: FanOut, _ world: ScriptedShard) throws {
        try world.turn {
            fanOut.begin(event)
            fanOut.start(room)
        }
    }

    @Test func namedRecipientsBeginInTheirOrderWithoutARead() throws {
        try Self.with { world, fanOut in
            try Self.begin(try world.message(to: ["v", "u", "v", "sender"]), fanOut, world)
            #expect(
                world.redis.commands == ["HSETNX c:e:{im:m}", "EXPIRE c:e:{im:m}"],
                "it notes its try, and reads nothing")
            #expect(fanOut.candidates.taken().map(\.uid) == ["v", "u"])
            #expect(fanOut.fullyStarted.taken().count == 1)
        }
    }

    @Test func membersOfAGroupBeginPageByPage() throws {
        try Self.with { world, fanOut in
            try Self.begin(try world.message(to: nil), fanOut, world)
            #expect(world.redis.commands.last == "HSCAN g:{im:c}")
            while world.redis.open.count > 1 { world.answer(.status) }
            world.answer(.array([.string("0"), .strings("u", "", "sender", "", "v", "")]))
            try world.turn { fanOut.start(Self.room) }
            #expect(fanOut.candidates.taken().map(\.uid) == ["u", "v"])
            #expect(fanOut.fullyStarted.taken().count == 1)
        }
    }

    @Test func chunksThatWaitForTheirLanesShareAreALimit() throws {
        try Self.with { world, fanOut in
            let member = MemberPage.Member(uid: "m1", level: .unset)
            try Self.begin(try world.message(to: nil, members: [member]), fanOut, world)
            #expect(!fanOut.isBoundByLane, "no other message comes")
            try Self.begin(try world.message(to: ["u"]), fanOut, world)
            #expect(fanOut.isBoundByLane)
        }
    }

    @Test func aGroupWhoseMembersCanNeverBeReadHasOneRecordForNobody() throws {
        try Self.with { world, fanOut in
            try Self.begin(try world.message(to: nil), fanOut, world)
            while world.redis.open.count > 1 { world.answer(.status) }
            world.answer(.error("WRONGTYPE a string"))
            #expect(fanOut.candidates.taken().map(\.uid) == [""])
        }
    }

    @Test func anExpiredGroupEventThatNobodyTriedHasOneRecordForNobody() throws {
        try Self.with { world, fanOut in
            try Self.begin(try world.message(to: nil, isExpired: true), fanOut, world)
            #expect(world.redis.commands == ["HGET c:e:{im:m}"], "it notes no try and reads no members")
            world.answer(.null)
            try world.turn { fanOut.start(Self.room) }
            #expect(fanOut.candidates.taken().map(\.uid) == [""])
            #expect(fanOut.fullyStarted.taken().count == 1)
        }
    }

    @Test func theMembersOfAnExpiredEventThatAnEarlierTryReadAreRead() throws {
        try Self.with { world, fanOut in
            try Self.begin(try world.message(to: nil, isExpired: true), fanOut, world)
            world.answer(.string("7"))
            #expect(world.redis.commands == ["GET c:d0:{im:}mm"], "the record for nobody may have been begun")
            world.answer(.null)
            try world.turn { fanOut.start(Self.room) }
            #expect(world.redis.commands.last == "HSCAN g:{im:c}")
            while world.redis.open.count > 1 { world.answer(.status) }
            world.answer(.array([.string("0"), .strings("u", "", "v", "")]))
            try world.turn { fanOut.start(Self.room) }
            #expect(fanOut.candidates.taken().map(\.uid) == ["u", "v"])
        }
    }

    @Test func anExpiredEventWhoseRecordForNobodyWasBegunEndsWithIt() throws {
        try Self.with { world, fanOut in
            try Self.begin(try world.message(to: nil, isExpired: true), fanOut, world)
            world.answer(.string("r"))
            world.answer(.string("f"))
            #expect(fanOut.candidates.taken().map(\.uid) == [""])
        }
    }

    @Test func theQuestionForEarlierTriesIsAskedAgain() throws {
        try Self.with { world, fanOut in
            let event = try world.message(to: nil, isExpired: true)
            try Self.begin(event, fanOut, world)
            world.answer(.error("LOADING it starts"))
            #expect(event.fanOutPhase == .readingTries && event.failures == 1)
            world.pass(.seconds(1))
            try world.turn { fanOut.retryRead(event.ref) }
            #expect(world.redis.commands == ["HGET c:e:{im:m}"])
        }
    }

    /// A message of its conversation may be parked, also the one that it revokes.
    @Test func aGroupsRevokeWaitsBehindAParkedEventOfItsConversation() throws {
        try Self.with { world, fanOut in
            world.shard.add(app: "other", isShared: true)
            let event = try world.message("r", to: nil, revoking: "m")
            try Self.begin(event, fanOut, world)
            while world.redis.open.count > 1 { world.answer(.status) }
            world.answer(.string("collapse"))
            #expect(world.redis.commands.last == "GET c:y:{im:c}")
            world.answer(.string("2 \(world.shard.nowMs + 1_000) \(world.shard.nowMs) \(world.shard.nowMs + 9_000) mm"))
            #expect(fanOut.behind.taken().map(\.0.msgID) == ["r"])
        }
    }

    /// A recipient may have the same place in its table, and would take the refusal for one of its own mark.
    @Test func aRefusedNoteOfAnEventIsNobodysMark() throws {
        try Self.with { world, fanOut in
            try Self.begin(try world.message(to: nil), fanOut, world)
            world.answer(.error("OOM command not allowed"))
            #expect(world.refused == [Tag(.none, .note)])
        }
    }

    @Test func aReadWithoutAnAnswerIsTriedAgain() throws {
        try Self.with { world, fanOut in
            let event = try world.message(to: nil)
            try Self.begin(event, fanOut, world)
            while world.redis.open.count > 1 { world.answer(.status) }
            world.answer(.error("LOADING it starts"))
            #expect(event.fanOutPhase == .readingPage && event.failures == 1)
            world.pass(.seconds(1))
            try world.turn { fanOut.retryRead(event.ref) }
            #expect(
                world.redis.commands == ["HSETNX c:e:{im:m}", "EXPIRE c:e:{im:m}", "HSCAN g:{im:c}"],
                "the note of its try may be lost too")
        }
    }
}
