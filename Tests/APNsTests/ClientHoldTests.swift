// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Support
import Testing

@testable import APNs

/// Devices that APNs wants left alone (429 TooManyRequests): every push for them ends, in whatever order things happen.
@Suite(.serialized, .timeLimit(.minutes(2))) struct ClientHoldTests {
    private static let tooMany = #"{"reason":"TooManyRequests"}"#

    /// The older one gives its place to the newer one that came while it was on its way; that one is then sent.
    @Test func newestPushLeavesAfterASecondRefusalOfTheOneBefore() async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                let busy = world.push(1).token
                world.peer.onRequest = { [unowned world] request, connection in
                    let count = world.peer.requests.count { $0.token == busy.hex }
                    guard count <= 2 else { return connection.answer(request.stream, 200) }
                    if count == 2 {
                        world.expected += 1
                        #expect(world.client.send(world.push(2, token: busy)) == .held)
                    }
                    connection.answer(request.stream, 429, Self.tooMany)
                }
                world.send(1...1)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.outcomes[1] == .superseded)
                #expect(world.outcomes[2] == .accepted(apnsID: world.push(2).id))
                #expect(world.client.pushes.backoff.isEmpty)
            }
        }
    }

    /// The caller parks them, and none of them asks APNs once more.
    @Test func `a pause that is too long for memory ends all pushes of the device without another request`()
        async throws
    {
        var limits = World.quick
        limits.holdNanos = 1_000_000_000
        limits.retryBackoff = Backoff(baseNanos: 60_000_000_000, capNanos: 900_000_000_000)
        let plain = try PushHeaders(topic: "com.example.im", pushType: .alert)
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                let busy = world.push(1).token
                world.peer.onRequest = { [unowned world] request, connection in
                    for tag in 2...4 as ClosedRange<UInt64> {
                        world.expected += 1
                        _ = world.client.send(world.push(tag, token: busy, headers: plain))
                    }
                    connection.answer(request.stream, 429, Self.tooMany)
                }
                // One comes while the device waits.
                world.onOutcome = { [unowned world] tag, _ in
                    guard tag == 1 else { return }
                    world.expected += 1
                    #expect(world.client.send(world.push(5, token: busy, headers: plain)) == .held)
                }
                world.expected += 1
                #expect(world.client.send(world.push(1, token: busy, headers: plain)) == .taken)
            }
            try await world.allDone()
            await loop.run { _ in
                for tag in 1...5 as ClosedRange<UInt64> {
                    guard case .deferred(429, _, let ms)? = world.outcomes[tag] else {
                        Issue.record("push \(tag) ended as \(String(describing: world.outcomes[tag]))")
                        continue
                    }
                    #expect((29_000...60_000).contains(ms))
                }
                #expect(world.peer.requests.count == 1)
                #expect(world.client.heldDevices == 1)
            }
        }
    }

    /// Pushes that waited for a stream when their device was first refused are held like those that came later.
    @Test func pushesQueuedBeforeTheRefusalAreHeldWithIt() async throws {
        var limits = World.quick
        limits.streamsPerConnectionMax = 2
        limits.retryBackoff = Backoff(baseNanos: 200_000_000, capNanos: 200_000_000)
        let plain = try PushHeaders(topic: "com.example.im", pushType: .alert)
        try await withWorld(limits: limits) { loop, world in
            await loop.run { _ in
                let busy = world.push(1).token
                var blocker: (Int32, PeerConnection)?
                world.peer.onRequest = { [unowned world] request, connection in
                    let count = world.peer.requests.count { $0.token == busy.hex }
                    if request.token == busy.hex, count == 1 {
                        return connection.answer(request.stream, 429, Self.tooMany)
                    }
                    if request.token == world.push(9).token.hex {
                        blocker = (request.stream, connection)
                        return
                    }
                    connection.answer(request.stream, 200)
                    // A stream becomes free while another push of the device is on its way.
                    if let (stream, other) = blocker { other.answer(stream, 200) }
                    blocker = nil
                }
                // The first acceptance opens more than one stream.
                world.send(8...8)
                world.onOutcome = { [unowned world] tag, _ in
                    guard tag == 8 else { return }
                    world.send(9...9)
                    for tag in 1...4 as ClosedRange<UInt64> {
                        world.expected += 1
                        let headers = tag == 3 ? plain : nil
                        #expect(world.client.send(world.push(tag, token: busy, headers: headers)) == .taken)
                    }
                }
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.doubles == 0 && world.outcomes.count == 6)
                #expect(world.outcomes[3] == .accepted(apnsID: world.push(3).id))
                #expect(world.outcomes[4] == .accepted(apnsID: world.push(4).id))
                #expect(world.client.pushes.backoff.isEmpty)
            }
        }
    }
}
