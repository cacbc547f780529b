// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis
import Support
import Testing

@testable import Worker

/// `forget` removes all that is stored of a user; what comes later begins anew.
@Suite(.timeLimit(.minutes(10)))
struct ForgettingTests {
    private static func bind(
        _ token: String, version: Int64 = 1, type: TokenRecord.Kind = .alert, ms: Int64 = 0
    ) -> UserState.Change {
        .bind(
            UserState.Binding(
                device: "d",
                token: TokenRecord(
                    hex: token, environment: .production, topic: "com.example.im", type: type,
                    activityID: type == .activity ? "ride" : nil, boundMs: StateWorld.base + ms),
                version: version))
    }

    private static func settings(_ language: String) -> UserState.Change {
        var change = UserState.SettingsChange()
        change.language = language
        return .settings(change)
    }

    private static func request(_ id: String, ms: Int64 = 0) -> ClaimRequest {
        ClaimRequest(
            app: StateWorld.app, uid: "u",
            ClaimSubject(
                kind: .message, id: id, conversation: "c", sentMs: StateWorld.base + ms, seq: 1,
                expireAtMs: StateWorld.base + 86_400_000), counted: true, nowMs: StateWorld.base)
    }

    private static func fill(_ world: StateWorld) async throws {
        for (token, type) in [("aa", .alert), ("bb", .voip), ("cc", .activity)] as [(String, TokenRecord.Kind)] {
            try await world.change("u", bind(token, type: type))
        }
        try await world.change("u", settings("de"))
        try await world.change("u", .mute(conversation: "c", level: .blocked, untilMs: nil))
        _ = try await world.claim(request("m1"))
        try await world.finish(request("m1"))
        _ = try await world.claim(request("m2"))
        try await world.change("u", .read(conversation: "c", upTo: .init(seq: nil, ms: 5)))
        try await world.change("u", .badgeReport(device: "d", value: 7, clientMs: StateWorld.base - 5))
        try await world.change("u", .ack(device: "d", connectionEpoch: nil, msgIDs: ["m3"]))
        try await world.change("u", .openReport(.init(device: "d", pid: "p")))
        try await world.raw("SADD", "c:b:{im:u}", "d")
        try await world.raw("HSET", "c:f:{im:u}", "d", "1 1 1 0 p")
    }

    @Test func `everything that is stored of the user goes`() async throws {
        let world = try StateWorld()
        try await world.connect()
        try await world.change("other", Self.bind("dd"))
        let others = try await world.raw("DBSIZE")
        try await Self.fill(world)
        #expect(try await world.change("u", .forget, at: 10) == .applied(.none))
        let read = try await world.recipient("u")
        #expect(read.recipient.tokens.isEmpty && read.recipient.mute == nil && read.recipient.settings.language == nil)
        // The two notes of the time are left.
        #expect(try await world.raw("DBSIZE") == (others ?? 0) + 2)
        #expect(try await world.raw("HLEN", "c:u:{im:u}") == 1)
        #expect(try await world.raw("HLEN", "c:s:{im:u}") == 2)
        for key in ["c:u", "c:s"] { #expect(try await world.raw("TTL", "\(key):{im:u}") ?? 0 > 0) }
        #expect(try await world.change("u", .forget, at: 10) == .repeated)
        #expect(try await world.change("u", .forget, at: 9) == .ignored(.stale))
        #expect(try await world.reachable("other") == ["dd"])
        await world.end()
    }

    @Test func `older changes that come late store nothing, and newer ones begin anew`() async throws {
        let world = try StateWorld()
        try await world.connect()
        try await Self.fill(world)
        try await world.change("u", .forget, at: 10)
        #expect(try await world.change("u", Self.bind("aa", version: 1, ms: 9), at: 9) == .ignored(.unbound))
        #expect(try await world.change("u", Self.settings("fr"), at: 9) == .ignored(.stale))
        #expect(
            try await world.change("u", .mute(conversation: "c", level: .blocked, untilMs: nil), at: 9)
                == .ignored(.stale))
        #expect(
            try await world.change("u", .read(conversation: "c", upTo: .init(seq: 9, ms: nil)), at: 9)
                == .ignored(.stale))
        #expect(try await world.reachable("u") == [])
        #expect(try await world.change("u", Self.bind("aa", version: 1, ms: 11), at: 11) == .applied(.none))
        #expect(try await world.change("u", Self.settings("it"), at: 11) == .applied(.none))
        #expect(try await world.pushed("u") == ["aa"])
        #expect(try await world.raw("TTL", "c:u:{im:u}") == -1)
        #expect(try await world.claim(Self.request("m9", ms: 12)).badge == 1)
        // Read again, as after a failover: nothing that is newer goes.
        #expect(try await world.change("u", .forget, at: 10) == .repeated)
        let read = try await world.recipient("u")
        #expect(read.recipient.tokens.map(\.record.hex) == ["aa"] && read.recipient.settings.language == "it")
        await world.end()
    }

    /// Cut after each of its steps and read again.
    @Test func `a forget that was cut is carried to its end`() async throws {
        let world = try StateWorld()
        try await world.connect()
        var steps = 0
        while true {
            steps += 1
            try await world.raw("FLUSHALL")
            try await Self.fill(world)
            let outcome = try await world.change("u", .forget, at: 10, steps: steps)
            if outcome != nil { break }
            #expect(try await world.change("u", .forget, at: 10) == .applied(.none), "cut after \(steps)")
            #expect(try await world.raw("DBSIZE") == 2, "cut after \(steps)")
        }
        #expect(steps >= 3)
        await world.end()
    }

    @Test func `the command removes the marks too`() async throws {
        let world = try StateWorld()
        try await world.connect()
        try await Self.fill(world)
        // No set names this mark any more.
        try await world.raw("SET", "c:d1:{im:u}mold", "f")
        let reader = try StateReader(.single(RedisEndpoint(url: world.server.url)))
        try await reader.open()
        try await UserRemoval(reader).forget(app: StateWorld.app, uid: "u")
        await reader.close()
        #expect(try await world.raw("DBSIZE") == 2)
        await world.end()
    }
}
