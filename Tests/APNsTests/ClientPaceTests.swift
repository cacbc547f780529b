// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Support
import Telemetry
import Testing

@testable import APNs

/// What the client does about others' pace: devices that want to be left alone, dead tokens, a server that is down.
@Suite(.serialized, .timeLimit(.minutes(10))) struct ClientPaceTests {
    @Test func aDeviceWithTooManyUpdatesGetsEachPushAndTheNewestOfACollapseID() async throws {
        let plain = try PushHeaders(topic: "com.example.im", pushType: .alert)
        try await withWorld { loop, world in
            await loop.run { _ in
                let busy = world.push(1).token
                world.peer.onRequest = { [unowned world] request, connection in
                    let isFirst = world.peer.requests.count { $0.token == busy.hex } == 1
                    if request.token == busy.hex, isFirst {
                        connection.answer(
                            request.stream, 429, #"{"reason":"TooManyRequests"}"#, retryAfter: "1")
                        // More for the same device while it is to be left alone, and others'.
                        world.onHold = { [unowned world] _ in
                            for tag in 101...105 as ClosedRange<UInt64> {
                                world.expected += 1
                                let headers = tag < 103 ? plain : nil
                                let held = world.client.send(world.push(tag, token: busy, headers: headers))
                                #expect(held == .held)
                            }
                            world.send(201...210)
                        }
                    } else {
                        connection.answer(request.stream, 200)
                    }
                }
                world.send(1...1)
            }
            try await world.allDone()
            await loop.run { _ in
                for tag in [1, 103, 104] as [UInt64] { #expect(world.outcomes[tag] == .superseded) }
                #expect(world.acceptedCount == 13)
                let ids = world.peer.requests.filter { $0.token == world.push(1).token.hex }.map(\.id)
                #expect(ids == [1, 101, 102, 105].map { world.push($0).id.description })
                #expect(world.client.pushes.backoff.isEmpty)
            }
        }
    }

    /// A device's 429 is about that device: what all may have in flight stays as it is.
    @Test func devicesThatBackOffSlowNobodyElse() async throws {
        var limits = World.quick
        limits.inFlightStart = 64
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { request, connection in
                    // The tokens end in their tags: every fourth device is told too much, the first time.
                    let isBusy = "048c".contains(request.token.last ?? "0")
                    let isFirst = world.peer.requests.count { $0.token == request.token } == 1
                    if isBusy, isFirst {
                        connection.answer(request.stream, 429, #"{"reason":"TooManyRequests"}"#)
                    } else {
                        connection.answer(request.stream, 200)
                    }
                }
                world.send(1...400)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 400)
                #expect(world.attempts.values.count { $0 == 2 } == 100)
                #expect(world.client.pushes.limiter.limit >= 64)
                #expect(world.client.attempts.breaker.state == .closed)
            }
        }
    }

    /// A giant group in front of a slow server: what is for one person is not behind it.
    @Test func slowServerServesTheDirectLaneInItsShare() async throws {
        var limits = World.quick
        limits.inFlightMax = 20
        limits.inFlightStart = 20
        try await withWorld(limits: limits) { loop, world in
            let order = Facts<UInt64>()
            await loop.run { _ in
                var open: [(Int32, PeerConnection)] = []
                var answered = 0
                world.peer.onRequest = { request, connection in
                    // Answers go out ten at a time, so that the client is always at its limit.
                    open.append((request.stream, connection))
                    guard answered == 0 || open.count >= 10 || answered + open.count >= 1020 else { return }
                    for (stream, connection) in open { connection.answer(stream, 200) }
                    answered += open.count
                    open = []
                }
                world.onOutcome = { tag, _ in order.record(tag) }
                world.expected += 1020
                for tag in 1...1000 as ClosedRange<UInt64> {
                    #expect(world.client.send(world.push(tag, lane: .bulk)) == .taken)
                }
                for tag in 2001...2020 as ClosedRange<UInt64> { #expect(world.client.send(world.push(tag)) == .taken) }
            }
            try await world.allDone()
            let ended = order.all
            let last = try #require(ended.lastIndex { $0 > 2000 })
            // Its share is 45 of 100 among all lanes and 3 in 4 beside the giant groups; behind them it would end last.
            #expect(last < 200, "the last direct push ended as number \(last)")
        }
    }

    /// Its burst of connects would be over after four, and the next one allowed in an hour.
    @Test func serverThatEndsEveryConnectionInOrderIsFollowed() async throws {
        var limits = World.quick
        limits.connectBurst = 4
        limits.connectRefillNanos = 3_600_000_000_000
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                var served: [Int: Int] = [:]
                world.peer.onRequest = { request, connection in
                    served[connection.index, default: 0] += 1
                    if served[connection.index] == 150 { connection.goAway(last: request.stream) }
                    connection.answer(request.stream, 200)
                }
                world.send(1...3000)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 3000 && world.doubles == 0)
                #expect(world.peer.connections.count >= 20)
            }
        }
    }

    @Test func suspectsTravelOnAConnectionOfTheirOwn() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { request, connection in
                    if request.token.hasSuffix("dd") {
                        connection.answer(request.stream, 400, #"{"reason":"BadDeviceToken"}"#)
                        // What APNs does to a connection with dead tokens.
                        connection.settings(maxStreams: 1)
                    } else {
                        connection.answer(request.stream, 200)
                    }
                }
                world.expected += 10
                for index in 0..<10 as Range<UInt64> {
                    let push = world.push(index << 8 | 0xDD, isSuspect: true)
                    #expect(world.client.send(push) == .taken)
                }
                world.send(0x1000...0x1040)
            }
            try await world.allDone()
            await loop.run { _ in
                let dead = Set(world.peer.requests.filter { $0.token.hasSuffix("dd") }.map(\.connection))
                let good = Set(world.peer.requests.filter { !$0.token.hasSuffix("dd") }.map(\.connection))
                #expect(dead.count == 1 && good.count >= 1 && dead.isDisjoint(with: good))
            }
        }
    }

    @Test func acceptedSuspectTravelsWithTheOthers() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                world.expected += 1
                #expect(world.client.send(world.push(7, isSuspect: true)) == .taken)
            }
            try await world.allDone()
            await loop.run { _ in
                let token = world.push(7).token
                #expect(world.client.pushes.route(of: world.push(8, token: token, isSuspect: true)) == .main)
                #expect(world.client.pushes.route(of: world.push(9, isSuspect: true)) == .suspect)
                // What APNs refuses later is suspect again, whatever it was before.
                world.client.pushes.noteRefused(token)
                #expect(world.client.pushes.route(of: world.push(8, token: token, isSuspect: true)) == .suspect)
            }
        }
    }

    /// A client whose suspects' connection is stuck: the first of them gets no answer, and more come meanwhile.
    private func withStuckSuspects(
        _ limits: APNsLimits, _ meanwhile: @escaping @Sendable (World) -> Void,
        _ body: (TestLoop, World) async throws -> Void
    ) async throws {
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { [unowned world] request, connection in
                    let isDead = request.token.hasSuffix("dd")
                    if isDead, world.peer.requests.count(where: { $0.token.hasSuffix("dd") }) == 1 {
                        return meanwhile(world)
                    }
                    connection.answer(
                        request.stream, isDead ? 400 : 200, isDead ? #"{"reason":"BadDeviceToken"}"# : "")
                }
                #expect(world.client.send(world.push(0xDD, isSuspect: true)) == .taken)
            }
            try await body(loop, world)
        }
    }

    @Test func suspectsThatAreStuckHoldUpNobody() async throws {
        var limits = World.quick
        limits.suspectsWaitingMax = 4
        limits.ordinaryPerSuspect = 8
        @Sendable func sendMore(_ world: World) {
            for index in 1...12 as ClosedRange<UInt64> {
                #expect(world.client.send(world.push(index << 8 | 0xDD, isSuspect: true)) == .taken)
            }
            world.send(0x10000...0x10063)
            // Eight of the suspects go with them; one is under way, and four wait for it.
            world.expected += 8
        }
        try await withStuckSuspects(limits, sendMore) { loop, world in
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 100)
                #expect(world.client.inFlight == 1)
                #expect(world.client.queued == 4 && world.client.waiting == 0)
                let stuck = world.peer.requests.first { $0.token.hasSuffix("dd") }?.connection
                let main = world.peer.requests.filter { $0.connection != stuck }
                let places = main.indices.filter { main[$0].token.hasSuffix("dd") }
                #expect(places.count == 8)
                for (place, next) in zip(places, places.dropFirst()) { #expect(next - place > 8, "\(places)") }
            }
        }
    }

    @Test func aClientFullOfSuspectsTakesOthersAndReportsRoom() async throws {
        var limits = World.quick
        limits.pushesMax = 40
        limits.inFlightMax = 40
        limits.inFlightStart = 40
        limits.suspectsWaitingMax = 2
        @Sendable func sendMore(_ world: World) {
            for index in 1...10 as ClosedRange<UInt64> {
                #expect(world.client.send(world.push(index << 8 | 0xDD, isSuspect: true)) == .taken)
            }
            #expect(world.client.send(world.push(0xFFDD, isSuspect: true)) == .full)
            // One after the other; at the world's end they end otherwise.
            world.onOutcome = { [unowned world] tag, outcome in
                guard case .accepted = outcome, tag >= 0x10000, tag < 0x10063 else { return }
                world.send((tag + 1)...(tag + 1))
            }
            world.send(0x10000...0x10000)
        }
        try await withStuckSuspects(limits, sendMore) { loop, world in
            _ = try await world.told.first { $0 == .event(.hasRoom) }
            await loop.run { _ in
                #expect(world.client.pushes.table.suspectCount <= 7)
                #expect(world.client.send(world.push(0xFFDD, isSuspect: true)) == .taken)
            }
        }
    }

    @Test func refusedTokenIsSuspectTheNextTime() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { request, connection in
                    let isDead = request.token.hasSuffix("dd")
                    connection.answer(
                        request.stream, isDead ? 410 : 200, isDead ? #"{"reason":"Unregistered","timestamp":5}"# : "")
                }
                world.send(0xDD...0xDD)
                world.send(0x1000...0x1003)
            }
            try await world.allDone()
            await loop.run { _ in
                world.expected += 1
                #expect(world.client.pushes.route(of: world.push(0xDD)) == .suspect)
                #expect(world.client.pushes.route(of: world.push(0x1000)) == .main)
                #expect(world.client.send(world.push(0x99, token: world.push(0xDD).token)) == .taken)
            }
            _ = try await world.told.first { if case .outcome(0x99, _, _) = $0 { true } else { false } }
            await loop.run { _ in
                let connections = world.peer.requests.filter { $0.token.hasSuffix("dd") }.map(\.connection)
                #expect(connections.count == 2 && connections[0] != connections[1])
            }
        }
    }

    @Test func unavailableServerIsAskedByOneAndLosesNothing() async throws {
        var limits = World.quick
        limits.breakerAnswers = 5
        limits.breakerBackoff = Backoff(baseNanos: 60_000_000, capNanos: 60_000_000)
        limits.streamsPerConnectionMax = 5
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { [unowned world] request, connection in
                    if world.peer.requests.count == 1 || world.isHealed {
                        connection.answer(request.stream, 200)
                    } else {
                        connection.answer(request.stream, 503, #"{"reason":"ServiceUnavailable"}"#)
                    }
                    // One probe after the five that opened it is enough to see that the rest waits.
                    if world.client.attempts.breaker.isOpen { world.isHealed = true }
                }
                world.send(1...200)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 200)
                #expect(world.peer.requests.count < 230, "\(world.peer.requests.count)")
                #expect(!world.client.attempts.breaker.isOpen)
            }
        }
    }

    @Test func retriesBeyondTheBudgetWait() async throws {
        try await withWorld { loop, world in
            await loop.run { test in
                let loop = test.loop
                world.peer.onRequest = { [unowned world] request, connection in
                    // The purse is emptied until a retry was put off.
                    let fails = request.token.hasSuffix("2") && world.client.context.metrics.retriesDenied.value == 0
                    if fails { while world.client.attempts.budget.take(.direct, nowNanos: loop.nowNanos) {} }
                    connection.answer(
                        request.stream, fails ? 500 : 200, fails ? #"{"reason":"InternalServerError"}"# : "")
                }
                world.send(1...2)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 2)
                #expect(world.client.context.metrics.retriesDenied.value >= 1)
            }
        }
    }
}
