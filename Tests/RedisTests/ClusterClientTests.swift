// SPDX-License-Identifier: Apache-2.0
import Crypto
import EventLoop
import Redis
import Support
import Testing

/// A client against real nodes: routing, slots that move, nodes that fail over, die or hang.
@Suite("Cluster client", .serialized, .timeLimit(.minutes(10)))
struct ClusterClientTests {
    private static func seeds(_ cluster: RedisCluster) -> [String] { cluster.nodes.prefix(2).map(\.url) }

    /// Hash tags, `count` of each master of a fresh cluster.
    private static func names(_ cluster: RedisCluster, _ count: Int) throws -> [[String]] {
        var names: [[String]] = [[], [], []]
        var number = 0
        while names.contains(where: { $0.count < count }) {
            number += 1
            let slot = try cluster.slot(of: "u\(number)")
            let node = slot * 3 / 16_384
            if names[node].count < count { names[node].append("u\(number)") }
        }
        return names
    }

    @Test func commandsGoToTheNodeOfTheirKeyAndScriptsAreLoadedOnEach() async throws {
        let cluster = try await RedisCluster(hasReplicas: false)
        let world = try ClusterWorld()
        // One seed alone tells of the others.
        try await world.connect([cluster.nodes[2].url])
        for number in 0..<300 { await world.send(["SET", "k\(number)", "v\(number)"]) }
        for number in 0..<300 {
            #expect(try await world.ask("GET", "k\(number)") == .text("v\(number)"))
        }
        for number in 0..<60 {
            let answer = try await world.answer(
                await world.evaluate(CounterLoad.script, ["{u\(number)}", "{u\(number)}x"]))
            #expect(answer == .number(1))
        }
        for node in cluster.nodes { _ = try node.command("SCRIPT FLUSH") }
        for number in 0..<60 {
            let answer = try await world.answer(
                await world.evaluate(CounterLoad.script, ["{u\(number)}", "{u\(number)}x"]))
            #expect(answer == .number(2), "a script that a node has forgotten is sent again")
        }
        #expect(try await world.answer(await world.countKeys()) == .text("420 keys, 0 away"))
        // A busy machine's nodes may miss each other for a while; none of them sends a command elsewhere.
        #expect(world.sum("carillon_redis_redirects_total", having: "code=\"moved\"") == 0)
        for node in cluster.nodes {
            #expect(world.sum("carillon_redis_connects_total", having: "node=\"127.0.0.1:\(node.port)\"") == 1)
            #expect(world.sum("carillon_redis_command_seconds_count", having: "node=\"127.0.0.1:\(node.port)\"") > 50)
        }
        await world.end()
    }

    @Test func aSlotThatMovesUnderLoadLosesDoublesAndReordersNothing() async throws {
        let cluster = try await RedisCluster(hasReplicas: false)
        let world = try ClusterWorld()
        try await world.connect(Self.seeds(cluster))
        let slot = try cluster.slot(of: "moving")
        let source = try cluster.owner(of: slot)
        let target = (source + 1) % 3
        let load = CounterLoad(world)
        let running = Task { try await load.run(["moving", "still"] + (0..<20).map { "u\($0)" }) }
        func wait(_ holds: () async -> Bool) async throws {
            let clock = ContinuousClock()
            let deadline = clock.now + Patience.duration
            while await !holds(), clock.now < deadline {
                try await Task.sleep(for: .milliseconds(5), tolerance: .zero)
            }
        }
        func progress(_ more: Int) async throws {
            let from = await load.tally.counted
            try await wait { await load.tally.counted >= from + more }
        }
        var again: Double { world.sum("carillon_redis_redirects_total", having: "code=\"try_again\"") }
        for round in 0..<3 {
            let (from, to) = round.isMultiple(of: 2) ? (source, target) : (target, source)
            try await progress(500)
            #expect(try cluster.owner(of: slot) == from)
            try cluster.beginMove(of: slot, to: to)
            // One of two keys: neither node can run the script now.
            try cluster.moveKeys(of: slot, to: to, count: 1)
            let before = again
            try await wait { again > before }
            while try cluster.moveKeys(of: slot, to: to) > 0 {}
            try cluster.endMove(of: slot, to: to)
        }
        try await progress(500)
        await load.stop()
        try await running.value
        let tally = await load.tally
        #expect(tally.wrong.isEmpty && tally.lost == 0 && tally.faults.isEmpty && tally.unordered == 0, "\(tally)")
        let doubled = await world.look { $0.recorder.doubled }
        #expect(doubled == 0)
        let moved = world.sum("carillon_redis_redirects_total", having: "code=\"moved\"")
        #expect(moved > 0 && again > 0)
        print("resharding: \(tally.counted) steps, moved \(moved), try_again \(again)")
        await world.end()
    }

