// SPDX-License-Identifier: Apache-2.0
import EventLoop
import HTTP2
import Support
import Testing

@testable import APNs

/// Pushes that waited in the client are shown to their owner before they leave, and taken back when it wants them.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ClientCheckTests {
    /// One second: what goes at once on a loaded machine is younger, and what a test lets wait is older.
    private static func limits(afterMs: UInt64 = 1000) -> APNsLimits {
        var limits = World.quick
        limits.checkAfterNanos = afterMs * 1_000_000
        return limits
    }

    /// A peer that is away until `loop.run { try world.peer.listenAgain() }`; what was sent is old when it comes back.
    private static func age(_ loop: TestLoop, _ world: World) async throws {
        let aged = Facts<Bool>()
        await loop.run { test in
            let timer = LoopTimer(loop: test.loop) { aged.record(true) }
            timer.arm(afterNanos: world.client.limits.checkAfterNanos)
            test.keep(timer)
        }
        _ = try await aged.next()
    }

    @Test func pushThatGoesAtOnceIsNotChecked() async throws {
        try await withWorld(limits: Self.limits(afterMs: 60_000)) { loop, world in
            await loop.run { _ in
                world.onCheck = { tag, _ in Issue.record("\(tag) was checked") }
                var refused = false
                world.peer.onRequest = { request, connection in
                    // Refused once: sent again at once, which needs no check either.
                    if refused { return connection.answer(request.stream, 200) }
                    refused = true
                    connection.reset(request.stream, .refusedStream)
                }
                world.send(1...20)
            }
            try await world.allDone()
            await loop.run { _ in #expect(world.acceptedCount == 20) }
        }
    }

    /// Nobody is asked without a connection; then each is, and goes under its id with what its owner gave.
    @Test func agedPushesAreCheckedOnceThereIsAConnection() async throws {
        try await withWorld(limits: Self.limits(afterMs: 300)) { loop, world in
            await loop.run { _ in
                world.peer.stopListening()
                world.onCheck = { tag, _ in Issue.record("\(tag) was checked without a connection") }
                world.send(1...6)
            }
            try await Self.age(loop, world)
            try await loop.run { _ in
                world.onCheck = { [unowned world] tag, ticket in
                    switch tag % 3 {
                    case 0: world.client.confirm(ticket)
                    case 1: world.client.renew(ticket, with: world.push(tag, payload: #"{"aps":{"badge":7}}"#))
                    default:
                        #expect(world.client.withdraw(ticket))
                        #expect(!world.client.withdraw(ticket))
                        world.expected -= 1
                    }
                }
                try world.peer.listenAgain()
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(Set(world.outcomes.keys) == [1, 3, 4, 6] && world.acceptedCount == 4)
                #expect(world.client.pushes.table.count == 0)
                for request in world.peer.requests {
                    let tag = UInt64(request.token, radix: 16) ?? 0
                    #expect(request.id == world.push(tag).id.description)
                    #expect((request.body == Array(#"{"aps":{"badge":7}}"#.utf8)) == (tag % 3 == 1), "\(tag)")
                }
            }
        }
    }

    /// Without a connection nothing of the content is kept; what its owner gives then is sent, in the order of arrival.
    @Test func aPushThatCanBeMadeAgainIsNotKeptWholeWithoutAConnection() async throws {
        try await withWorld(limits: Self.limits(afterMs: 60_000)) { loop, world in
            try await loop.run { _ in
                world.peer.stopListening()
                world.expected += 6
                for tag in 1...6 as ClosedRange<UInt64> {
                    #expect(world.client.send(world.push(tag), canRenew: tag != 4) == .taken)
                }
                world.onCheck = { [unowned world] tag, ticket in
                    #expect(tag != 4 && world.client.lacksContent(ticket))
                    if tag == 5 { return world.client.confirm(ticket) }
                    if tag == 6 {
                        world.expected -= 1
                        #expect(world.client.withdraw(ticket))
                        return
                    }
                    world.client.renew(ticket, with: world.push(tag, payload: #"{"aps":{"badge":7}}"#))
                    #expect(!world.client.lacksContent(ticket))
                }
                let slots = world.client.pushes.table.all()
                #expect(slots.count { world.client.pushes.table.lacksContent($0) } == 5)
                #expect(slots.count { world.client.pushes.table.token($0) == .none } == 5)
                #expect(slots.allSatisfy { world.client.pushes.table.payloadBytes($0) == world.push(1).payload.count })
                try world.peer.listenAgain()
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 4 && world.outcomes[5] == .unprocessed(.notSent))
                let sent = world.peer.requests.compactMap { UInt64($0.token, radix: 16) }
                #expect(sent == [1, 2, 3, 4])
                for (tag, request) in zip(sent, world.peer.requests) {
                    #expect((request.body == Array(#"{"aps":{"badge":7}}"#.utf8)) == (tag != 4))
                }
                // A connection is there: everything is kept.
                world.onCheck = nil
                world.expected += 1
                #expect(world.client.send(world.push(9), canRenew: true) == .taken)
                #expect(world.client.pushes.table.all().allSatisfy { !world.client.pushes.table.lacksContent($0) })
            }
            try await world.allDone()
        }
    }

    /// No more are set aside than streams are free; those put back go in their old order, ahead of what came later.
    @Test func asManyAreCheckedAsCouldLeaveAndTheirOrderStays() async throws {
        var limits = Self.limits(afterMs: 300)
        limits.streamsPerConnectionMax = 4
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                world.peer.stopListening()
                world.send(1...20)
            }
            try await Self.age(loop, world)
            try await loop.run { test in
                let loop = test.loop
                world.onCheck = { [unowned world] tag, ticket in
                    #expect(world.client.pushes.table.checkingCount <= 4)
                    if world.tickets.isEmpty {
                        // Answered after the turn, the last first.
                        loop.post { [unowned world] in
                            for (_, ticket) in world.takeTickets().reversed() { world.client.confirm(ticket) }
                        }
                    }
                    world.tickets.append((tag, ticket))
                    // What is sent now needs no check, and may find a free stream.
                    if tag == 1, world.expected == 20 { world.send(21...22) }
                }
                try world.peer.listenAgain()
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 22 && world.doubles == 0)
                let order = world.peer.requests.compactMap { UInt64($0.token, radix: 16) }.filter { $0 <= 20 }
                #expect(order == Array(1...20), "\(order)")
            }
        }
    }

    /// A try that was lost counts on, whatever the owner does to the push: the id is the same one.
    @Test func renewedPushKeepsWhatWasTriedForIt() async throws {
        var limits = Self.limits(afterMs: 50)
        limits.unknownTries = 1
        try await withWorld(limits: limits) { loop, world in
            let seen = Facts<Int>()
            await loop.run { _ in
                world.onCheck = { [unowned world] tag, ticket in
                    world.client.renew(ticket, with: world.push(tag, payload: #"{"aps":{"badge":7}}"#))
                }
                world.peer.onRequest = { [unowned world] _, _ in seen.record(world.peer.requests.count) }
                world.send(1...1)
            }
            for count in 1...2 {
                _ = try await seen.first { $0 == count }
                try await Self.age(loop, world)
                await loop.run { _ in world.peer.connections.last?.cut() }
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.outcomes[1] == .unknown(.connectionLost, apnsID: world.push(1).id))
                #expect(world.attempts[1] == 2)
                // The first one too, where it waited so long for its connection that it was looked at before.
                let sizes = world.peer.requests.map(\.body.count)
                #expect(sizes == [25, 19] || sizes == [19, 19], "\(sizes)")
            }
        }
    }

    @Test func pausedCredentialHasNobodyChecked() async throws {
        try await withWorld(limits: Self.limits(afterMs: 50)) { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { request, connection in
                    connection.answer(request.stream, 403, #"{"reason":"InvalidProviderToken"}"#)
                }
                world.send(1...1)
            }
            _ = try await world.told.first { if case .event(.credentialPaused) = $0 { true } else { false } }
            await loop.run { _ in
                world.onCheck = { tag, _ in Issue.record("\(tag) was checked") }
                world.send(2...9)
            }
            try await Self.age(loop, world)
            await loop.run { _ in
                world.client.pump()
                #expect(world.client.queued == 9 && world.client.pushes.table.checkingCount == 0)
            }
        }
    }

    @Test func closeEndsWhatIsBeingCheckedAndItsTicketsAreStale() async throws {
        try await withWorld(limits: Self.limits(afterMs: 50)) { loop, world in
            let asked = Facts<UInt64>()
            await loop.run { _ in
                world.peer.stopListening()
                world.send(1...1)
            }
            try await Self.age(loop, world)
            try await loop.run { _ in
                world.onCheck = { [unowned world] tag, ticket in
                    world.tickets.append((tag, ticket))
                    asked.record(tag)
                }
                try world.peer.listenAgain()
            }
            _ = try await asked.next()
            await loop.run { _ in
                #expect(world.client.queued == 1 && world.client.waiting == 1)
                world.client.close()
                #expect(world.outcomes[1] == .unprocessed(.closed))
                for (_, ticket) in world.tickets {
                    #expect(!world.client.withdraw(ticket))
                    world.client.confirm(ticket)
                    world.client.renew(ticket, with: world.push(2))
                }
                #expect(world.outcomes.count == 1 && world.doubles == 0)
            }
        }
    }

    /// An owner that gives up a part of its pushes gets back what is on no stream; the rest ends as always.
    @Test func unsentPushesAreTakenBackAndThoseOnAStreamEnd() async throws {
        var limits = Self.limits(afterMs: 60_000)
        limits.streamsPerConnectionMax = 2
        try await withWorld(limits: limits) { loop, world in
            let full = Facts<Int>()
            await loop.run { _ in
                // The first is lost once and may have arrived; then two streams are held, and all others wait.
                world.peer.onRequest = { [unowned world] request, connection in
                    let count = world.peer.requests.count
                    if count == 1 { return connection.cut() }
                    if count == 2 {
                        world.atEnd = { connection.answer(request.stream, 200) }
                        full.record(count)
                    }
                }
                world.send(1...1)
            }
            _ = try await full.next()
            await loop.run { _ in
                world.send(2...10)
                let withdrawn = world.client.withdrawUnsent { $0 % 2 == 0 }
                #expect(withdrawn.map(\.tag).sorted() == [2, 4, 6, 8, 10])
                #expect(withdrawn.allSatisfy { !$0.mayHaveArrived })
                #expect(world.client.withdrawUnsent { $0 == 1 }.isEmpty)
                world.expected = 5
                world.peer.onRequest = { request, connection in connection.answer(request.stream, 200) }
                world.atEnd?()
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(Set(world.outcomes.keys) == [1, 3, 5, 7, 9] && world.acceptedCount == 5)
                #expect(!world.peer.requests.contains { (UInt64($0.token, radix: 16) ?? 0) % 2 == 0 })
            }
        }
    }

    @Test func pushThatMayHaveArrivedIsTakenBackAsSuch() async throws {
        try await withWorld(limits: Self.limits(afterMs: 60_000)) { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { [unowned world] _, connection in
                    world.peer.stopListening()
                    connection.cut()
                }
                world.send(1...1)
            }
            _ = try await world.told.first { if case .event(.unusable) = $0 { true } else { false } }
            await loop.run { _ in
                world.send(2...2)
                let withdrawn = world.client.withdrawUnsent { _ in true }.sorted { $0.tag < $1.tag }
                #expect(withdrawn.map(\.tag) == [1, 2] && withdrawn.map(\.mayHaveArrived) == [true, false])
                #expect(world.client.pushes.table.count == 0 && world.outcomes.isEmpty)
            }
        }
    }
}

