// SPDX-License-Identifier: Apache-2.0
import Crypto
import Glibc
import Redis
import Support
import Telemetry
import Testing

/// A client of the master that real Sentinels name.
@Suite("Sentinel", .serialized, .timeLimit(.minutes(10)))
struct SentinelTests {
    private static func sentinels(
        _ ports: [UInt16], name: String = SentinelGroup.masterName, login: String = "", password: Secret? = nil
    ) throws -> RedisSentinels {
        let nodes = try ports.map { try RedisEndpoint(url: "redis://\(login)127.0.0.1:\($0)") }
        var master = RedisEndpoint(.tcp(host: "127.0.0.1", port: 1))
        master.password = password
        return RedisSentinels(masterName: name, nodes: nodes, master: master)
    }

    private static var quick: RedisLimits {
        var limits = RedisWorld.quick
        limits.commandTimeoutNanos = 1_000_000_000
        limits.connectTimeoutNanos = 1_000_000_000
        return limits
    }

    @Test func `the master is the one that a majority of all named Sentinels gives`() async throws {
        let group = try await SentinelGroup()
        let world = try RedisWorld()
        // Nobody listens at the first, and at the second no Sentinel does.
        try await world.start(
            Self.sentinels([try Ports.free(), group.servers[1].port] + group.ports), limits: Self.quick)
        try await world.ready()
        try await world.send(1, "SET", "k", "v")
        #expect(try await world.reply(1) == "+OK")
        #expect(try group.servers[0].command("GET k").contains("v"))
        await world.end()
    }

    /// As after a failover that the first one did not see.
    @Test func `a Sentinel that is cut off with an old master is outvoted`() async throws {
        let group = try await SentinelGroup()
        let old = try RedisServer()
        let folder = try TemporaryFolder()
        let line = "sentinel monitor \(SentinelGroup.masterName) 127.0.0.1 \(old.port) 1\n"
        let file = try folder.write(Array(line.utf8), to: "sentinel.conf")
        let port = try Ports.free()
        let lone = try ServerProcess(
            "redis-server", [file, "--sentinel", "--port", String(port), "--bind", "127.0.0.1", "--dir", folder.path],
            readyLine: "+monitor")
        let world = try RedisWorld()
        try await world.start(Self.sentinels([port, group.ports[0], group.ports[1]]), limits: Self.quick)
        try await world.ready()
        try await world.send(1, "SET", "k", "v")
        #expect(try await world.reply(1) == "+OK")
        #expect(try group.servers[0].command("GET k").contains("v"))
        #expect(try !old.command("GET k").contains("v"))
        await world.end()
        lone.stop()
    }

    /// The client, one Sentinel and the master are cut off together: the others may have made another master.
    @Test func `a master that no majority of the Sentinels names any more is not used`() async throws {
        let group = try await SentinelGroup()
        let world = try RedisWorld()
        try await world.start(Self.sentinels(group.ports), limits: Self.quick)
        try await world.ready()
        for index in 1...2 { group.sentinels[index].send(SIGSTOP) }
        let fault = try await world.waiting()
        #expect(fault.text.contains("no majority of the 3 Sentinels names a master bells: 1 name"), "\(fault)")
        await #expect(throws: RedisFault(.notConnected)) { try await world.send(1, "GET", "k") }
        for index in 1...2 { group.sentinels[index].send(SIGCONT) }
        try await world.ready()
        try await world.send(2, "SET", "k", "v")
        #expect(try await world.reply(2) == "+OK")
        await world.end()
    }

    @Test func aMasterUnknownToAllSentinelsIsReported() async throws {
        let group = try await SentinelGroup()
        let world = try RedisWorld()
        try await world.start(Self.sentinels(group.ports, name: "other"), limits: Self.quick)
        let fault = try await world.waiting()
        #expect(fault.text.contains("names a master other: 3 give none"), "\(fault)")
        #expect(fault.text.contains("it knows no master named other"), "\(fault)")
        await world.end()
    }

    @Test func aServerThatIsNotASentinelIsReported() async throws {
        let server = try RedisServer()
        let world = try RedisWorld()
        try await world.start(Self.sentinels([server.port]), limits: Self.quick)
        let fault = try await world.waiting()
        #expect(fault.code == .unsupported && fault.text.contains("no Sentinel answers here"), "\(fault)")
        await world.end()
    }

