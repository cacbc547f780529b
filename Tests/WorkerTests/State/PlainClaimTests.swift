// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis
import Support
import Testing

@testable import Worker

/// Claims by plain commands, with whatever may come between them.
@Suite(.timeLimit(.minutes(10)))
struct PlainClaimTests {
    private let base = StateWorld.base

    @Test func theUsualMessageIsClaimedWithoutAScriptAndWithoutAMark() async throws {
        let world = try StateWorld()
        try await world.connect()
        for index in 1...3 as ClosedRange<Int64> {
            let reply = try await world.claimPlainly(.message("u", "m\(index)", "c", sent: base + index))
            #expect(reply == ClaimReply(state: .fresh, badge: index, adds: true))
        }
        #expect(try await world.raw("EXISTS", "c:d1:{\(StateWorld.app):u}mm1") == 0)
        #expect(try await world.badge("u") == 3)
        let life = try await world.raw("TTL", "c:l:{\(StateWorld.app):u}") ?? 0
        #expect(life > 30 * 86_400, "its life is renewed: \(life)")
        #expect(try await world.raw("HGET", "c:s:{\(StateWorld.app):u}", "e") == (base + 1000) / 691_200_000)
        await world.end()
    }

    @Test func oneThatDoesNotCountIsOnlyLookedAt() async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await world.claimPlainly(.message("u", "m", "c", sent: base))
        let reply = try await world.claimPlainly(.message("u", "n", "c", sent: base, counted: false))
        #expect(reply == ClaimReply(state: .fresh, badge: 1))
        #expect(try await world.badge("u") == 1)
        await world.end()
    }

    /// A crash left the entry behind, or another worker is at it: that is an earlier try, which counts nothing again.
    @Test func aTryThatFindsTheEntryResumes() async throws {
        let world = try StateWorld()
        try await world.connect()
        let request = ClaimRequest.message("u", "m", "c", sent: base)
        _ = try await world.claimPlainly(request)
        #expect(try await world.claimPlainly(request) == ClaimReply(state: .resume, badge: 1, adds: true))
        #expect(try await world.claim(request) == ClaimReply(state: .resume, badge: 1, adds: true))
        await world.end()
    }

    /// Forty days without a message: the ledger is gone, and what of it was part of the client's total is no correction any more.
    @Test(arguments: [true, false])
    func afterTheLedgerHasExpiredEachMessageAddsOneToTheReport(isPlain: Bool) async throws {
        let world = try StateWorld()
        try await world.connect()
        for index in 1...3 as ClosedRange<Int64> {
            _ = try await world.claimPlainly(.message("u", "m\(index)", "c", sent: base + index))
        }
        _ = try await world.change("u", .badgeReport(device: "d", value: 5, clientMs: base + 10))
        let state = "c:s:{\(StateWorld.app):u}"
        try await world.raw("DEL", "c:l:{\(StateWorld.app):u}")
        try await world.raw("HSET", state, "e", "\((base + 1000) / 691_200_000 - 5)")
        var badges: [Int64?] = []
        for index in 1...5 as ClosedRange<Int64> {
            let request = ClaimRequest.message("u", "n\(index)", "c", sent: base + 20 + index)
            badges.append(isPlain ? try await world.claimPlainly(request).badge : try await world.claim(request).badge)
        }
        #expect(badges == [6, 7, 8, 9, 10])
        #expect(try await world.badge("u") == 10)
        await world.end()
    }

    /// The entries that are left of the client's total stay a correction.
    @Test func aLedgerThatWasKeptKeepsItsCorrection() async throws {
        let world = try StateWorld()
        try await world.connect()
        for index in 1...3 as ClosedRange<Int64> {
            _ = try await world.claimPlainly(.message("u", "m\(index)", "c", sent: base + index))
        }
        _ = try await world.change("u", .badgeReport(device: "d", value: 5, clientMs: base + 10))
        try await world.raw("HSET", "c:s:{\(StateWorld.app):u}", "e", "\((base + 1000) / 691_200_000 - 5)")
        #expect(try await world.claimPlainly(.message("u", "n", "c", sent: base + 20)).badge == 6)
        await world.end()
    }

    @Test func aReadAReportOrARevokeThatComesBetweenIsSettledByTheScript() async throws {
        let world = try StateWorld()
        try await world.connect()
        let read = UserState.Change.read(conversation: "c", upTo: .init(seq: 5))
        let seen = try await world.claimPlainly(.message("a", "m", "c", sent: base, seq: 5)) { place in
            if place == .beforeAdding { try await world.change("a", read, at: 10) }
        }
        #expect(seen == ClaimReply(state: .fresh, badge: 0, isRead: true))
        #expect(try await world.badge("a") == 0)

        for place in [PlainPlace.beforeAdding, .beforeLooking] {
            let uid = "b-\(place)"
            let reported = try await world.claimPlainly(.message(uid, "m", "c", sent: base)) {
                if $0 == place {
                    try await world.change(uid, .badgeReport(device: "d", value: 4, clientMs: base + 10))
                }
            }
            #expect(reported == ClaimReply(state: .fresh, badge: 4, hasReport: true), "\(place)")
            #expect(try await world.badge(uid) == 4)
        }

        let revoked = try await world.claimPlainly(.message("r", "m", "c", sent: base)) { place in
            guard place == .beforeAdding else { return }
            _ = try await world.claim(.revoke("r", "v", "c", sent: base + 5, target: "m", badge: .decrease))
        }
        #expect(revoked.isRevoked && revoked.badge == 0)
        await world.end()
    }

    /// Another worker claims a message that the client's total includes: it is in the size or in the base that is read next.
    @Test(arguments: [PlainPlace.beforeAdding, .beforeCounting, .beforeLooking, .beforeSettling])
    func `an old message that is claimed meanwhile changes no number`(place: PlainPlace) async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await world.change("u", .badgeReport(device: "d", value: 3, clientMs: base + 10))
        let reply = try await world.claimPlainly(.message("u", "new", "c", sent: base + 20)) {
            if $0 == place { _ = try await world.claim(.message("u", "old", "other", sent: base)) }
        }
        #expect(reply.badge == 4)
        #expect(try await world.badge("u") == 4)
        await world.end()
    }

    /// The client's total is newer than the first read of the message. Nothing later takes the message from the total.
    @Test func whatComesBetweenTakesNoMessageThatWasReadBeforeTheReport() async throws {
        let world = try StateWorld()
        try await world.connect()
        for (uid, mark) in [("seq", UserState.ReadMark(seq: 5)), ("ms", UserState.ReadMark(ms: base + 5))] {
            for isRevoked in [false, true] {
                let user = "\(uid)-\(isRevoked)"
                try await world.change(user, .read(conversation: "c", upTo: mark), at: 10)
                try await world.change(user, .badgeReport(device: "d", value: 6, clientMs: base + 20))
                _ = try await world.claimPlainly(.message(user, "m", "c", sent: base + 1, seq: 3)) { place in
                    if place != .beforeLooking { return }
                    if isRevoked {
                        _ = try await world.claim(
                            .revoke(user, "v", "c", sent: base + 30, target: "m", badge: .decrease))
                    } else {
                        let all = UserState.ReadMark(seq: 9, ms: base + 15)
                        try await world.change(user, .read(conversation: "c", upTo: all), at: 30)
                    }
                }
                #expect(try await world.badge(user) == 6, "\(user)")
            }
        }
        await world.end()
    }

    /// A worker was held up between its reading and its claim; meanwhile another one had the partition.
    @Test func workEndedByAnotherWorkerIsNotPushedAgain() async throws {
        let world = try StateWorld()
        try await world.connect()
        let quiet = ClaimRequest.message("u", "m", "c", sent: base, counted: false)
        let seen = try await world.claimPlainly(quiet) { place in
            if place == .beforeAdding { try await world.finish(quiet) }
        }
        #expect(seen.state == .ended)

        let counted = ClaimRequest.message("r", "m", "c", sent: base)
        let revoked = try await world.claimPlainly(counted) { place in
            guard place == .beforeAdding else { return }
            _ = try await world.claim(counted)
            try await world.finish(counted)
            _ = try await world.claim(.revoke("r", "v", "c", sent: base + 5, target: "m", badge: .decrease))
        }
        #expect(revoked.state == .ended)
        #expect(try await world.badge("r") == 0)
        await world.end()
    }

    @Test func messagesAfterTheClientsTotalAreClaimedPlainlyAndAddToIt() async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await world.claim(.message("u", "l", "c", sent: base))
        try await world.change("u", .badgeReport(device: "d", value: 4, clientMs: base + 10))
        let reply = try await world.claimPlainly(.message("u", "m", "c", sent: base + 11))
        #expect(reply == ClaimReply(state: .fresh, badge: 5, adds: true, hasReport: true))
        #expect(try await world.raw("EXISTS", "c:d1:{\(StateWorld.app):u}mm") == 0)
        #expect(try await world.badge("u") == 5)
        await world.end()
    }

    @Test func aFullLedgerIsCutByTheScript() async throws {
        let world = try StateWorld()
        try await world.connect()
        for index in 0..<1001 as Range<Int64> {
            _ = try await world.claimPlainly(.message("u", "m\(index)", "c", sent: base + index))
        }
        #expect(try await world.badge("u") == 936)
        await world.end()
    }

    /// 60 seeds, 5 worlds each: any order, repeats, and facts that come between the commands of a claim; some workers die
    /// between them, and the message comes again.
    @Test(arguments: 1...60 as ClosedRange<UInt64>)
    func whateverComesBetweenTheBadgeIsTheSame(seed: UInt64) async throws {
        let world = try StateWorld()
        try await world.connect()
        var random = SeededGenerator(seed: seed)
        for round in 0..<5 {
            let events = BadgeLawTests.events(&random)
            let again = events.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }
            let told = (events + again).shuffled(using: &random)
            let player = PlainPlayer(world, "u\(round)", told, seed: seed &* 31 &+ UInt64(round))
            try await player.playAll()
            let log = await player.log
            #expect(
                try await world.badge("u\(round)") == NaiveBadge(events).value, "seed \(seed) round \(round) \(log)")
        }
        await world.end()
    }
}

