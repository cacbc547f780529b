// SPDX-License-Identifier: Apache-2.0
import Glibc
import JSON
import LocalServers
import Processes
import Simulator
import StageWords
import Support
import Telemetry
import Testing
import Worker

/// A worker process that is cut off in the middle.
@Suite struct KillTests {
    /// The binary that is built beside the tests.
    private static func binary() throws -> String {
        var path = [CChar](repeating: 0, count: 4096)
        let count = readlink("/proc/self/exe", &path, path.count - 1)
        let own = String(decoding: path.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let folder = own.prefix(upTo: own.lastIndex(of: "/") ?? own.startIndex)
        let binary = "\(folder)/carillon"
        guard access(binary, X_OK) == 0 else { throw SetupFault("no binary at \(binary)") }
        return binary
    }

    static func start(_ file: String) async throws -> ServerProcess {
        let path = try binary()
        return try await offPool { try ServerProcess(path, ["run", "--config", file], readyLine: #""msg":"started""#) }
    }

    private static let answeredBefore = 600

    @Test func everyEventEndsAcceptedAfterAKillAndFewAreDoubled() async throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        settings.logLevel = .info
        settings.appLines = "    limits: {in_flight: 100}\n"
        // However late the kill comes, it comes in the middle: what is above the first hundreds gets no answer till then.
        var first = ScenarioRule.Match()
        first.count = Self.answeredBefore
        // At a pace, so that what was accepted long before the kill has its mark, however fast the worker is.
        var soon = ScenarioAnswer()
        soon.delayMs = 20
        var late = ScenarioAnswer()
        late.delayMs = 600_000
        settings.scenario = Scenario(rules: [
            ScenarioRule(first, .answer(soon)), ScenarioRule(ScenarioRule.Match(), .answer(late)),
        ])
        settings.sessionMs = LocalCluster.Settings.shortSessionMs
        let stage = try await Stage(settings)
        do {
            try await play(stage)
        } catch {
            await stage.close()
            throw error
        }
        await stage.close()
    }

    private func play(_ stage: Stage) async throws {
        let crowd = Crowd(name: "kill", count: 2000)
        let file = try stage.world.writeConfiguration()
        let simulator = stage.world.simulator
        try await stage.writeState(crowd.binds)
        let first = try await Self.start(file)
        try await stage.awaitBound(crowd)
        try await stage.writeEvents(crowd.messages)
        try await until("some hundred are pushed") { await simulator.counters.accepted >= Self.answeredBefore }
        first.send(SIGKILL)
        first.stop()
        await simulator.setScenario(Scenario(rules: []))
        let atKill = await simulator.counters.accepted
        #expect(atKill < crowd.count, "the kill came in the middle")
        let second = try await Self.start(file)
        try await until("everyone is pushed") {
            !crowd.accepted(await simulator.entries).contains(0)
        }
        try await until("everyone has a result") {
            Set(try await stage.look().results.compactMap { $0["uid"]?.string }).count == crowd.count
        }
        await offPoolStop(second)
        let seen = try await stage.look()
        let accepted = crowd.accepted(seen.pushes)
        let doubled = accepted.count { $0 > 1 }
        // In flight at the kill, and accepted ones whose results the broker or marks Redis had not acknowledged.
        #expect(doubled <= 100 + 300 && accepted.allSatisfy { $0 <= 2 }, "killed at \(atKill) of \(crowd.count)")
        #expect(try await stage.committedRecords(of: Configuration.Topics().events) == crowd.count)
        let wrong = seen.results.filter { $0["badge"]?.int != 1 || $0["verdict"]?.string != "accepted" }
        #expect(wrong.isEmpty, "badges stay exact")
    }

    private func offPoolStop(_ process: ServerProcess) async {
        _ = try? await offPool { process.stop() }
    }
}

extension Stage {
    /// A worker in another process has bound every token of a crowd.
    nonisolated fileprivate func awaitBound(_ crowd: Crowd) async throws {
        let servers = world.redisServers.prefix(world.redisCluster == nil ? 1 : RedisCluster.masterCount)
        try await until("all tokens are bound") {
            try await offPool {
                let keys = try servers.map { server in
                    Int(try server.command("DBSIZE").drop { !$0.isNumber }.prefix { $0.isNumber }) ?? 0
                }
                // Each bind makes at least two keys, the last of them the owner's.
                return keys.reduce(0, +) >= 2 * crowd.count
            }
        }
    }
}
