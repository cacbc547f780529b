import Demo
import EventLoop
import LocalServers
import Redis
import Support
import Testing
import Worker

/// The rights that `check` prints are enough, and none of them is more than enough.
@Suite struct RedisRightsTests {
    private static let root = String(#filePath.dropLast("/Tests/EndToEndTests/Faults/RedisRightsTests.swift".count))

    private static func lines(_ name: String) throws -> [[UInt8]] {
        try readFile("\(root)/Config/demo/\(name)").split(separator: UInt8(ascii: "\n")).map { Array($0) }
    }

    @Test(arguments: [false, true])
    func theDemoRunsWithAUserWhoMayDoNothingElse(onRedisCluster: Bool) async throws {
        let folder = try TemporaryFolder()
        let password = try folder.write(Array("pw\n".utf8), to: "password")
        let endpoint = try RedisEndpoint(url: "redis://localhost")
        let rules = RedisRights.rules(onRedisCluster ? .cluster([endpoint]) : .single(endpoint))
        var settings = LocalCluster.Settings()
        settings.scenario = DemoRun.deadTokens(nowMs: Loop.wallMs())
        settings.templates = "\(Self.root)/Config/templates.yaml"
        settings.usesRedisCluster = onRedisCluster
        settings.redisArguments = ["--user", "carillon", "on", ">pw"] + rules
        settings.redisLines = "  user: carillon\n  password_file: \(password)\n"
        try await Stage.with(settings) { stage in
            let run = DemoRun(
                cluster: stage.world, worldFile: try readFile("\(Self.root)/Config/demo/world.json"),
                state: try Self.lines("state.ndjson"), events: try Self.lines("events.ndjson"))
            let outcomes = try await run.play(worker: try await stage.worker) { _, _ in }
            #expect(outcomes.count == 25)
            #expect(try await stage.metric("carillon_redis_errors_total", "no_permission") == 0)
            #expect(try await stage.page("/readyz").status == 200)
            let servers = stage.world.redisCluster?.nodes ?? [stage.world.redis]
            for server in servers {
                #expect(try server.command("ACL LOG") == "*0", "nothing was refused")
            }
        }
    }
}