    @Test func keysOnTheirWayAreAskedForWhereTheyAre() async throws {
        let cluster = try await RedisCluster(hasReplicas: false)
        let world = try ClusterWorld()
        try await world.connect(Self.seeds(cluster))
        let slot = try cluster.slot(of: "g")
        let source = try cluster.owner(of: slot)
        #expect(try await world.ask("SET", "{g}1", "one") == .text("OK"))
        try cluster.beginMove(of: slot, to: (source + 1) % 3)
        #expect(try await world.ask("GET", "{g}1") == .text("one"), "it has not gone yet")
        try cluster.moveKeys(of: slot, to: (source + 1) % 3)
        #expect(try await world.ask("GET", "{g}1") == .text("one"), "by ASK, never absent")
        #expect(try await world.ask("SET", "{g}2", "two") == .text("OK"), "a new key is made where it goes")
        let before = await world.generation("g")
        // What belongs to one server is not sent on.
        let scan = await world.send(["HSCAN", "{g}1", "7"], order: .fixed)
        #expect(try await world.answer(scan) == .failed(RedisFault(.ask)))
        try cluster.endMove(of: slot, to: (source + 1) % 3)
        let again = await world.send(["HSCAN", "{g}1", "7"], order: .fixed)
        #expect(try await world.answer(again) == .failed(RedisFault(.moved)))
        #expect(await world.generation("g") != before)
        #expect(try await world.ask("GET", "{g}2") == .text("two"))
        #expect(world.sum("carillon_redis_redirects_total", having: "code=\"ask\"") >= 3)
        await world.end()
    }

    @Test func aMasterThatHandsOverUnderLoadLosesNothing() async throws {
        let cluster = try await RedisCluster()
        let world = try ClusterWorld()
        try await world.connect(Self.seeds(cluster))
        let names = try Self.names(cluster, 5)
        let load = CounterLoad(world)
        let running = Task { try await load.run(names.flatMap { $0 }) }
        for (index, count) in [(3, 300), (0, 900)] {
            try await load.awaitCount(count)
            try await cluster.awaitReplica(index)
            try await cluster.failOver(to: index)
        }
        let from = await load.tally.counted
        try await load.awaitCount(from + 1000)
        await load.stop()
        try await running.value
        let tally = await load.tally
        #expect(tally.wrong.isEmpty && tally.lost == 0 && tally.unordered == 0, "\(tally)")
        print("hand-over: \(tally.counted) steps, faults \(tally.faults)")
        await world.end()
    }

