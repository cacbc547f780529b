// SPDX-License-Identifier: Apache-2.0
import Crypto
import EventLoop
import JSON
import Simulator
import Support
import Testing

@testable import APNs

/// Channels and broadcasts against the simulator's desk, which follows Apple's rules.
@Suite(.serialized, .timeLimit(.minutes(10))) struct BroadcastTests {
    private static let payload = Array(#"{"aps":{"event":"update","timestamp":1,"content-state":{}}}"#.utf8)

    /// Performs requests one after the other and gives their answers.
    private func perform(
        on loop: TestLoop, world: World, _ request: BroadcastRequest, bundleID: String = "com.example.im"
    ) async -> Result<BroadcastAnswer, BroadcastFault> {
        let answers = Facts<Result<BroadcastAnswer, BroadcastFault>>()
        await loop.run { test in
            do {
                let client = try BroadcastClient(
                    loop: test.loop, endpoint: world.endpoint,
                    credential: .token(key: try World.key.get(), keyID: "ABC123DEFG", teamID: "DEF123GHIJ"))
                test.keep(client)
                client.perform(request, bundleID: bundleID) { answers.record($0) }
            } catch {
                answers.record(.failure(BroadcastFault("\(error)")))
            }
        }
        return (try? await answers.next()) ?? .failure(BroadcastFault("the client said nothing"))
    }

    @Test func aChannelLivesFromItsMakingToItsEnd() async throws {
        try await withSimulator { loop, world, simulator in
            let made = try await perform(on: loop, world: world, .create(keepsLast: true)).get()
            #expect(made.status == 201 && made.requestID != nil)
            let channel = try #require(made.channel)
            let list = try await perform(on: loop, world: world, .list).get()
            #expect(try JSONTree(parsing: list.body)["channels"] == .array([.string(channel)]))
            let read = try await perform(on: loop, world: world, .read(channel: channel)).get()
            #expect(try JSONTree(parsing: read.body)["message-storage-policy"] == .number("1"))
            let send = BroadcastRequest.send(
                channel: channel, payload: Self.payload, expirationSeconds: 4_000_000_000, priority: .immediate)
            #expect(try await perform(on: loop, world: world, send).get().status == 200)
            #expect(try await perform(on: loop, world: world, .delete(channel: channel)).get().status == 204)
            let gone = try await perform(on: loop, world: world, send).get()
            #expect(gone.status == 400 && String(decoding: gone.body, as: UTF8.self).contains("ChannelNotRegistered"))
            #expect(await simulator.counters.tokens == 1)
        }
    }

    @Test func aChannelThatKeepsNothingTakesNoExpiration() async throws {
        try await withSimulator { loop, world, _ in
            let made = try await perform(on: loop, world: world, .create(keepsLast: false)).get()
            let channel = try #require(made.channel)
            for (expiration, status) in [(4_000_000_000, 400), (0, 200)] as [(Int64, Int)] {
                let send = BroadcastRequest.send(
                    channel: channel, payload: Self.payload, expirationSeconds: expiration, priority: .considerate)
                #expect(try await perform(on: loop, world: world, send).get().status == status)
            }
        }
    }

    @Test func aForeignTopicOrCredentialIsRefused() async throws {
        try await withSimulator { loop, world, _ in
            let other = try await perform(on: loop, world: world, .list, bundleID: "com.example.other").get()
            #expect(other.status == 403)
            let none = try await perform(on: loop, world: world, .read(channel: "dHJ1c3RubzEK")).get()
            #expect(none.status == 400)
        }
    }

    @Test func unfitRequestsNeverLeave() async throws {
        try await withSimulator { loop, world, simulator in
            let large = [UInt8](repeating: 0x20, count: BroadcastRequest.payloadMax + 1)
            let unfit: [BroadcastRequest] = [
                .read(channel: ""), .delete(channel: "a b"),
                .send(channel: "YQ==", payload: [], expirationSeconds: 0, priority: .immediate),
                .send(channel: "YQ==", payload: large, expirationSeconds: 0, priority: .immediate),
            ]
            for request in unfit {
                let problem = try #require(request.problem(bundleID: "com.example.im"))
                let result = await perform(on: loop, world: world, request)
                #expect(result == .failure(BroadcastFault(problem)))
            }
            #expect(await simulator.counters.requests == 0)
        }
    }
}
