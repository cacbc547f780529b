// SPDX-License-Identifier: Apache-2.0
import Crypto
import EventLoop
import Support
import Testing

@testable import APNs

/// Connections and credentials that are replaced while pushes go on.
@Suite(.serialized, .timeLimit(.minutes(10))) struct ClientReplacementTests {
    @Test func connectionThatAnswersPingsButNoPushesIsReplaced() async throws {
        try await withWorld(limits: World.watchful) { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { [unowned world] request, connection in
                    // The first connection freezes after ten; its PINGs are answered below.
                    if connection.index == 0, world.peer.requests.count > 10 {
                        world.frozenNanos = Loop.monotonicNanos()
                        return
                    }
                    connection.answer(request.stream, 200)
                }
                world.peer.onConnection = { [unowned world] connection in
                    guard connection.index == 1 else { return }
                    world.frozenNanos = Loop.monotonicNanos() - world.frozenNanos
                    world.send(1001...1001)
                }
                world.onOutcome = { [unowned world] tag, _ in if tag < 11 { world.send((tag + 1)...(tag + 1)) } }
                world.send(1...1)
            }
            // Number eleven hangs on the frozen one; what comes with the second connection goes there.
            _ = try await world.told.first { if case .outcome(1001, _, _) = $0 { true } else { false } }
            await loop.run { _ in
                #expect(world.peer.requests.contains { $0.connection == 1 })
                #expect(world.frozenNanos > 0 && world.frozenNanos < 3_000_000_000)
            }
        }
    }

    @Test func connectionThatHoardsItsWindowIsReplaced() async throws {
        try await withWorld(limits: World.watchful) { loop, world in
            await loop.run { _ in
                world.peer.windowBytes = 65_535
                world.peer.returnsWindow = false
                // Three windows' worth: each connection carries one.
                let payload = #"{"aps":{"alert":""# + String(repeating: "x", count: 3900) + #""}}"#
                world.expected += 48
                for tag in 1...48 as ClosedRange<UInt64> {
                    #expect(world.client.send(world.push(tag, payload: payload)) == .taken)
                }
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 48)
                #expect(world.peer.connections.count >= 3)
            }
        }
    }

    @Test func newCredentialTakesOverWithoutAGap() async throws {
        let renewed = try PrivateKey.generate()
        try await withWorld { loop, world in
            await loop.run { _ in
                world.onOutcome = { [unowned world] tag, _ in
                    if tag == 20 {
                        try? world.client.replaceCredential(
                            .token(key: renewed, keyID: "NEW123DEFG", teamID: "DEF123GHIJ"))
                    }
                    if tag < 60 { world.send((tag + 1)...(tag + 1)) }
                }
                world.send(1...1)
            }
            try await world.allDone()
            // The second connection proves itself with the push that reaches it; from then on it has them all.
            await loop.run { _ in world.send(61...80) }
            _ = try await world.told.first { if case .outcome(80, _, _) = $0 { true } else { false } }
            await loop.run { _ in
                #expect(world.acceptedCount == 80)
                #expect(Set(world.peer.requests.map(\.authorization)).count == 2)
                #expect(world.client.credential.previousIdentity == nil && world.client.refusedReplacement == nil)
                #expect(!world.told.all.contains { if case .event(.unusable) = $0 { true } else { false } })
            }
        }
    }

    @Test func refusedNewCredentialLeavesTheOldInUse() async throws {
        let wrong = try PrivateKey.generate()
        try await withWorld { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { [unowned world] request, connection in
                    if request.authorization != world.peer.requests.first?.authorization {
                        connection.answer(request.stream, 403, #"{"reason":"InvalidProviderToken"}"#)
                    } else {
                        connection.answer(request.stream, 200)
                    }
                }
                world.onOutcome = { [unowned world] tag, _ in
                    if tag == 5 {
                        try? world.client.replaceCredential(
                            .token(key: wrong, keyID: "BAD123DEFG", teamID: "DEF123GHIJ"))
                    }
                    let isTried = world.peer.requests.contains { $0.connection == 1 }
                    if tag < 30 || !isTried { world.send((tag + 1)...(tag + 1)) }
                }
                world.send(1...1)
            }
            try await world.allDone()
            await loop.run { _ in
                world.onOutcome = nil
                #expect(world.acceptedCount == world.expected)
                #expect(!world.client.credential.gate.isPaused)
                #expect(world.client.refusedReplacement?.text == "InvalidProviderToken")
                #expect(
                    world.client.pool.connections.allSatisfy {
                        $0.identity === world.client.credential.identity || $0.machine.isDraining
                    })
            }
        }
    }
}
