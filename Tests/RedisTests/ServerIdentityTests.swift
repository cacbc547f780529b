// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

@testable import Redis

/// Whether a new connection meets the server process of the last one.
@Suite("Server identity", .timeLimit(.minutes(5)))
struct ServerIdentityTests {
    private struct Seen: Equatable {
        var connections: UInt32
        var generation: UInt32
    }

    private func seen(_ world: RedisWorld) async throws -> Seen {
        try #require(
            await world.with { client, _ in
                Seen(connections: client.connectionCount, generation: client.serverGeneration)
            })
    }

    private func arguments(_ port: UInt16) -> [String] {
        ["--port", String(port), "--bind", "127.0.0.1", "--save", ""]
    }

    @Test func aLostConnectionMeetsTheSameServerAndARestartMakesAnother() async throws {
        let port = try Ports.free()
        let first = try ServerProcess("redis-server", arguments(port), readyLine: "Ready to accept")
        let world = try RedisWorld()
        try await world.connect("redis://127.0.0.1:\(port)")
        #expect(try await seen(world) == Seen(connections: 1, generation: 1))
        try await world.send(1, "CLIENT", "KILL", "SKIPME", "no", "TYPE", "normal")
        _ = try await world.waiting()
        try await world.ready()
        #expect(try await seen(world) == Seen(connections: 2, generation: 1))
        first.stop()
        let second = try ServerProcess("redis-server", arguments(port), readyLine: "Ready to accept")
        try await world.ready()
        #expect(try await seen(world) == Seen(connections: 3, generation: 2))
        await world.end()
        second.stop()
    }

    @Test func whereINFOIsRefusedEachConnectionCountsAsAnotherServer() async throws {
        let server = try RedisServer()
        _ = try server.command("ACL SETUSER worker on >pw ~* +@all -info")
        let world = try RedisWorld()
        try await world.connect("redis://worker:pw@127.0.0.1:\(server.port)")
        #expect(try await seen(world) == Seen(connections: 1, generation: 1))
        try await world.send(1, "CLIENT", "KILL", "SKIPME", "no", "TYPE", "normal")
        _ = try await world.waiting()
        try await world.ready()
        #expect(try await seen(world) == Seen(connections: 2, generation: 2))
        await world.end()
    }

    @Test(
        arguments: [
            ("# Server\r\nredis_version:7.0.0\r\nrun_id:abc\r\nport:1\r\n", "abc"), ("run_id:abc", "abc"),
            ("x_run_id:abc\r\n", nil), ("run_id:\r\n", nil), ("", nil),
            ("run_id:" + String(repeating: "a", count: 65), nil),
        ] as [(String, String?)])
    func theRunIDIsALineOfItsOwn(info: String, expected: String?) {
        var facts = RedisServerFacts()
        Array(info.utf8).withUnsafeBytes { facts.take(info: $0, nowMs: 1_700_000_012_000) }
        #expect(facts.runID == expected.map { Array($0.utf8) })
    }

    @Test func theClockAndTheLogAreRead() {
        var facts = RedisServerFacts()
        let info = "server_time_usec:1700000005000123\r\naof_enabled:0\r\n"
        Array(info.utf8).withUnsafeBytes { facts.take(info: $0, nowMs: 1_700_000_012_000) }
        #expect(facts.clockAheadMs == 7_000 && facts.keepsLog == false)
        let odd = "server_time_usec:-9223372036854775808\r\naof_enabled:1\r\n"
        Array(odd.utf8).withUnsafeBytes { facts.take(info: $0, nowMs: 1_700_000_012_000) }
        #expect(facts.keepsLog == true)
        let none = "server_time_usec:soon\r\n"
        Array(none.utf8).withUnsafeBytes { facts.take(info: $0, nowMs: 1) }
        #expect(facts.clockAheadMs == nil)
    }

    @Test func aClusterRefusesKeysOfTwoSlots() async throws {
        let server = try RedisServer(arguments: ["--cluster-enabled", "yes"])
        _ = try server.command("CLUSTER ADDSLOTSRANGE 0 16383")
        let world = try RedisWorld()
        try await world.connect(server.url)
        try await world.send(1, "MGET", "a", "b")
        guard case .failed(_, let fault) = try await world.answer(1) else {
            Issue.record("answered")
            return await world.end()
        }
        #expect(fault.code == .crossSlot && fault.scope == .call, "\(fault)")
        try await world.send(2, "PING")
        #expect(try await world.reply(2) == "+PONG")
        await world.end()
    }
}
