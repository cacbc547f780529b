// SPDX-License-Identifier: Apache-2.0
import Demo
import EventLoop
import Foundation
import LocalServers
import Redis
import StageWords
import Support
import Testing
import Worker

/// The rights that `check` prints are enough, and none of them is more than enough.
@Suite struct RedisRightsTests {
    private static let root = String(#filePath.dropLast("/Tests/EndToEndTests/Faults/RedisRightsTests.swift".count))

    private static func lines(_ name: String) throws -> [[UInt8]] {
        try readFile("\(root)/Config/demo/\(name)").split(separator: UInt8(ascii: "\n")).map { Array($0) }
    }

    enum Servers: CaseIterable {
        case one, cluster, sentinels

        var topology: RedisTopology {
            get throws {
                let endpoint = try RedisEndpoint(url: "redis://localhost")
                switch self {
                case .one: return .single(endpoint)
                case .cluster: return .cluster([endpoint])
                case .sentinels:
                    return .sentinel(RedisSentinels(masterName: "bells", nodes: [endpoint], master: endpoint))
                }
            }
        }
    }

    /// What an operator types into a server's console, as a line of its configuration.
    private static func configured(_ line: String) -> String {
        line.replacingOccurrences(of: "ACL SETUSER", with: "user").replacingOccurrences(of: ">PASSWORD", with: ">pw")
    }

    @Test(arguments: Servers.allCases)
    func theDemoRunsWithAUserWhoMayDoNothingElse(servers: Servers) async throws {
        let folder = try TemporaryFolder()
        let password = try folder.write(Array("pw\n".utf8), to: "password")
        let topology = try servers.topology
        let login = "user: carillon, password_file: \(password)"
        var settings = LocalCluster.Settings()
        settings.scenario = DemoRun.deadTokens(nowMs: Loop.wallMs())
        settings.templates = "\(Self.root)/Config/templates.yaml"
        settings.usesRedisCluster = servers == .cluster
        settings.usesSentinels = servers == .sentinels
        settings.sentinelLines = RedisRights.sentinelLine(topology).map { [Self.configured($0)] } ?? []
        settings.sentinelMembers = servers == .sentinels ? ", \(login)" : ""
        let argument = "--" + Self.configured(RedisRights.line(topology))
        settings.redisArguments = argument.split(separator: " ").map(String.init)
        settings.redisLines = "  user: carillon\n  password_file: \(password)\n"
        try await Stage.with(settings) { stage in
            let run = DemoRun(
                cluster: stage.world, worldFile: try readFile("\(Self.root)/Config/demo/world.json"),
                state: try Self.lines("state.ndjson"), events: try Self.lines("events.ndjson"))
            let outcomes = try await run.play(worker: try await stage.worker) { _, _ in }
            #expect(outcomes.count == 25)
            #expect(try await stage.metric("carillon_redis_errors_total", "no_permission") == 0)
            #expect(try await stage.page("/readyz").status == 200)
            for server in stage.world.redisServers {
                #expect(try server.command("ACL LOG") == "*0", "nothing was refused")
            }
            if let group = stage.world.sentinels {
                for index in group.ports.indices {
                    #expect(try group.ask(index, "ACL LOG").hasPrefix("*0"), "nothing was refused")
                }
            }
        }
    }
}
