// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Support
import Testing

@testable import APNs

/// An endpoint that comes back is found soon by a client with pushes to send, however long it was away.
@Suite(.serialized, .timeLimit(.minutes(2))) struct ClientReturnTests {
    /// Every back-off is already at a cap that no test outlasts.
    private static var patient: APNsLimits {
        var limits = World.quick
        let backoff = Backoff(baseNanos: 600_000_000_000, capNanos: 600_000_000_000)
        limits.connectBackoff = backoff
        limits.retryBackoff = backoff
        limits.breakerBackoff = backoff
        return limits
    }

    @Test func refusedConnectIsTriedAgainSoonWhilePushesWait() async throws {
        try await withWorld(limits: Self.patient) { loop, world in
            await loop.run { _ in
                world.peer.stopListening()
                world.send(1...3)
            }
            _ = try await world.told.first { if case .event(.unusable) = $0 { true } else { false } }
            try await loop.run { _ in try world.peer.listenAgain() }
            try await world.allDone()
            await loop.run { _ in #expect(world.acceptedCount == 3) }
        }
    }

    @Test func firstPushAfterALongRestNeedsNotWaitForTheBackoff() async throws {
        try await withWorld(limits: Self.patient) { loop, world in
            await loop.run { _ in
                world.peer.stopListening()
                world.client.start()
            }
            _ = try await world.told.first { if case .event(.unusable) = $0 { true } else { false } }
            try await loop.run { _ in
                try world.peer.listenAgain()
                world.send(1...1)
            }
            try await world.allDone()
            await loop.run { _ in #expect(world.acceptedCount == 1) }
        }
    }

    /// Too few pushes to open the breaker: each asks for itself.
    @Test func pushThatTheEndpointPutOffIsTriedAgainSoon() async throws {
        try await withWorld(limits: Self.patient) { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { [unowned world] request, connection in
                    let isBack = world.peer.requests.count > 2
                    connection.answer(
                        request.stream, isBack ? 200 : 503, isBack ? "" : #"{"reason":"ServiceUnavailable"}"#)
                }
                world.send(1...1)
            }
            try await world.allDone()
            await loop.run { _ in #expect(world.acceptedCount == 1 && world.attempts[1] == 3) }
        }
    }

    @Test func openBreakerAsksSoonWhilePushesWait() async throws {
        var limits = Self.patient
        limits.breakerAnswers = 2
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { [unowned world] request, connection in
                    let isBack = world.peer.requests.count > 3
                    connection.answer(
                        request.stream, isBack ? 200 : 503, isBack ? "" : #"{"reason":"ServiceUnavailable"}"#)
                }
                world.send(1...8)
            }
            try await world.allDone()
            await loop.run { _ in #expect(world.acceptedCount == 8) }
        }
    }
}