/// Between which commands of a claim something comes.
enum PlainPlace: Sendable {
    case beforeAdding, beforeCounting, beforeLooking, beforeSettling
}

/// A worker died.
private struct Died: Error {}

/// Tells the facts of a list one after the other, and others of them between the commands of a claim.
private actor PlainPlayer {
    private let world: StateWorld
    private let uid: String
    private var left: [BadgeEvent]
    private var random: SeededGenerator
    private(set) var log: [String] = []

    init(_ world: StateWorld, _ uid: String, _ events: [BadgeEvent], seed: UInt64) {
        self.world = world
        self.uid = uid
        left = events
        random = SeededGenerator(seed: seed)
    }

    func playAll() async throws { while !left.isEmpty { try await playNext() } }

    private func playNext() async throws {
        if left.isEmpty { return }
        let event = left.removeFirst()
        guard case .message(let id, let conversation, let sent, let seq) = event,
            Int.random(in: 0..<4, using: &random) > 0
        else {
            log.append("\(event)")
            return try await BadgeLawTests.apply(event, to: uid, in: world)
        }
        log.append("\(event) plainly {")
        do {
            _ = try await world.claimPlainly(.message(uid, id, conversation, sent: sent, seq: seq)) { place in
                try await self.comeBetween(place)
            }
        } catch is Died {
            left.append(event)
        }
        log.append("}")
    }

    private func comeBetween(_ place: PlainPlace) async throws {
        if Int.random(in: 0..<8, using: &random) == 0 {
            log.append("dies \(place)")
            throw Died()
        }
        if Int.random(in: 0..<3, using: &random) == 0 {
            log.append("\(place):")
            try await playNext()
        }
    }
}