    @Test func sentinelsAndMasterHaveLoginsOfTheirOwn() async throws {
        let group = try await SentinelGroup(
            arguments: ["--requirepass", "master", "--masterauth", "master"],
            sentinelLines: ["sentinel auth-pass \(SentinelGroup.masterName) master"])
        for index in 0..<3 { _ = try group.ask(index, "ACL SETUSER default >watch") }
        let world = try RedisWorld()
        try await world.start(
            Self.sentinels(group.ports, login: ":watch@", password: Secret("master")), limits: Self.quick)
        try await world.ready()
        try await world.send(1, "SET", "k", "v")
        #expect(try await world.reply(1) == "+OK")
        await world.end()
        let other = try RedisWorld()
        try await other.start(
            Self.sentinels(group.ports, login: ":wrong@", password: Secret("master")), limits: Self.quick)
        #expect(try await other.waiting().code == .authentication)
        await other.end()
    }

    @Test func sentinelsAndMasterAreReachedOverTLS() async throws {
        let minted = try MintedCertificate(isForPeers: true)
        let folder = try TemporaryFolder()
        let chain = try folder.write(minted.chainPEM, to: "chain.pem")
        let key = try folder.write(minted.privateKeyPEM, to: "key.pem")
        let authority = try folder.write(minted.authorityPEM, to: "ca.pem")
        let group = try await SentinelGroup(tlsArguments: [
            "--tls-cert-file", chain, "--tls-key-file", key, "--tls-ca-cert-file", authority, "--tls-auth-clients",
            "no",
        ])
        let nodes = try group.tlsPorts.map { try RedisEndpoint(url: "rediss://localhost:\($0)?ca_file=\(authority)") }
        let world = try RedisWorld()
        try await world.start(
            RedisSentinels(masterName: SentinelGroup.masterName, nodes: nodes, master: nodes[0]), limits: Self.quick)
        try await world.ready()
        try await world.send(1, "SET", "k", "v")
        #expect(try await world.reply(1) == "+OK")
        let endpoint = await world.with { client, _ in client.endpoint }
        #expect(endpoint?.usesTLS == true)
        await world.end()
    }

    /// The master dies, or hangs and comes back as a replica; the Sentinels make another one, and the client follows.
    @Test(arguments: [true, false])
    func theClientGoesToTheMasterThatTheSentinelsMake(dies: Bool) async throws {
        let group = try await SentinelGroup()
        try await group.awaitReplica(1)
        let world = try RedisWorld()
        try await world.start(Self.sentinels(group.ports), limits: Self.quick)
        try await world.ready()
        var tag: UInt64 = 0
        func step() async throws -> RedisFact {
            tag += 1
            do {
                try await world.send(tag, "INCR", "n")
            } catch let fault as RedisFault {
                return .failed(tag, fault)
            }
            return try await world.answer(tag)
        }
        for number in 1...50 { #expect(try await step() == .reply(tag, ":\(number)")) }
        while try !group.servers[1].command("GET n").contains("50") {
            try await Task.sleep(for: .milliseconds(10), tolerance: .zero)
        }
        if dies { group.servers[0].kill() } else { group.servers[0].freeze() }
        var failures = 0
        var last: RedisFact?
        let clock = ContinuousClock()
        // Sentinels that a busy machine starved of time wait for half a minute before they act (TILT).
        let deadline = clock.now + Patience.duration
        while clock.now < deadline {
            last = try await step()
            if case .reply = last { break }
            failures += 1
            try await Task.sleep(for: .milliseconds(20), tolerance: .zero)
        }
        // What was copied is there, and nothing was counted of what could not be.
        guard case .reply(_, let text)? = last, let number = Int(text.dropFirst()) else {
            let named = try group.masterPort.map(String.init) ?? "none"
            throw SetupFault("the client did not go on; the Sentinels name \(named) of \(group.servers.map(\.port))")
        }
        #expect(number == 51 && failures > 0)
        #expect(try group.servers[1].command("GET n").contains("51"))
        if !dies {
            group.servers[0].thaw()
            try await group.awaitReplica(0)
        }
        for number in 52...100 { #expect(try await step() == .reply(tag, ":\(number)")) }
        print("failover, \(dies ? "master killed" : "master hung"): \(failures) steps failed meanwhile, none was lost")
        await world.end()
    }
}