    @Test func aMasterThatDiesHoldsUpItsOwnSlotsUntilItsReplicaServesThem() async throws {
        let cluster = try await RedisCluster()
        let world = try ClusterWorld()
        try await world.connect(Self.seeds(cluster))
        let names = try Self.names(cluster, 3)
        for name in names.flatMap({ $0 }) { #expect(try await world.ask("SET", "{\(name)}", name) == .text("OK")) }
        // A master that dies takes along what it had not copied.
        for index in 3..<6 {
            while try cluster.nodes[index].command("DBSIZE") != ":3" {
                try await Task.sleep(for: .milliseconds(10), tolerance: .zero)
            }
        }
        let generation = await world.generation(names[0][0])
        cluster.nodes[0].kill()
        try await world.until("the loss was not noticed") { !($0.client?.isWhole ?? true) }
        let isReady = await world.look { $0.client?.isReady ?? false }
        #expect(isReady)
        let faults = await world.look { $0.client.map { RedisServers.cluster($0).faults.map(\.place) } ?? [] }
        #expect(faults == ["redis://127.0.0.1:\(cluster.nodes[0].port)/0"])
        #expect(try await world.answer(await world.countKeys()) == .text("6 keys, 1 away"))
        for name in names[1] + names[2] { #expect(try await world.ask("GET", "{\(name)}") == .text(name)) }
        #expect(try await world.ask("GET", "{\(names[0][0])}") != .text(""), "never told as absent")
        try await cluster.awaitMaster(3)
        try await world.until("the replica's slots are not served") { $0.client?.isWhole ?? false }
        for name in names.flatMap({ $0 }) { #expect(try await world.ask("GET", "{\(name)}") == .text(name)) }
        #expect(await world.generation(names[0][0]) != generation)
        await world.end()
    }

    @Test func ofAMasterThatDiesUnderLoadNothingRunsTwice() async throws {
        let cluster = try await RedisCluster()
        let world = try ClusterWorld()
        try await world.connect(Self.seeds(cluster))
        let names = try Self.names(cluster, 10)
        for index in 3..<6 { try await cluster.awaitReplica(index) }
        let load = CounterLoad(world)
        let running = Task { try await load.run(names.flatMap { $0 }) }
        try await load.awaitCount(3000)
        cluster.nodes[0].kill()
        try await cluster.awaitMaster(3)
        try await world.until("the replica's slots are not served") { $0.client?.isWhole ?? false }
        try await load.awaitCount(await load.tally.counted + 3000)
        await load.stop()
        try await running.value
        let tally = await load.tally
        // How much the dead master had not copied is the processes' race: nothing ran twice, and nothing in a wrong order.
        #expect(tally.wrong.isEmpty && tally.unordered == 0, "\(tally)")
        print("master killed: \(tally.counted) steps, \(tally.lost) answered ones lost, faults \(tally.faults)")
        await world.end()
    }

    @Test func aNodeThatHangsDelaysItsOwnSlotsOnly() async throws {
        let cluster = try await RedisCluster(nodeTimeoutMs: 30_000, hasReplicas: false)
        let world = try ClusterWorld()
        try await world.connect(Self.seeds(cluster))
        let names = try Self.names(cluster, 2)
        cluster.nodes[1].freeze()
        let stuck = await world.send(["SET", "{\(names[1][0])}", "x"])
        for _ in 0..<600 { await world.send(["GET", "{\(names[1][1])}"]) }
        for _ in 0..<100 {
            #expect(try await world.ask("SET", "{\(names[0][0])}", "a") == .text("OK"))
            #expect(try await world.ask("SET", "{\(names[2][0])}", "c") == .text("OK"))
        }
        let early = await world.look { $0.recorder.answers[stuck] }
        #expect(early == nil)
        let depth = await world.look { $0.client?.pipelineDepth ?? .max }
        #expect(depth < 10, "there is room for the others")
        cluster.nodes[1].thaw()
        #expect(try await world.answer(stuck) == .text("OK"))
        await world.end()
    }

    @Test func aClusterOverTLSWithAUserOfItsOwnIsReachedByTheNamesThatItAnnounces() async throws {
        let minted = try MintedCertificate(isForPeers: true)
        let folder = try TemporaryFolder()
        let chain = try folder.write(minted.chainPEM, to: "chain.pem")
        let key = try folder.write(minted.privateKeyPEM, to: "key.pem")
        let authority = try folder.write(minted.authorityPEM, to: "ca.pem")
        let cluster = try await RedisCluster(
            arguments: [
                "--cluster-announce-hostname", "localhost", "--cluster-preferred-endpoint-type", "hostname", "--user",
                "w", "on", ">pw", "~*", "+@all",
            ], hasReplicas: false,
            tlsArguments: [
                "--tls-cert-file", chain, "--tls-key-file", key, "--tls-ca-cert-file", authority, "--tls-auth-clients",
                "no",
            ])
        let world = try ClusterWorld()
        try await world.connect(["rediss://w:pw@localhost:\(cluster.tlsPorts[0])?ca_file=\(authority)"])
        for number in 0..<50 { #expect(try await world.ask("SET", "k\(number)", "v") == .text("OK")) }
        let slot = try cluster.slot(of: "k1")
        try cluster.beginMove(of: slot, to: (try cluster.owner(of: slot) + 1) % 3)
        #expect(try await world.ask("SET", "{k1}new", "v") == .text("OK"), "ASK leads to a TLS port")
        #expect(world.sum("carillon_redis_redirects_total", having: "code=\"ask\"") > 0)
        await world.end()
        let stranger = try ClusterWorld()
        try await stranger.start(["rediss://w:no@localhost:\(cluster.tlsPorts[0])?ca_file=\(authority)"])
        try await stranger.until("the login was taken") { world in
            guard let client = world.client else { return false }
            return RedisServers.cluster(client).faults.contains { $0.fault?.code == .authentication }
        }
        await stranger.end()
    }

    @Test func aServerThatIsNoClusterIsRefusedByName() async throws {
        let server = try RedisServer()
        let world = try ClusterWorld()
        try await world.start([server.url])
        try await world.until("no fault") { $0.client.map { !RedisServers.cluster($0).faults.isEmpty } ?? false }
        try await world.until("another fault") { world in
            guard let client = world.client else { return false }
            return RedisServers.cluster(client).faultText?.contains("is not a node of a Redis Cluster") ?? false
        }
        await world.end()
    }

    @Test func aUserWithoutTheRightToTheMapIsReported() async throws {
        let cluster = try await RedisCluster(hasReplicas: false)
        for node in cluster.nodes { _ = try node.command("ACL SETUSER w on >pw ~* +@all -cluster|slots") }
        let world = try ClusterWorld()
        try await world.start(["redis://w:pw@127.0.0.1:\(cluster.nodes[0].port)"])
        try await world.until("no fault") { world in
            guard let client = world.client else { return false }
            return RedisServers.cluster(client).faultText?.contains("grant it CLUSTER SLOTS") ?? false
        }
        await world.end()
    }
}