extension StateWorld {
    /// A claim as a worker makes it: read, then plain commands where nothing stands against it, else the script.
    func claimPlainly(
        _ request: ClaimRequest, between: @Sendable (PlainPlace) async throws -> Void = { _ in }
    ) async throws -> ClaimReply {
        let subject = request.subject
        let read: (version: Int64, past: Int16)? = try await ask(
            { store, tag in
                try store.readConversation(
                    app: request.app, uid: request.uid, conversation: subject.conversation, tag: tag)
            },
            { reply in
                var recipient = Recipient(uid: request.uid)
                let version = RecipientReplies.conversation(reply, into: &recipient)
                guard let past = RecipientReplies.past(reply, at: subject), !(recipient.read?.covers(subject) ?? false)
                else { return nil }
                return (version, past)
            })
        let hasMark = try await ask(
            { try $0.readMark(app: request.app, uid: request.uid, kind: subject.kind, id: subject.id, tag: $1) },
            { !$0.isNull })
        try await between(.beforeAdding)
        guard let read, !hasMark else { return try await claim(request) }
        let looksForEntry = request.withoutDevice != nil
        let box = Box(
            PlainClaim(
                isCounted: request.counted, tokenVersion: read.version, past: read.past, looksForEntry: looksForEntry))
        if request.counted {
            try await ask({ try $0.addToLedger(request, tag: $1) }, { box.claim.didAdd($0) })
        } else {
            try await ask(
                { try $0.readMarkAgain(request, inGroup: false, tag: $1) }, { box.claim.didReadMark($0) })
        }
        try await between(.beforeCounting)
        try await ask(
            { looksForEntry ? try $0.ledgerEntry(request, tag: $1) : try $0.ledgerSize(request, tag: $1) },
            { box.claim.didCount($0) })
        try await between(.beforeLooking)
        try await ask({ try $0.lookBehindClaim(request, tag: $1) }, { box.claim.didLook($0, at: subject) })
        try await between(.beforeSettling)
        guard !box.claim.mayBeExpired(nowMs: request.nowMs), let reply = box.claim.reply else {
            var request = request
            request.wasAdded = box.claim.isAdded
            return try await claim(request)
        }
        let renewal = box.claim.renewal(nowMs: request.nowMs)
        if renewal.life {
            // One reply or two, both to the tag.
            try await ask({ try $0.renewLedger(request, epoch: nil, hadToken: true, tag: $1) }, { _ in })
        }
        if let epoch = renewal.epoch { try await raw("HSET", "c:s:{\(request.app):\(request.uid)}", "e", "\(epoch)") }
        return reply
    }

    private final class Box: @unchecked Sendable {
        var claim: PlainClaim
        init(_ claim: PlainClaim) { self.claim = claim }
    }
}
