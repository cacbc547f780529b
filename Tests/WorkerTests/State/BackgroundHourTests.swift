// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore
import Redis
import Support
import Testing

@testable import Worker

/// `limits.background_per_hour`: who has a place in a device's hour, and who waits for the next.
@Suite(.timeLimit(.minutes(10)))
struct BackgroundHourTests {
    private static let hourMs: Int64 = 3_600_000

    /// - Parameters:
    ///   - push: a letter.
    ///   - sent: seconds after the base; nil: when it asks.
    ///   - seconds: when it asks, after the base.
    private static func ask(
        _ world: StateWorld, _ push: String, sent: Int64? = nil, at seconds: Int64, device: String = "phone",
        hasWaited: Bool = false, limit: Int = 2
    ) async throws -> HourAnswer? {
        let id = PushIDPrefix(app: StateWorld.app, uid: "u", kind: .message, id: push).id()
        return try await world.ask(
            {
                try $0.takePlace(
                    app: StateWorld.app, uid: "u", device: device, id,
                    sentMs: StateWorld.base + 1000 * (sent ?? seconds),
                    limit: limit, hasWaited: hasWaited, nowMs: StateWorld.base + 1000 * seconds, tag: $1)
            }, { $0.int64.map { HourAnswer($0) } })
    }

    @Test func `a device's hour has so many places, and the next begins with the first push after it`() async throws {
        let world = try StateWorld()
        try await world.connect()
        #expect(try await Self.ask(world, "a", at: 0) == .place)
        #expect(try await Self.ask(world, "b", at: 600) == .place)
        #expect(try await Self.ask(world, "c", at: 1200) == .wait(ms: 2_400_000))
        #expect(try await Self.ask(world, "other", at: 1200, device: "pad") == .place)
        // A repeat of the last push has its place.
        #expect(try await Self.ask(world, "b", sent: 600, at: 1300) == .place)
        #expect(try await Self.ask(world, "d", at: 5000) == .place)
        #expect(try await Self.ask(world, "e", at: 5100) == .place)
        #expect(try await Self.ask(world, "f", at: 5200) == .wait(ms: Self.hourMs - 200_000))
        #expect(try await world.raw("TTL", "c:f:{im:u}") == 7200)
        await world.end()
    }

    @Test func `at the end of the hour the newest that waits goes for all of them`() async throws {
        let world = try StateWorld()
        try await world.connect()
        #expect(try await Self.ask(world, "a", at: 0, limit: 1) == .place)
        for (push, at) in [("b", 10), ("d", 30), ("c", 20)] as [(String, Int64)] {
            #expect(try await Self.ask(world, push, at: at, limit: 1) == .wait(ms: Self.hourMs - 1000 * at))
        }
        #expect(try await Self.ask(world, "b", sent: 10, at: 3600, hasWaited: true, limit: 1) == .wait(ms: 10_000))
        #expect(try await Self.ask(world, "d", sent: 30, at: 3601, hasWaited: true, limit: 1) == .place)
        #expect(try await Self.ask(world, "c", sent: 20, at: 3602, hasWaited: true, limit: 1) == .merged)
        #expect(try await Self.ask(world, "b", sent: 10, at: 3610, hasWaited: true, limit: 1) == .merged)
        await world.end()
    }

    @Test func `if the newest ended otherwise, the next goes`() async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await Self.ask(world, "a", at: 0, limit: 1)
        _ = try await Self.ask(world, "b", at: 10, limit: 1)
        _ = try await Self.ask(world, "revoked", at: 20, limit: 1)
        #expect(try await Self.ask(world, "b", sent: 10, at: 3605, hasWaited: true, limit: 1) == .wait(ms: 5_000))
        #expect(try await Self.ask(world, "b", sent: 10, at: 3610, hasWaited: true, limit: 1) == .place)
        await world.end()
    }

    /// It was sent before a push that has a place, and came later: no push includes it.
    @Test func `a push that is late is not lost`() async throws {
        let world = try StateWorld()
        try await world.connect()
        #expect(try await Self.ask(world, "a", sent: 100, at: 100, limit: 1) == .place)
        #expect(try await Self.ask(world, "late", sent: 50, at: 110, limit: 1) == .wait(ms: Self.hourMs - 10_000))
        #expect(try await Self.ask(world, "late", sent: 50, at: 3700, hasWaited: true, limit: 1) == .place)
        await world.end()
    }

    @Test func `a clock that was ahead costs at most an hour, and one user keeps few devices`() async throws {
        let world = try StateWorld()
        try await world.connect()
        #expect(try await Self.ask(world, "a", at: 1_000_000, limit: 1) == .place)
        #expect(try await Self.ask(world, "b", at: 0, limit: 1) == .wait(ms: Self.hourMs))
        #expect(try await Self.ask(world, "c", at: 3600, limit: 1) == .place)
        for number in 0..<300 { _ = try await Self.ask(world, "a", at: 3600, device: "d\(number)") }
        #expect(try await world.raw("HLEN", "c:f:{im:u}") ?? .max <= 256)
        try await world.raw("HSET", "c:f:{im:u}", "phone", "nothing that this version reads")
        #expect(try await Self.ask(world, "d", at: 3601, limit: 1) == .place)
        await world.end()
    }
}
