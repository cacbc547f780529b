// SPDX-License-Identifier: Apache-2.0
import EventLoop
import HTTP2
import Support
import Testing

@testable import APNs

@Suite(.serialized, .timeLimit(.minutes(10))) struct ClientTests {
    @Test func threeThousandPushesEndAcceptedOnce() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in world.send(1...3_000) }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 3_000)
                #expect(world.doubles == 0)
                #expect(world.peer.requests.count == 3_000)
                #expect(world.client.inFlight == 0 && world.client.queued == 0)
                let first = world.peer.requests[0]
                #expect(first.headers[":method"] == "POST")
                #expect(first.headers["apns-topic"] == "com.example.im")
                #expect(first.headers["apns-push-type"] == "alert")
                #expect(first.headers["apns-priority"] == "10")
                #expect(first.headers["apns-expiration"] == "4000000000")
                #expect(first.headers["apns-collapse-id"] == "c1")
                #expect(world.peer.requests.allSatisfy { $0.headers["content-length"] == String($0.body.count) })
                #expect(first.id == "11223344-5566-7788-0000-000000000001")
                #expect(first.authorization.hasPrefix("bearer "))
                #expect(Set(world.peer.requests.map(\.authorization)).count == 1)
            }
        }
    }

    @Test func oneStreamUntilTheFirstAcceptance() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                var peakBefore = 0
                world.peer.onRequest = { [unowned world] request, connection in
                    if world.outcomes.isEmpty { peakBefore = max(peakBefore, connection.open.count) }
                    #expect(!world.outcomes.isEmpty || connection.open.count == 1)
                    connection.answer(request.stream, 200)
                }
                world.send(1...200)
            }
            try await world.allDone()
            await loop.run { _ in #expect(world.acceptedCount == 200) }
        }
    }

    /// The peer answers only when as many streams are open as it allows, and moves the limit up and down.
    @Test func streamLimitIsObeyedAsItMoves() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                var limit = 5
                var left = 300
                world.peer.maxStreams = 5
                world.peer.onRequest = { request, connection in
                    #expect(connection.open.count <= limit, "over the limit of \(limit)")
                    let wanted = left == 300 ? 1 : min(limit, left)
                    guard connection.open.count >= wanted else { return }
                    left -= connection.open.count
                    // Announced before the answers: with them the streams of the old limit are gone.
                    limit = left % 3 == 0 ? 1 : (left % 3 == 1 ? 40 : 7)
                    connection.settings(maxStreams: UInt32(limit))
                    for stream in connection.open.keys.sorted() { connection.answer(stream, 200) }
                }
                world.send(1...300)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 300)
                #expect(world.peer.connections.count == 1)
            }
        }
    }

    @Test func zeroStreamsHoldsUntilThePeerAllowsAgain() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { [unowned world] request, connection in
                    if world.peer.requests.count == 1 { connection.settings(maxStreams: 0) }
                    connection.answer(request.stream, 200)
                }
                world.send(1...20)
            }
            _ = try await world.told.first { if case .outcome = $0 { true } else { false } }
            await loop.run { _ in
                #expect(world.outcomes.count == 1 && world.client.queued == 19)
                world.peer.connections[0].settings(maxStreams: 3)
            }
            try await world.allDone()
            await loop.run { _ in #expect(world.acceptedCount == 20) }
        }
    }

    @Test func goAwayLosesNothingAndRepeatsOnlyWhatWasNotProcessed() async throws {
        try await withWorld { loop, world in
            let processed = await loop.run { _ in
                let processed = Facts<Int32>()
                world.peer.onRequest = { request, connection in
                    guard connection.index == 0, request.stream > 1 else {
                        return connection.answer(request.stream, 200)
                    }
                    // Thirty are open: the last ten were not processed.
                    guard connection.open.count == 30 else { return }
                    let streams = connection.open.keys.sorted()
                    connection.goAway(last: streams[19], debug: #"{"reason":"Shutdown"}"#)
                    for stream in streams.prefix(20) {
                        processed.record(stream)
                        connection.answer(stream, 200)
                    }
                }
                world.peer.maxStreams = 30
                world.send(1...500)
                return processed
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 500)
                #expect(world.doubles == 0)
                #expect(processed.all.count == 20)
                #expect(world.peer.connections.count == 2)
                let onFirst = world.peer.requests.filter { $0.connection == 0 }
                for request in onFirst {
                    let isProcessed = request.stream == 1 || processed.all.contains(request.stream)
                    let tag = UInt64(request.token, radix: 16) ?? 0
                    #expect(world.seen[tag] == (isProcessed ? 1 : 2))
                }
            }
        }
    }

    @Test func refusedStreamsAreSentAgainForFree() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                var refused: Set<String> = []
                world.peer.onRequest = { request, connection in
                    if request.stream > 1, refused.insert(request.token).inserted {
                        connection.reset(request.stream, .refusedStream)
                    } else {
                        connection.answer(request.stream, 200)
                    }
                }
                world.send(1...100)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 100)
                #expect(world.attempts.values.max() == 2)
            }
        }
    }

    @Test func frozenStreamDelaysOnlyItself() async throws {
        var limits = World.quick
        limits.answerNanos = 3_000_000_000
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                var isFrozen = false
                world.peer.onRequest = { request, connection in
                    if request.token.hasSuffix("032"), !isFrozen { return isFrozen = true }
                    connection.answer(request.stream, 200)
                }
                world.send(1...200)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 200)
                #expect(world.attempts[50] == 2)
                #expect(world.attempts.values.count { $0 > 1 } == 1)
                #expect(Set(world.peer.requests.filter { $0.token.hasSuffix("032") }.map(\.id)).count == 1)
                #expect(world.peer.connections.count == 1)
            }
        }
    }

    @Test func unansweredPushEndsUnknownAfterItsTries() async throws {
        var limits = World.quick
        limits.answerNanos = 40_000_000
        limits.unknownTries = 2
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { request, connection in
                    if request.token.hasSuffix("1") { connection.answer(request.stream, 200) }
                }
                world.send(1...2)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.outcomes[2] == .unknown(.timeout, apnsID: world.push(2).id))
                #expect(world.attempts[2] == 3)
            }
        }
    }

    @Test func refusedPushGoesToAnotherConnection() async throws {
        var limits = World.quick
        limits.connectionsMax = 2
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { request, connection in
                    if connection.index == 0, request.stream > 1 {
                        connection.reset(request.stream, .refusedStream)
                    } else {
                        connection.answer(request.stream, 200)
                    }
                }
                world.send(1...40)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 40)
                #expect(world.peer.connections.count == 2)
                let elsewhere = Set(world.peer.requests.filter { $0.connection == 1 }.map(\.token))
                #expect(elsewhere.count >= 39, "\(elsewhere.count)")
            }
        }
    }

    @Test func cutConnectionResendsWithTheSameID() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { request, connection in
                    if connection.index == 0, request.stream > 1 {
                        if connection.open.count == 50 { connection.cut() }
                    } else {
                        connection.answer(request.stream, 200)
                    }
                }
                world.send(1...300)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 300)
                for (token, requests) in Dictionary(grouping: world.peer.requests, by: \.token) {
                    #expect(Set(requests.map(\.id)).count == 1, "\(token.suffix(4))")
                }
            }
        }
    }

    @Test func rejectionsArePassedWithReasonAndTimestamp() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { request, connection in
                    switch request.token.last {
                    case "2":
                        connection.answer(request.stream, 410, #"{"reason":"Unregistered","timestamp":1700000000123}"#)
                    case "3": connection.answer(request.stream, 400, #"{"reason":"BadDeviceToken"}"#)
                    case "4": connection.answer(request.stream, 413)
                    case "5": connection.answer(request.stream, 400, String(repeating: "x", count: 100_000))
                    default: connection.answer(request.stream, 200)
                    }
                }
                world.send(1...5)
            }
            try await world.allDone()
            await loop.run { _ in
                guard case .rejected(410, let gone, .ms(1_700_000_000_123)) = world.outcomes[2] else {
                    Issue.record("\(String(describing: world.outcomes[2]))")
                    return
                }
                #expect(gone.text == "Unregistered")
                #expect(world.outcomes[2]?.tokenFate == .removeIfOlder)
                #expect(world.outcomes[3]?.tokenFate == .remove)
                #expect(world.outcomes[4] == .rejected(status: 413, reason: .absent, time: .absent))
                #expect(world.outcomes[5] == .rejected(status: 400, reason: .absent, time: .absent))
            }
        }
    }
}
