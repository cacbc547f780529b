// SPDX-License-Identifier: Apache-2.0
import Foundation
import JSON
import LocalServers
import Processes
import Support
import Testing

/// What `check` says of Redis where there is more than one server: each by its name.
struct CheckRedisTests {
    /// Of one check: grade, part, place and text.
    private struct Told {
        var grade: String
        var part: String
        var place: String
        var text: String
    }

    private static func check(_ path: String) async throws -> [Told] {
        let run = try await offPool { try CommandRun("check", "--json", "--config", path) }
        return try run.lines.map { line in
            let tree = try JSONTree(parsing: Array(line.utf8))
            func text(_ key: String) -> String { tree[key]?.string ?? "" }
            return Told(grade: text("grade"), part: text("check"), place: text("place"), text: text("text"))
        }
    }

    private static func place(_ server: RedisServer) -> String { "redis://127.0.0.1:\(server.port)/0" }

    @Test func everyNodeOfAClusterIsLookedAtByName() async throws {
        var settings = LocalCluster.Settings()
        settings.usesRedisCluster = true
        settings.redisClusterTimeoutMs = 20_000
        let world = try await LocalCluster(settings)
        let cluster = try #require(world.redisCluster)
        for index in RedisCluster.masterCount..<cluster.nodes.count { try await cluster.awaitReplica(index) }
        // The map names no replica that has copied nothing.
        for key in 0..<64 { _ = try cluster.nodes[0].command("SET k\(key) 1") }
        let named = cluster.nodes.map { ":\($0.port)\r\n" }
        try await until("the first node names all others") {
            let map = try cluster.nodes[0].command("CLUSTER SLOTS")
            return named.allSatisfy(map.contains)
        }
        // The other nodes are told by this one.
        let text = world.configurationText.replacingOccurrences(of: cluster.urls, with: "[\(cluster.nodes[0].url)]")
        let path = try world.folder.write(Array(text.utf8), to: "one-node.yaml")

        let well = try await Self.check(path)
        #expect(!well.contains { $0.grade == "fail" }, "\(well)")
        for (index, node) in cluster.nodes.enumerated() {
            let own = well.filter { $0.place == Self.place(node) }
            #expect(own.contains { $0.text.contains(index < 3 ? "master of 546" : "a replica") }, "\(own)")
            #expect(own.contains { $0.text == "maxmemory-policy noeviction" }, "\(own)")
            #expect(own.contains { $0.grade == "warn" && $0.text.hasPrefix("appendonly no") }, "\(own)")
            if index < 3 { #expect(own.contains { $0.text == "1 replica" }) }
        }

        _ = try cluster.nodes[1].command("ACL SETUSER default -zadd -@all +@all -zadd -cluster|info")
        _ = try cluster.nodes[4].command("CONFIG SET maxmemory-policy allkeys-lru")
        cluster.nodes[2].freeze()
        let ill = try await Self.check(path)
        cluster.nodes[2].thaw()
        let fails = ill.filter { $0.grade == "fail" }
        #expect(fails.map(\.place) == [Self.place(cluster.nodes[1]), Self.place(cluster.nodes[2])], "\(fails)")
        #expect(fails.first?.text.contains("the user default lacks +zadd +cluster|info: grant it") ?? false, "\(fails)")
        #expect(fails.last?.text.hasPrefix("timeout") ?? false, "\(fails)")
        #expect(ill.contains { $0.place == Self.place(cluster.nodes[4]) && $0.text.contains("allkeys-lru") })
        await world.close()
    }

    @Test func everySentinelAndTheMasterAreLookedAtByName() async throws {
        var settings = LocalCluster.Settings()
        settings.usesSentinels = true
        let world = try await LocalCluster(settings)
        let group = try #require(world.sentinels)
        let path = try world.writeConfiguration()
        let places = group.ports.map { "redis://127.0.0.1:\($0)/0" }

        let well = try await Self.check(path)
        #expect(!well.contains { $0.grade == "fail" }, "\(well)")
        for place in places {
            #expect(
                well.contains {
                    $0.part == "sentinel" && $0.place == place
                        && $0.text.hasSuffix("bells is \(Self.place(world.redis))")
                }, "\(well)")
        }
        let master = well.filter { $0.place == Self.place(world.redis) }
        #expect(master.contains { $0.text == "is a master" }, "\(well)")
        #expect(well.contains { $0.text.contains("+info +sentinel|get-master-addr-by-name +sentinel|master") })

        group.sentinels[1].stop()
        let without = try await Self.check(path)
        let away = without.filter { $0.place == places[1] }
        #expect(away.map(\.grade) == ["warn"] && away.map(\.part) == ["sentinel"], "\(away)")
        #expect(!without.contains { $0.grade == "fail" }, "a worker asks the others")

        let other = world.configurationText.replacingOccurrences(of: "master: bells", with: "master: gongs")
        let unknown = try await Self.check(try world.folder.write(Array(other.utf8), to: "unknown.yaml"))
        #expect(unknown.contains { $0.grade == "fail" && $0.place == places[0] && $0.text.contains("gongs") })
        #expect(unknown.contains { $0.grade == "fail" && $0.place == "gongs" })
        await world.close()
    }
}
