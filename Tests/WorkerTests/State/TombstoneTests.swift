// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis
import Support
import Testing

@testable import Worker

/// Tokens that were removed because of APNs' answer, and their way back.
@Suite(.timeLimit(.minutes(10))) struct TombstoneTests {
    private static func bind(_ token: String, device: String = "d", version: Int64) -> UserState.Change {
        .bind(
            UserState.Binding(
                device: device,
                token: TokenRecord(
                    hex: token, environment: .sandbox, topic: "com.example.im", type: .alert, credential: "main",
                    contentKey: nil, language: "zh-Hans", zone: "", activityID: nil, boundMs: StateWorld.base),
                version: version))
    }

    private static func remove(_ uid: String, _ world: StateWorld, cause: RemovalBrake.Cause = .gone) async throws {
        let token = try #require(try await world.recipient(uid).recipient.tokens.first)
        _ = try await world.ask(
            {
                try $0.buryToken(
                    app: StateWorld.app, uid: uid, token: token, cause: cause, nowMs: StateWorld.base, tag: $1)
            }, { $0.int64 })
        _ = try await world.ask(
            {
                try $0.retireDead(app: StateWorld.app, uid: uid, token: token, tag: $1)
            }, { $0.int64 })
        _ = try await world.ask(
            {
                try $0.removeToken(app: StateWorld.app, uid: uid, token: token, nowMs: StateWorld.base, tag: $1)
            }, { $0.int64 })
    }

    private static func restore(
        _ world: StateWorld, cause: RemovalBrake.Cause = .gone, sinceMs: Int64 = StateWorld.base, isDryRun: Bool = false
    ) async throws -> TokensRestored {
        let store = try StateReader(.single(RedisEndpoint(url: world.server.url)))
        try await store.open()
        var restoration = TokenRestoration(
            store, app: StateWorld.app, cause: cause, sinceMs: sinceMs, isDryRun: isDryRun)
        let counts = try await restoration.run()
        await store.close()
        return counts
    }

    @Test func removedTokensAreRestoredUnlessBoundSince() async throws {
        let world = try StateWorld()
        try await world.connect()
        for uid in ["back", "other", "moved", "left", "cause"] {
            try await world.change(uid, Self.bind("a0" + uid.utf8.map { String($0, radix: 16) }.joined(), version: 3))
        }
        let before = try await world.recipient("back").recipient.tokens
        for uid in ["back", "other", "moved", "left"] { try await Self.remove(uid, world) }
        try await Self.remove("cause", world, cause: .badDeviceToken)
        let leftToken = "a0" + "left".utf8.map { String($0, radix: 16) }.joined()
        let movedToken = "a0" + "moved".utf8.map { String($0, radix: 16) }.joined()
        try await world.change("other", Self.bind("bb", version: 4))
        try await world.change("somebody", Self.bind(movedToken, version: 4))
        try await world.change("left", .unbind(UserState.Unbinding(device: "d", token: leftToken, version: 3)))
        #expect(try await world.reachable("back") == [])

        var wanted = TokensRestored()
        (wanted.found, wanted.restored, wanted.boundAnew, wanted.unbound) = (4, 1, 2, 1)
        #expect(try await Self.restore(world, isDryRun: true) == wanted)
        #expect(try await world.reachable("back") == [], "a dry run changes nothing")
        #expect(try await Self.restore(world, sinceMs: StateWorld.base + 1) == TokensRestored())
        #expect(try await Self.restore(world) == wanted)
        #expect(try await world.recipient("back").recipient.tokens == before)
        #expect(try await world.reachable("back") == [before[0].record.hex])
        #expect(try await world.reachable("moved") == [])
        #expect(try await world.reachable("somebody") == [movedToken])
        #expect(try await world.reachable("left") == [])
        #expect(try await world.reachable("other") == ["bb"])
        #expect(try await world.reachable("cause") == [], "it was removed for another cause")
        (wanted.found, wanted.restored) = (3, 0)
        #expect(try await Self.restore(world) == wanted, "once is enough")
        await world.end()
    }

    @Test func aRedeliveredBindDoesNotBringADeadTokenBack() async throws {
        let world = try StateWorld()
        try await world.connect()
        try await world.change("A", Self.bind("aa", version: 1))
        try await Self.remove("A", world)
        #expect(try await world.change("A", Self.bind("aa", version: 1)) == .ignored(.unbound))
        #expect(try await world.change("A", Self.bind("aa", version: 2)) == .applied(.none))
        #expect(try await world.reachable("A") == ["aa"])
        await world.end()
    }

    @Test func tombstonesGoAfterSevenDays() async throws {
        let world = try StateWorld()
        try await world.connect()
        let token = BoundToken(
            device: "d",
            record: TokenRecord(
                hex: "aa", environment: .production, topic: "t", type: .alert, credential: nil, contentKey: nil,
                language: nil, zone: nil, activityID: nil, boundMs: 1), version: 1)
        for (uid, ms) in [("old", 0), ("new", 7 * 86_400_000 + 1)] as [(String, Int64)] {
            _ = try await world.ask(
                {
                    try $0.buryToken(
                        app: StateWorld.app, uid: uid, token: token, cause: .gone, nowMs: StateWorld.base + ms, tag: $1)
                }, { $0.int64 })
        }
        let bucket = Tombstone.bucket(app: StateWorld.app, token: "aa")
        #expect(try await world.raw("ZCARD", "c:z:{im:z\(bucket)}") == 1)
        await world.end()
    }
}