/// Whatever the peer and the owner answer, and in whatever order: each push ends exactly once, or is taken back.
@Suite(.serialized, .timeLimit(.minutes(5))) struct RandomCheckTests {
    @Test(arguments: [1, 2, 3, .random(in: 4 ... .max)] as [UInt64])
    func everyPushEndsOnceOrIsTakenBackOnce(seed: UInt64) async throws {
        print("client checks with seed \(seed)")
        var limits = World.quick
        limits.checkAfterNanos = 1_000_000
        limits.streamsPerConnectionMax = 8
        limits.connectionsMax = 2
        limits.unknownTries = 3
        limits.breakerAnswers = 4
        limits.breakerBackoff = Backoff(baseNanos: 5_000_000, capNanos: 5_000_000)
        let count: UInt64 = 400
        try await withWorld(limits: limits) { loop, world in
            let owner = await loop.run { test in
                let owner = RandomOwner(world, seed: seed)
                test.keep(owner)
                owner.begin(test.loop, count: count)
                return owner
            }
            _ = try await owner.done.next()
            await loop.run { _ in
                #expect(world.doubles == 0, "seed \(seed)")
                #expect(owner.withdrawn.isDisjoint(with: world.outcomes.keys), "seed \(seed)")
                #expect(owner.withdrawn.union(world.outcomes.keys) == Set(1...count), "seed \(seed)")
                #expect(owner.checks > 0 && world.acceptedCount > 0, "seed \(seed)")
                let pushes = world.client.pushes
                #expect(pushes.table.count == 0 && pushes.table.checkingCount == 0, "seed \(seed)")
                for (_, tries) in Dictionary(grouping: world.peer.requests, by: \.body) {
                    #expect(Set(tries.map(\.id)).count == 1, "seed \(seed): one id for each push")
                }
            }
        }
    }
}

