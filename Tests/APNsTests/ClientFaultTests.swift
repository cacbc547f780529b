// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Foundation
import Support
import Telemetry
import Testing

@testable import APNs

@Suite(.serialized, .timeLimit(.minutes(10))) struct ClientFaultTests {
    @Test func anExpiredProviderTokenIsSignedAgainOnceAndThePushResent() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                var first: String?
                world.peer.onRequest = { request, connection in
                    let old = first ?? request.authorization
                    first = old
                    if request.authorization == old {
                        connection.answer(request.stream, 403, #"{"reason":"ExpiredProviderToken"}"#)
                    } else {
                        connection.answer(request.stream, 200)
                    }
                }
                world.send(1...100)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 100)
                #expect(Set(world.peer.requests.map(\.authorization)).count == 2)
                #expect(world.peer.connections.count == 2)
                #expect(!world.client.credential.gate.isPaused)
            }
        }
    }

    /// A machine that slept for an hour: its monotonic clock, and what was told by it, stood still.
    @Test func `a token that an hour of sleep made old is signed by the wall clock`() async throws {
        try await withWorld { loop, world in
            await loop.run { test in
                test.loop.unixOriginMs = test.loop.wallMs - Int64(test.loop.nowNanos / 1_000_000) - 3_600_000
                let oldest = test.loop.wallMs / 1000 - 3600
                world.peer.onRequest = { request, connection in
                    if Self.issuedAt(request.authorization) ?? 0 < oldest {
                        connection.answer(request.stream, 403, #"{"reason":"ExpiredProviderToken"}"#)
                    } else {
                        connection.answer(request.stream, 200)
                    }
                }
                world.send(1...20)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 20)
                #expect(!world.client.credential.gate.isPaused)
            }
        }
    }

    /// The `iat` of a provider token, s.
    private static func issuedAt(_ authorization: String?) -> Int64? {
        guard let part = authorization?.split(separator: ".").dropFirst().first else { return nil }
        var text = String(part).replacing("-", with: "+").replacing("_", with: "/")
        while text.count % 4 != 0 { text += "=" }
        guard let data = Data(base64Encoded: text) else { return nil }
        let claims = String(decoding: data, as: UTF8.self)
        guard let start = claims.firstRange(of: "\"iat\":")?.upperBound else { return nil }
        return Int64(String(claims[start...].prefix { $0.isNumber }))
    }

    @Test func refusedCredentialPausesAndAProbeResumes() async throws {
        var limits = World.quick
        limits.credentialProbeNanos = 30_000_000
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { [unowned world] request, connection in
                    if world.peer.requests.count <= 2 {
                        connection.answer(request.stream, 403, #"{"reason":"InvalidProviderToken"}"#)
                    } else {
                        connection.answer(request.stream, 200)
                    }
                }
                world.send(1...50)
            }
            let paused = try await world.told.first {
                if case .event(.credentialPaused) = $0 { true } else { false }
            }
            #expect(paused == .event(.credentialPaused(APNsReason(known: "InvalidProviderToken"))))
            _ = try await world.told.first { $0 == .event(.credentialResumed) }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 50)
                #expect(world.peer.requests.count == 52)
            }
        }
    }

    @Test func certificateFaultInGoAwayPauses() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { request, connection in
                    connection.goAway(last: 0, debug: #"{"reason":"BadCertificateEnvironment"}"#)
                }
                world.send(1...5)
            }
            _ = try await world.told.first { if case .event(.credentialPaused) = $0 { true } else { false } }
            await loop.run { _ in
                #expect(world.client.queued + world.client.inFlight == 5)
                #expect(!world.client.isUsable)
                world.client.close()
                #expect(world.outcomes.values.allSatisfy { $0 == .unprocessed(.closed) })
                #expect(world.outcomes.count == 5)
            }
        }
    }

    @Test func serverThatRefusesAndComesBackIsFoundAgain() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                world.peer.stopListening()
                world.send(1...20)
            }
            _ = try await world.told.first { if case .event(.unusable) = $0 { true } else { false } }
            try await loop.run { _ in
                #expect(world.client.queued == 20)
                try world.peer.listenAgain()
            }
            try await world.allDone()
            await loop.run { _ in #expect(world.acceptedCount == 20) }
        }
    }

    @Test func missingSettingsGiveTheConnectionUp() async throws {
        var limits = World.quick
        limits.settingsTimeoutNanos = 30_000_000
        limits.pingAfterNanos = 20_000_000
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                world.peer.isMute = true
                world.send(1...3)
            }
            _ = try await world.told.first { if case .event(.unusable) = $0 { true } else { false } }
            await loop.run { _ in world.peer.isMute = false }
            try await world.allDone()
            await loop.run { _ in #expect(world.acceptedCount == 3) }
        }
    }

    @Test func silentConnectionIsReplacedAndItsPushesResent() async throws {
        var limits = World.quick
        limits.pingAfterNanos = 40_000_000
        limits.pingTimeoutNanos = 40_000_000
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { [unowned world] request, connection in
                    if connection.index == 0, request.stream > 1 { return world.peer.isMute = true }
                    connection.answer(request.stream, 200)
                }
                world.send(1...40)
            }
            _ = try await world.told.first { if case .event(.unusable) = $0 { true } else { false } }
            await loop.run { _ in world.peer.isMute = false }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 40)
                #expect(world.peer.connections.count >= 2)
                #expect(world.client.context.metrics.deadConnections.value >= 1)
            }
        }
    }

    @Test func overloadedServerIsAskedAgain() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { [unowned world] request, connection in
                    let tag = UInt64(request.token, radix: 16) ?? 0
                    switch (tag % 4, world.seen[tag]) {
                    case (1, 1): connection.answer(request.stream, 503, #"{"reason":"ServiceUnavailable"}"#)
                    case (2, 1): connection.answer(request.stream, 500, #"{"reason":"InternalServerError"}"#)
                    case (3, 1): connection.answer(request.stream, 429, #"{"reason":"TooManyRequests"}"#)
                    default: connection.answer(request.stream, 200)
                    }
                }
                world.send(1...80)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 80)
                #expect(world.attempts.values.count { $0 == 2 } == 60)
            }
        }
    }

    @Test func retryAfterBeyondExpiryEndsExpired() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { request, connection in
                    connection.answer(request.stream, 503, #"{"reason":"ServiceUnavailable"}"#, retryAfter: "30")
                }
                world.send(1...3, expiresAtMs: Loop.wallMs() + 10_000)
            }
            try await world.allDone()
            await loop.run { _ in #expect(world.outcomes.values.allSatisfy { $0 == .expired }) }
        }
    }

    @Test func pushesThatExpireWhileWaitingAreNotSent() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                world.peer.isMute = true
                world.send(1...3, expiresAtMs: Loop.wallMs() + 20)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.outcomes.values.allSatisfy { $0 == .expired })
                #expect(world.attempts.values.allSatisfy { $0 == 0 })
            }
        }
    }

    @Test func aFullClientRefusesAndReportsRoom() async throws {
        var limits = World.quick
        limits.pushesMax = 8
        limits.inFlightMax = 4
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                world.send(1...8)
                #expect(world.client.send(world.push(9)) == .full)
                #expect(world.client.room == 0)
            }
            _ = try await world.told.first { $0 == .event(.hasRoom) }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 8)
                #expect(world.outcomes[9] == nil)
                #expect(world.peer.openStreamsPeak <= 4)
            }
        }
    }

    @Test func unfitPushesAreRefusedBeforeApplesEyes() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                let large = String(repeating: "x", count: 5000)
                #expect(world.client.send(world.push(1, payload: large)) == .unfit(.payloadTooLarge(max: 4096)))
                #expect(world.client.send(world.push(1, payload: "")) == .unfit(.payloadEmpty))
            }
        }
    }

    @Test func closingEndsEveryPush() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { request, connection in
                    if request.stream == 1 { connection.answer(1, 200) }
                }
                world.peer.maxStreams = 10
                world.send(1...50)
            }
            _ = try await world.told.first { if case .outcome(1, _, _) = $0 { true } else { false } }
            await loop.run { _ in
                #expect(world.client.inFlight == 10)
                world.client.close()
                #expect(world.outcomes.count == 50 && world.doubles == 0)
                let lost = world.outcomes.filter {
                    $0.value == .unknown(.connectionLost, apnsID: world.push($0.key).id)
                }
                #expect(lost.count == 10)
                #expect(world.outcomes.values.count { $0 == .unprocessed(.closed) } == 39)
                #expect(world.client.send(world.push(99)) == .closed)
            }
        }
    }

    @Test func clientMayBeClosedFromItsOwnOutcome() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                world.onOutcome = { [unowned world] _, _ in world.client.close() }
                world.send(1...50)
            }
            try await world.allDone()
            await loop.run { _ in #expect(world.outcomes.count == 50 && world.doubles == 0) }
        }
    }

    @Test func drainingFinishesWhatItHoldsAndSaysSo() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                world.send(1...200)
                world.client.drain()
                #expect(world.client.send(world.push(999)) == .closed)
            }
            _ = try await world.told.first { $0 == .event(.drained) }
            await loop.run { _ in
                #expect(world.acceptedCount == 200)
                #expect(world.client.connectionCounts == (0, 0, 0))
            }
        }
    }

    @Test func poolGrowsWhenStreamsAndQueuePersist() async throws {
        var limits = World.quick
        limits.connectionsMax = 3
        limits.growAfterNanos = 10_000_000
        limits.pingAfterNanos = 40_000_000
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                world.peer.maxStreams = 2
                // Nobody is answered before the third connection has streams of its own.
                world.peer.onRequest = { [unowned world] request, connection in
                    if request.stream == 1 { connection.answer(1, 200) }
                    let isGrown = world.peer.connections.count == 3 && world.peer.connections[2].open.count > 0
                    guard isGrown || world.outcomes.count > 10 else { return }
                    for other in world.peer.connections {
                        for stream in other.open.keys.sorted() { other.answer(stream, 200) }
                    }
                }
                world.send(1...60)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 60)
                #expect(world.peer.connections.count == 3)
            }
        }
    }

    @Test func oldConnectionIsReplacedWithoutAGap() async throws {
        var limits = World.quick
        limits.ageMaxNanos = 60_000_000
        limits.pingAfterNanos = 20_000_000
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                world.onOutcome = { [unowned world] tag, _ in
                    guard world.peer.connections.count < 3 else { return }
                    world.send((tag + 1)...(tag + 1))
                }
                world.send(1...1)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == world.outcomes.count)
                #expect(!world.told.all.contains { if case .event(.unusable) = $0 { true } else { false } })
            }
        }
    }

    @Test func unknownAuthorityIsNeverSpokenTo() async throws {
        let folder = try TemporaryFolder()
        try await withWorld { loop, world in
            try await loop.run { test in
                let other = try folder.write(try World.otherAuthority(), to: "other.pem")
                let stranger = try APNsClient(
                    loop: test.loop, endpoint: APNsEndpoint(host: "127.0.0.1", port: world.peer.port, caFile: other),
                    credential: .token(key: try World.key.get(), keyID: "ABC123DEFG", teamID: "DEF123GHIJ"),
                    limits: World.quick, metrics: APNsMetrics(registry: MetricsRegistry(), app: "x"), delegate: world)
                test.keep(stranger)
                #expect(stranger.send(world.push(1)) == .taken)
            }
            let event = try await world.told.first { if case .event(.unusable) = $0 { true } else { false } }
            #expect("\(event)".contains("certificate"))
            await loop.run { _ in #expect(world.peer.requests.isEmpty) }
        }
    }
}
