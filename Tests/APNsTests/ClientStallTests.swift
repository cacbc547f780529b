// SPDX-License-Identifier: Apache-2.0
import Crypto
import EventLoop
import Support
import Telemetry
import Testing

@testable import APNs

/// New connections that carry nothing, and the push that is stuck on one.
@Suite(.serialized, .timeLimit(.minutes(10))) struct ClientStallTests {
    @Test func peerThatAllowsNoStreamIsReplacedAndNotUsable() async throws {
        try await withWorld(limits: World.watchful) { loop, world in
            await loop.run { _ in
                world.peer.maxStreams = 0
                world.peer.onConnection = { [unowned world] connection in
                    // The fourth connection allows streams.
                    if connection.index == 2 { world.peer.maxStreams = 100 }
                    if connection.index == 3 { world.atEnd?() }
                }
                world.atEnd = { [unowned world] in
                    #expect(!world.client.isUsable && world.client.isStalled && world.client.isHeldUp)
                    #expect(world.client.unusableBecause == "APNs allows no streams")
                }
                world.send(1...50)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 50 && world.peer.connections.count == 4)
                #expect(world.client.isUsable && !world.client.isStalled && world.client.unusableBecause == nil)
                #expect(!world.told.all.dropLast(51).contains(.event(.usable)), "it was never usable before")
            }
        }
    }

    @Test func peerThatNeverRaisesItsStreamsIsLeftAgainAndAgainAtABoundedNumber() async throws {
        try await withWorld(limits: World.watchful) { loop, world in
            let counts = Facts<[Int]>()
            await loop.run { _ in
                world.peer.maxStreams = 0
                world.peer.onConnection = { [unowned world] connection in
                    counts.record([connection.index, world.client.pool.connections.count])
                }
                world.send(1...50)
            }
            _ = try await counts.first { $0[0] == 7 }
            #expect(counts.all.allSatisfy { $0[1] <= 3 }, "\(counts.all)")
            await loop.run { _ in #expect(world.outcomes.isEmpty && world.client.queued == 50) }
        }
    }

    /// A body that never left cannot have been processed: it is sent again however often that happens.
    @Test func peerWithoutStreamWindowIsReplacedAndNothingCountsAsSent() async throws {
        var limits = World.watchful
        limits.answerNanos = 200_000_000
        limits.unknownTries = 0
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                world.peer.streamWindowBytes = 0
                world.peer.onConnection = { [unowned world] connection in
                    if connection.index == 3 { world.peer.streamWindowBytes = 1 << 20 }
                }
                world.send(1...20)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 20 && world.doubles == 0)
                #expect(world.peer.connections.count >= 5 && world.client.isUsable)
                #expect(world.client.context.metrics.ambiguous.value == 0)
            }
        }
    }

    @Test func stuckFirstPushDelaysOnlyItsOwnDevice() async throws {
        try await withWorld(limits: World.watchful) { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { request, connection in
                    if UInt64(request.token, radix: 16) != 1 { connection.answer(request.stream, 200) }
                }
                world.send(1...21)
            }
            // Far below the minute that the stuck push may take.
            for tag in 2...21 as ClosedRange<UInt64> {
                _ = try await world.told.first { if case .outcome(tag, .accepted, 1) = $0 { true } else { false } }
            }
            await loop.run { _ in
                #expect(world.outcomes[1] == nil && world.client.inFlight == 1)
                #expect(world.peer.connections.count == 2 && world.client.isUsable)
            }
        }
    }

    @Test func slowFirstAnswerKeepsItsConnection() async throws {
        try await withWorld(limits: World.watchful) { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { [unowned world] request, connection in
                    if UInt64(request.token, radix: 16) != 1 { return connection.answer(request.stream, 200) }
                    // Answered once the second connection is there.
                    world.peer.onConnection = { [unowned world] _ in
                        world.peer.connections.first?.answer(request.stream, 200)
                    }
                }
                world.send(1...21)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 21 && world.seen.values.allSatisfy { $0 == 1 })
                #expect(world.client.isUsable && world.client.pool.usability.stall == nil)
            }
        }
    }

    @Test func stuckPushThatNobodyWaitsForReplacesNoConnection() async throws {
        try await withWorld(limits: World.watchful) { loop, world in
            let ticks = Facts<Int>()
            await loop.run { _ in
                world.peer.onRequest = { _, _ in ticks.record(0) }
                world.send(1...1)
            }
            _ = try await ticks.first { _ in true }
            await loop.run { _ in
                for _ in 0..<5 {
                    for connection in world.client.pool.connections {
                        connection.health = ConnectionHealth(nowNanos: 0)
                        world.client.pool.checkHealth(of: connection)
                        #expect(!connection.isSuspicious)
                    }
                }
                #expect(world.client.pool.connections.count == 1)
            }
        }
    }
}
