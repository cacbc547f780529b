// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis
import Support
import Testing

@testable import Worker

/// The heartbeat of a server: a count and places that never fall, unless the server has older data.
@Suite(.timeLimit(.minutes(10)))
struct HeartbeatTests {
    private func beat(
        _ world: StateWorld, known: Int64? = nil, least: Int64? = nil, leastOfPlaces: Int64? = nil,
        log: String = "", offsets: [Int32: Int64] = [:], ends: [Int32: Int64] = [:], noted: [Int32: Int64] = [:]
    ) async throws -> StateStore.Beat {
        var request = StateStore.BeatRequest(server: 0, known: known)
        request.leastKeys = least
        request.leastKeysOfPlaces = leastOfPlaces
        request.log = log
        request.offsets = offsets
        request.ends = ends
        request.noted = noted
        return try #require(
            try await world.ask({ try $0.beat(request, nowMs: 1, tag: $1) }, { StateStore.Beat($0) }))
    }

    private func endReplay(_ world: StateWorld, _ loss: Int64, _ partitions: [Int32], of total: Int) async throws
        -> Int64?
    {
        try await world.ask(
            { try $0.endReplay(server: 0, loss: loss, partitions: partitions, total: total, tag: $1) }, { $0.int64 })
    }

    /// As the server has it once its snapshot is restored.
    private func restore(_ world: StateWorld, count: Int, place: Int) async throws {
        try await world.raw("DEL", "c:w:{h0}", "c:w:{h0}loss")
        try await world.raw("HSET", "c:w:{h0}", "n", "\(count)", "t", "1700000000000", "p0", "\(place)")
    }

    /// Two texts of digits are neither a count of keys nor a beat.
    @Test func theTimeIsTakenForNoOtherAnswer() async throws {
        let world = try StateWorld()
        try await world.connect()
        let isOther = try await world.ask(
            { store, tag in try store.client.command(tag) { $0.arg(word: "TIME") } },
            { StateStore.keyCounts($0) == nil && StateStore.Beat($0) == nil && StateStore.timeMs($0) != nil })
        #expect(isOther)
        #expect(try await world.ask({ try $0.keyCount(tag: $1) }, { StateStore.keyCounts($0) }) == [0: 0])
        await world.end()
    }

    @Test func anAnswerOfAnotherKindIsNoAnswerToItsQuestion() {
        let kinds: [RedisReply.Kind] = [.string, .array, .integer, .null, .status]
        let fitting: [(Worker.Question, Set<RedisReply.Kind>)] = [
            (.user, [.array]), (.conversation, [.array]), (.claim, [.array]), (.mark, [.string, .null]),
            (.lease, [.string, .null]), (.keyCount, [.integer, .array]), (.claimAdd, [.integer, .string, .null]),
            (.writeMark, [.status]), (.time, [.array]), (.note, Set(kinds)),
        ]
        for (question, expected) in fitting {
            #expect(Set(kinds.filter(question.row.reply.fits)) == expected, "\(question)")
        }
    }

    @Test func `a beat names the other group while a worker of it lives, and changes nothing`() async throws {
        let world = try StateWorld()
        try await world.connect()
        func beat(_ group: String) async throws -> StateStore.Beat {
            var request = StateStore.BeatRequest(server: 0)
            request.group = group
            request.offsets = [0: 7]
            return try #require(
                try await world.ask({ try $0.beat(request, nowMs: 1, tag: $1) }, { StateStore.Beat($0) }))
        }
        #expect(try await beat("one").otherGroup == nil)
        let refused = try await beat("two")
        #expect(refused.otherGroup == "one" && refused.count == 1)
        #expect(try await beat("one").count == 2)
        // The last beat of the first group is long ago.
        try await world.raw("HSET", "c:w:{h0}", "gt", "1")
        #expect(try await beat("two").otherGroup == nil)
        #expect(try await beat("one").otherGroup == "two")
        await world.end()
    }

    @Test func theCountRisesAndTheTimeIsTheServers() async throws {
        let world = try StateWorld()
        try await world.connect()
        #expect(try await beat(world).count == 1)
        let second = try await beat(world, known: 1, offsets: [0: 10])
        #expect(second.count == 2 && second.loss == nil && second.nowMs > StateWorld.base)
        #expect(try await beat(world, known: 1).loss == nil, "another worker has beaten since")
        await world.end()
    }

    @Test func aCountThatMovedBackIsALossUntilEachPartitionIsAppliedAgain() async throws {
        let world = try StateWorld()
        try await world.connect()
        try await restore(world, count: 3, place: 70)
        let first = try await beat(world, known: 9, offsets: [0: 100, 1: 40])
        let loss = try #require(first.loss)
        #expect(first.count == 10 && loss.id == 10 && loss.fromMs == StateWorld.base && loss.offsets == [0: 70])
        let other = try await beat(world, offsets: [1: 41])
        #expect(other.count == 11 && other.loss == loss, "a worker that has just started sees it")
        #expect(try await endReplay(world, 9, [0], of: 2) == 0, "of an earlier loss")
        #expect(try await endReplay(world, loss.id, [0], of: 2) == 1)
        #expect(try await beat(world).loss?.done == [0])
        #expect(try await endReplay(world, loss.id, [1], of: 2) == 1)
        #expect(try await beat(world).loss == nil)
        await world.end()
    }

    @Test func aSecondLossKeepsTheLeastPlacesAndForgetsWhatWasDone() async throws {
        let world = try StateWorld()
        try await world.connect()
        try await restore(world, count: 3, place: 70)
        let first = try #require(try await beat(world, known: 9, offsets: [0: 100]).loss)
        _ = try await endReplay(world, first.id, [0], of: 2)
        try await world.raw("HSET", "c:w:{h0}", "n", "5", "p0", "90", "p1", "8")
        let second = try #require(try await beat(world, known: 20).loss)
        // Nothing of partition 1 is applied again yet, whatever its place says: it begins at the first loss's time.
        #expect(second.id == 21 && second.offsets == [0: 70] && second.done.isEmpty)
        #expect(second.fromMs == StateWorld.base)
        await world.end()
    }

    /// A worker was paused until its partition had another owner, and beats before it knows that.
    @Test func aPlaceOnlyRisesUnlessItsPartitionBeganAgain() async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await beat(world, offsets: [0: 70])
        _ = try await beat(world, offsets: [0: 50])
        #expect(try await beat(world, offsets: [0: 71], noted: [0: 70]).loss == nil)
        var request = StateStore.BeatRequest(server: 0, offsets: [0: 4])
        request.restarted = [0]
        _ = try await world.ask({ try $0.beat(request, nowMs: 1, tag: $1) }, { StateStore.Beat($0) })
        #expect(try await beat(world, offsets: [0: 5], noted: [0: 5]).loss?.offsets == [0: 4])
        await world.end()
    }

    @Test func aPlaceBelowTheOneThatACommitNamesIsALoss() async throws {
        let world = try StateWorld()
        try await world.connect()
        try await restore(world, count: 3, place: 70)
        #expect(try await beat(world, offsets: [0: 80], noted: [0: 70]).loss == nil)
        #expect(try await beat(world, offsets: [0: 95], noted: [0: 90]).loss?.offsets == [0: 80])
        await world.end()
    }

    /// As after a move to another Kafka cluster, and after each restore of a backup from before it.
    @Test func `places of another log begin a loss of everything, whatever they are`() async throws {
        let world = try StateWorld()
        try await world.connect()
        #expect(try await beat(world, log: "east/s", offsets: [0: 900, 1: 30]).loss == nil)
        #expect(try await beat(world, log: "", offsets: [0: 901]).loss == nil, "not known yet")
        let moved = try await beat(world, log: "west/s", offsets: [0: 40], ends: [0: 41], noted: [0: 900])
        let loss = try #require(moved.loss)
        #expect(loss.isOfOtherLog && loss.offsets.isEmpty && loss.fromMs == 0)
        #expect(try await beat(world, log: "west/s", offsets: [0: 41, 1: 5]).loss == loss, "it began once")
        _ = try await endReplay(world, loss.id, [0, 1], of: 2)
        // An ordinary restore of a backup from after the move.
        try await restore(world, count: 3, place: 39)
        try await world.raw("HSET", "c:w:{h0}", "l", "west/s")
        let older = try #require(try await beat(world, known: 99, log: "west/s", offsets: [0: 50]).loss)
        #expect(!older.isOfOtherLog && older.offsets == [0: 39])
        await world.end()
    }

    /// An older version noted no log. A topic that was created again has the same name.
    @Test(arguments: ["", "west/s"])
    func `a place beyond the end of the log is of another one`(log: String) async throws {
        let world = try StateWorld()
        try await world.connect()
        try await restore(world, count: 3, place: 700)
        try await world.raw("HSET", "c:w:{h0}", "p1", "8")
        if !log.isEmpty { try await world.raw("HSET", "c:w:{h0}", "l", log) }
        #expect(try await beat(world, log: log, offsets: [0: 60, 1: 9]).loss == nil, "no end is known")
        let loss = try #require(try await beat(world, log: log, offsets: [0: 60, 1: 9], ends: [0: 64, 1: 9]).loss)
        #expect(loss.isOfOtherLog && loss.offsets == [0: 0, 1: 9])
        _ = try await endReplay(world, loss.id, [0, 1], of: 2)
        #expect(try await beat(world, log: log, offsets: [0: 61], ends: [0: 64], noted: [0: 60]).loss == nil)
        await world.end()
    }

    @Test func `a loss that begins during another one keeps the start of what is not applied again`() async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await beat(world, log: "east/s", offsets: [0: 900])
        _ = try #require(try await beat(world, log: "west/s", offsets: [0: 40, 1: 7]).loss)
        try await world.raw("HSET", "c:w:{h0}", "n", "1")
        let loss = try #require(try await beat(world, known: 9, log: "west/s", offsets: [0: 40, 1: 7]).loss)
        #expect(loss.isOfOtherLog && loss.offsets.isEmpty && loss.fromMs == 0)
        await world.end()
    }

    /// Where the keys are gone too, the second sign has its say.
    @Test(arguments: [(4, nil as Int64?, false), (4, 50, false), (60, 50, true)])
    func aMissingHeartbeatIsALossWhereTheKeysAreThere(_ keys: Int, _ least: Int64?, _ isLoss: Bool) async throws {
        let world = try StateWorld()
        try await world.connect()
        for key in 0..<keys { try await world.raw("SET", "k\(key)", "v") }
        #expect((try await beat(world, known: 9, least: least).loss?.fromMs == 0) == isLoss)
        try await world.raw("DEL", "c:w:{h0}", "c:w:{h0}loss")
        #expect((try await beat(world, leastOfPlaces: least, offsets: [0: 5], noted: [0: 5]).loss != nil) == isLoss)
        await world.end()
    }

    @Test func anAcceptedLossIsGone() async throws {
        let world = try StateWorld()
        try await world.connect()
        try await restore(world, count: 3, place: 70)
        let loss = try #require(try await beat(world, known: 9).loss)
        #expect(
            try await world.ask({ try $0.dropLoss(server: 0, loss: loss.id, tag: $1) }, { $0.int64 }) == 1)
        #expect(try await beat(world, known: 10).loss == nil)
        _ = try await world.ask({ try $0.acceptLoss(nowMs: 1, tag: $1) }, { $0.string })
        let accepted = try await world.ask({ try $0.lossAccepted(tag: $1) }, { $0.int64 })
        #expect(try #require(accepted) >= loss.noticedMs, "by the clock of the server")
        await world.end()
    }
}
