// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Support
import Testing

@testable import APNs

/// One name with several addresses, each a server of its own on the loopback network.
@Suite(.timeLimit(.minutes(10))) struct AddressTests {
    /// Servers at 127.0.0.2, .3 and so on, all at one port.
    private static func peers(_ count: Int, on test: isolated TestLoop) throws -> [Peer] {
        let first = try Peer(loop: test.loop, host: "127.0.0.2")
        var peers = [first]
        for index in 1..<count {
            peers.append(try Peer(loop: test.loop, host: "127.0.0.\(index + 2)", port: first.port))
        }
        for peer in peers { test.keep(peer) }
        return peers
    }

    private static func withPeers(
        _ count: Int, limits: APNsLimits, _ prepare: @escaping @Sendable (World, [Peer]) -> Void,
        judge: @escaping @Sendable (World, [Peer]) -> Void
    ) async throws {
        try await withWorld({ test in
            let peers = try Self.peers(count, on: test)
            let world = try World(test.loop, limits: limits, port: peers[0].port) { $0.host = "localhost" }
            world.extraPeers = peers
            prepare(world, peers)
            return world
        }) { loop, world in
            try await world.allDone()
            await loop.run { _ in judge(world, world.extraPeers) }
        }
    }

    @Test func connectionsSpreadOverTheAddressesOfAName() async throws {
        var limits = World.quick
        limits.connectionsMax = 3
        try await Self.withPeers(3, limits: limits) { world, peers in
            world.client.pool.lookUp = { name in name == "localhost" ? ["127.0.0.2", "127.0.0.3", "127.0.0.4"] : [] }
            var held: [(Int32, PeerConnection)] = []
            for peer in peers {
                peer.maxStreams = 2
                peer.onRequest = { request, connection in
                    // The first proves the connection; the others wait until the pool has grown to its end.
                    let isGrown = peers.reduce(0) { $0 + $1.connections.count } == 3
                    guard request.stream == 1 || isGrown else { return held.append((request.stream, connection)) }
                    connection.answer(request.stream, 200)
                    guard isGrown else { return }
                    for (stream, other) in held { other.answer(stream, 200) }
                    held = []
                }
            }
            world.send(1...40)
        } judge: { world, peers in
            #expect(world.acceptedCount == 40)
            #expect(peers.map(\.connections.count) == [1, 1, 1])
        }
    }

    @Test func nameWithoutAnAddressIsAskedAgain() async throws {
        try await Self.withPeers(1, limits: World.quick) { world, _ in
            var lookUps = 0
            world.client.pool.lookUp = { _ in
                lookUps += 1
                return lookUps <= 3 ? [] : ["127.0.0.2"]
            }
            world.send(1...20)
        } judge: { world, peers in
            #expect(world.acceptedCount == 20 && peers[0].connections.count == 1)
        }
    }

    @Test func addressThatFailedLastIsAvoided() async throws {
        try await Self.withPeers(3, limits: World.quick) { world, peers in
            var lookUps = 0
            world.client.pool.lookUp = { _ in
                lookUps += 1
                // The first time the dead one is all there is.
                return lookUps == 1 ? ["127.0.0.2"] : ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
            }
            peers[0].onConnection = { $0.cut() }
            for peer in peers.dropFirst() {
                peer.onRequest = { request, connection in
                    connection.answer(request.stream, 200)
                    // Away after five, so that there are many connects.
                    if request.stream >= 9 { connection.goAway(last: request.stream) }
                }
            }
            world.send(1...150)
        } judge: { world, peers in
            #expect(world.acceptedCount == 150)
            #expect(peers[0].connections.count == 1)
            #expect(peers.dropFirst().reduce(0) { $0 + $1.connections.count } >= 10)
            #expect(peers.dropFirst().allSatisfy { $0.connections.count >= 2 })
        }
    }
}
