// SPDX-License-Identifier: Apache-2.0
import PushCore
import Support
import Testing

@testable import Worker

/// What one user costs Redis, by `MEMORY USAGE`; docs/contract/limits.md quotes the printed numbers.
@Suite(.timeLimit(.minutes(10)))
struct StateMemoryTests {
    private let base = StateWorld.base

    private func bytes(_ world: StateWorld, _ uid: String) async throws -> [String: Int64] {
        var sizes: [String: Int64] = [:]
        for key in ["c:u", "c:s", "c:l", "c:x"] {
            sizes[key] =
                try await world.raw("MEMORY", "USAGE", "\(key):{\(StateWorld.app):\(uid)}", "SAMPLES", "0") ?? 0
        }
        return sizes
    }

    private func bind(_ world: StateWorld, _ uid: String, _ count: Int) async throws {
        for index in 0..<count {
            let token = TokenRecord(
                hex: String(repeating: "ab", count: 30) + "\(1000 + index)", environment: .production,
                topic: "com.example.im", type: .alert, language: "zh-Hans", zone: "Asia/Shanghai", boundMs: base)
            try await world.change(
                uid, .bind(.init(device: "device-\(1000 + index)-0123456789", token: token, version: 1)))
        }
    }

    @Test func anOrdinaryUserCostsAFewKilobytes() async throws {
        let world = try StateWorld()
        try await world.connect()
        try await bind(world, "u", 2)
        for index in 0..<50 as Range<Int64> {
            _ = try await world.claim(
                .message(
                    "u", "message-\(index)-0123456789", "conversation-\(index % 10)", sent: base + index, seq: index))
            if index % 2 == 0 {
                let mark = UserState.ReadMark(seq: index)
                try await world.change("u", .read(conversation: "conversation-\(index % 10)", upTo: mark), at: index)
            }
        }
        let sizes = try await bytes(world, "u")
        let sum = sizes.values.reduce(0, +)
        let mark =
            try await world.raw(
                "MEMORY", "USAGE", "c:d1:{\(StateWorld.app):u}mmessage-1-0123456789") ?? .max
        print("ordinary user (2 devices, 10 conversations, 25 unread): \(sum) bytes \(sizes); a message's mark \(mark)")
        #expect(sum < 10_000 && mark < 200)
        await world.end()
    }

    /// Everything at its cap at once, identifiers at their longest.
    @Test func theWorstUserIsBounded() async throws {
        let world = try StateWorld()
        try await world.connect()
        let long = String(repeating: "x", count: 50)
        try await bind(world, "u", 80)
        // A report keeps what went of its total, for a day.
        try await world.change("u", .badgeReport(device: "d", value: 1000, clientMs: base))
        for index in 0..<2200 as Range<Int64> {
            _ = try await world.claim(
                .message("u", "\(long)-\(10_000 + index)", "c\(index / 1100)", sent: base + index, seq: index))
            if index == 1099 {
                try await world.change("u", .read(conversation: "c0", upTo: .init(seq: 1099)), at: 1100)
            }
        }
        let name = String(repeating: "n", count: 123)
        var largest: Int64 = 0
        for index in 0..<2100 as Range<Int64> {
            for step in 0..<(index < 1100 ? 9 : 1) as Range<Int64> {
                // Times cross, so that each stays in the history of its conversation.
                let mark = UserState.ReadMark(seq: 1_000_000 - step, ms: base + step)
                try await world.change("u", .read(conversation: "\(name)\(index)", upTo: mark), at: 2000 - step)
            }
            if index % 100 == 99 {
                let size = try await world.raw("MEMORY", "USAGE", "c:s:{\(StateWorld.app):u}", "SAMPLES", "0") ?? .max
                largest = max(largest, size)
            }
        }
        var sizes = try await bytes(world, "u")
        sizes["c:s"] = max(largest, sizes["c:s"] ?? 0)
        let sum = sizes.values.reduce(0, +)
        print("worst user, all at its cap: \(sum) bytes \(sizes)")
        #expect(sum < 1_500_000)
        #expect(try await world.raw("HLEN", "c:u:{\(StateWorld.app):u}") ?? .max <= 64)
        #expect(try await world.raw("HLEN", "c:s:{\(StateWorld.app):u}") ?? .max <= 2048 + 3)
        #expect(try await world.raw("ZCARD", "c:l:{\(StateWorld.app):u}") ?? .max <= 1000)
        #expect(try await world.raw("ZCARD", "c:x:{\(StateWorld.app):u}") ?? .max <= 1000)
        await world.end()
    }
}