/// Answers checks after a while in any order, takes pushes back now and then, and lets the peer do the same with requests.
private final class RandomOwner: @unchecked Sendable {
    let done = Facts<Bool>()
    private(set) var withdrawn: Set<UInt64> = []
    private(set) var checks = 0
    private let world: World
    private var random: SmallRandom
    private var timer: LoopTimer?
    private var open: [(PeerRequest, PeerConnection)] = []
    private var left: [UInt64] = []
    private var count = 0
    private var turns = 0

    init(_ world: World, seed: UInt64) {
        self.world = world
        random = SmallRandom(seed: seed)
    }

    func begin(_ loop: Loop, count: UInt64) {
        self.count = Int(count)
        left = Array((1...count).reversed())
        world.expected = .max
        world.onCheck = { [unowned self] tag, ticket in
            checks += 1
            world.tickets.append((tag, ticket))
        }
        world.peer.onRequest = { [unowned self] request, connection in open.append((request, connection)) }
        timer = LoopTimer(loop: loop) { [unowned self] in turn() }
        timer?.arm(afterNanos: 1)
    }

    private func chance(_ part: UInt64) -> Bool { random.next(in: 1...part) == 1 }

    private func turn() {
        turns += 1
        // Nothing goes wrong any more after a while, so that all come to their end.
        let isCalm = turns > 1500
        for _ in 0..<4 { if let tag = left.popLast() { send(tag) } }
        for (tag, ticket) in world.takeTickets().shuffled(using: &random) {
            if !isCalm, chance(3) { world.tickets.append((tag, ticket)) } else { answer(tag, ticket) }
        }
        let requests = open.shuffled(using: &random)
        open = []
        for (request, connection) in requests {
            if !isCalm, chance(3) { open.append((request, connection)) } else { judge(request, connection, isCalm) }
        }
        if !isCalm, chance(60) {
            let part = random.next(in: 0...19)
            withdrawn.formUnion(world.client.withdrawUnsent { $0 % 20 == part }.map(\.tag))
        }
        if withdrawn.count + world.outcomes.count >= count, left.isEmpty {
            done.record(true)
        } else {
            timer?.arm(afterNanos: 1_000_000)
        }
    }

