// SPDX-License-Identifier: Apache-2.0
import Redis
import Support
import Testing

/// Which servers a connection may be ready to, and what is said of the others.
@Suite("Server greeting", .timeLimit(.minutes(5)))
struct ServerGreetingTests {
    /// The fault that keeps a client from being ready to this server.
    private func refusal(_ url: String) async throws -> RedisFault {
        let world = try RedisWorld()
        try await world.start(url)
        let fault = try await world.waiting()
        await world.end()
        return fault
    }

    private static func clusterNode(_ more: String...) throws -> RedisServer {
        try RedisServer(
            arguments: ["--cluster-enabled", "yes", "--cluster-port", String(try Ports.free())] + more)
    }

    @Test func aNodeWithHalfTheSlotsIsNotReady() async throws {
        let server = try Self.clusterNode("--cluster-require-full-coverage", "no")
        _ = try server.command("CLUSTER ADDSLOTSRANGE 0 8191")
        let fault = try await refusal(server.url)
        #expect(fault.code.name == "cluster_down" && fault.text.contains("8192 of 16384 slots"), "\(fault)")
    }

    @Test func oneOfTwoNodesOfAClusterIsRefusedByName() async throws {
        let pair = try ClusterPair()
        try await pair.join()
        let fault = try await refusal(pair.first.url)
        #expect(fault.code.name == "unsupported" && fault.text.contains("one node of a Redis Cluster"), "\(fault)")
    }

    @Test func keysOfAnotherNodeEndTheConnectionAndAreNeverAbsent() async throws {
        let pair = try ClusterPair()
        // Not told what the cluster looks like, the client finds out by the first key of the other node.
        for server in [pair.first, pair.second] {
            _ = try server.command("ACL SETUSER w on >pw ~* +@all -info -cluster")
        }
        try await pair.join()
        let world = try RedisWorld()
        try await world.connect("redis://w:pw@127.0.0.1:\(pair.first.port)")
        // Slot 12182; the first node has 0-8191.
        try await world.send(1, "GET", "foo")
        #expect(try await world.answer(1) == .failed(1, .init(.moved)))
        #expect(try await world.waiting().code == .moved)
        await world.end()
    }

    @Test func `a server without room for more clients says so`() async throws {
        let server = try RedisServer(arguments: ["--maxclients", "1"])
        let first = try RedisWorld()
        try await first.connect(server.url)
        let fault = try await refusal(server.url)
        #expect(fault.publicText.contains("the server says: ERR max number of clients reached"), "\(fault)")
        await first.end()
    }

    /// A cluster that prefers host names, and has none.
    @Test func `a cluster is used although its nodes lack the names that it prefers`() async throws {
        let cluster = try await RedisCluster(
            arguments: ["--cluster-preferred-endpoint-type", "hostname"], hasReplicas: false)
        let world = try ClusterWorld()
        try await world.connect(cluster.nodes.map(\.url))
        for key in ["foo", "bar", "k1", "k2"] { #expect(try await world.ask("SET", key, "v") == .text("OK")) }
        await world.end()
    }

    @Test func aSentinelIsRefusedByName() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.write(Array("sentinel monitor m 127.0.0.1 1 1\n".utf8), to: "sentinel.conf")
        let port = try Ports.free()
        let sentinel = try ServerProcess(
            "redis-server", [file, "--sentinel", "--port", String(port), "--bind", "127.0.0.1", "--dir", folder.path],
            readyLine: "Sentinel ID is")
        let fault = try await refusal("redis://127.0.0.1:\(port)")
        #expect(fault.code.name == "unsupported" && fault.text.contains("Sentinel"), "\(fault)")
        sentinel.stop()
    }

    @Test func aUserWithoutScriptsIsRefusedByName() async throws {
        let server = try RedisServer()
        _ = try server.command("ACL SETUSER w on >pw ~* +@all -eval -evalsha")
        let fault = try await refusal("redis://w:pw@127.0.0.1:\(server.port)")
        #expect(fault.code.name == "no_permission" && fault.text.contains("EVAL"), "\(fault)")
    }

    @Test func rightsThatAreTakenAwayEndTheConnection() async throws {
        let server = try RedisServer()
        _ = try server.command("ACL SETUSER w on >pw ~* +@all")
        let world = try RedisWorld()
        try await world.connect("redis://w:pw@127.0.0.1:\(server.port)")
        let script = RedisScript("#!lua\nreturn redis.call('ZADD', KEYS[1], 1, 'm')")
        try await world.evaluate(1, script, ["k"], [])
        #expect(try await world.reply(1) == ":1")
        _ = try server.command("ACL SETUSER w -evalsha")
        for tag in 2...200 as ClosedRange<UInt64> { try? await world.evaluate(tag, script, ["k"], []) }
        let fault = try await world.waiting()
        #expect(fault.code.name == "no_permission", "\(fault)")
        await world.end()
    }
}

/// Two real nodes with half the slots each.
struct ClusterPair {
    let first: RedisServer
    let second: RedisServer
    private let busPort: UInt16

    init() throws {
        let ports = [try Ports.free(), try Ports.free()]
        busPort = ports[1]
        func node(_ port: UInt16) throws -> RedisServer {
            try RedisServer(arguments: ["--cluster-enabled", "yes", "--cluster-port", String(port)])
        }
        first = try node(ports[0])
        second = try node(ports[1])
    }

    /// Makes them a cluster that serves all slots.
    func join() async throws {
        _ = try first.command("CLUSTER ADDSLOTSRANGE 0 8191")
        _ = try second.command("CLUSTER ADDSLOTSRANGE 8192 16383")
        _ = try first.command("CLUSTER MEET 127.0.0.1 \(second.port) \(busPort)")
        let clock = ContinuousClock()
        let deadline = clock.now + Patience.duration
        while clock.now < deadline {
            let infos = try [first, second].map { try $0.command("CLUSTER INFO") }
            if infos.allSatisfy({ $0.contains("cluster_state:ok") && $0.contains("cluster_size:2") }) { return }
            try await Task.sleep(for: .milliseconds(20), tolerance: .zero)
        }
        throw SetupFault("the two nodes did not become a cluster")
    }
}