    private func push(_ tag: UInt64, _ text: String) -> Push {
        // Few devices, so that pushes meet at those that back off.
        let expiresAtMs = tag % 50 == 0 ? Loop.wallMs() + 200 : .max
        let lane = PushLane.allCases[Int(tag % 5)]
        return world.push(
            tag, payload: "{\"\(tag)\":\"\(text)\"}", expiresAtMs: expiresAtMs, token: world.push(tag % 97 + 1).token,
            isSuspect: tag % 7 == 0, lane: lane)
    }

    private func send(_ tag: UInt64) {
        let admission = world.client.send(push(tag, "a"))
        if admission != .taken, admission != .held { withdrawn.insert(tag) }
    }

    private func answer(_ tag: UInt64, _ ticket: PushTicket) {
        switch random.next(in: 0...9) {
        case 0: if world.client.withdraw(ticket) { withdrawn.insert(tag) }
        case 1...4: world.client.renew(ticket, with: push(tag, "a"))
        default: world.client.confirm(ticket)
        }
    }

    private func judge(_ request: PeerRequest, _ connection: PeerConnection, _ isCalm: Bool) {
        switch isCalm ? 9 : random.next(in: 0...30) {
        case 0: connection.cut()
        case 1: connection.reset(request.stream, .refusedStream)
        case 2: connection.goAway(last: 0)
        case 3...5: connection.answer(request.stream, 429, #"{"reason":"TooManyRequests"}"#)
        case 6, 7: connection.answer(request.stream, 503, #"{"reason":"ServiceUnavailable"}"#)
        case 8: connection.answer(request.stream, 410, #"{"reason":"Unregistered","timestamp":5}"#)
        default: connection.answer(request.stream, 200)
        }
    }
}
