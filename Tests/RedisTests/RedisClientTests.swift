// SPDX-License-Identifier: Apache-2.0
import Crypto
import EventLoop
import Glibc
import Redis
import Support
import Telemetry
import Testing

@Suite(.timeLimit(.minutes(10)))
struct RedisClientTests {
    @Test func repliesComeInOrderOverTCPAndUnixSockets() async throws {
        let server = try RedisServer()
        for url in [server.url, "unix://" + server.socketPath + "?db=1"] {
            let world = try RedisWorld()
            try await world.connect(url)
            try await world.send(1, "SET", "k\r\n", "v \u{0}ä")
            try await world.send(2, "GET", "k\r\n")
            try await world.send(3, "HSET", "h", "f", "1", "g", "2")
            try await world.send(4, "HGETALL", "h")
            try await world.send(5, "GET", "none")
            try await world.send(6, "LLEN", "k\r\n")
            try await world.send(7, "PING")
            var seen: [RedisFact] = []
            while seen.count < 7 {
                let fact = try await world.facts.next()
                if case .state = fact { continue }
                seen.append(fact)
            }
            #expect(
                seen == [
                    .reply(1, "+OK"), .reply(2, "\"v \u{0}ä\""), .reply(3, ":2"),
                    .reply(4, "[\"f\",\"1\",\"g\",\"2\"]"), .reply(5, "nil"), .failed(6, RedisFault(.wrongType)),
                    .reply(7, "+PONG"),
                ])
            await world.end()
        }
    }

    @Test func aPreparedCommandIsSentAsItWasPutTogether() async throws {
        let server = try RedisServer()
        let world = try RedisWorld()
        try await world.connect(server.url)
        let prepared = try #require(
            await world.with { client, _ in
                client.prepare { command in
                    command.arg(word: "APPEND")
                    command.arg("k\r\n")
                    command.part("ä")
                    command.part(7)
                    // Left open: it ends with the command.
                }
            })
        // Others in between use the same storage.
        try await world.send(1, "SET", "k\r\n", "x")
        for tag in [2, 3] as [UInt64] {
            _ = try await world.with { client, _ in try client.command(tag, .other, prepared) }
        }
        try await world.send(4, "GET", "k\r\n")
        #expect(try await world.reply(4) == "\"xä7ä7\"")
        await world.end()
    }

    @Test func aHundredThousandPipelinedReadsAreAllAnsweredInOrder() async throws {
        let server = try RedisServer()
        let world = try RedisWorld()
        var limits = RedisWorld.quick
        limits.pipelineMax = 100_000
        try await world.connect(server.url, limits: limits)
        try await world.send(
            1, "HSET", "h", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8")
        #expect(try await world.reply(1) == ":8")
        try await world.with { client, recorder in
            recorder.tally = [UInt8](repeating: 0, count: 100_000)
            for tag in 0..<100_000 as Range<UInt64> {
                try client.command(tag) { command in
                    command.arg("HGETALL")
                    command.arg("h")
                }
            }
            // The connection's own checks, one per 128 commands, come on top.
            #expect(client.pipelineDepth == 100_000 + 100_000 / 128)
            #expect(throws: RedisFault.self) { try client.command(1) { $0.arg("PING") } }
        }
        _ = try await world.reply(.max)
        await world.with { client, recorder in
            #expect(recorder.tally.allSatisfy { $0 == 1 } && recorder.isInOrder && recorder.failures.isEmpty)
            #expect(client.pipelineDepth == 0)
        }
        let text = String(decoding: world.metrics.exposition(), as: UTF8.self)
        #expect(text.contains("carillon_redis_command_seconds_count{op=\"other\"} 100001"))
        #expect(text.contains("carillon_redis_errors_total{code=\"overloaded\"} 1"))
        await world.end()
    }

    @Test func withoutAConnectionCommandsFailAtOnce() async throws {
        let world = try RedisWorld()
        // Bound and held: a free port might be another test's server by now.
        let held = try Ports.silentListener(backlog: nil)
        defer { close(held.fd) }
        try await world.start("redis://127.0.0.1:\(held.port)")
        await #expect(throws: RedisFault.self) { try await world.send(1, "PING") }
        #expect(try await world.waiting().code == .unreachable)
        #expect(try await world.waiting().code == .unreachable)
        await world.end()
    }

    @Test func aScriptIsAnsweredHoweverOftenItIsForgotten() async throws {
        let server = try RedisServer()
        let world = try RedisWorld()
        try await world.connect(server.url)
        let script = RedisScript("return {KEYS[1], ARGV[1], redis.call('INCR', KEYS[1])}")
        for round in 0..<40 as Range<UInt64> {
            try await world.send(round * 10, "SCRIPT", "FLUSH")
            for call in 1...4 as ClosedRange<UInt64> {
                try await world.evaluate(round * 10 + call, script, ["k"], ["a\(call)"])
            }
        }
        var counts: Set<String> = []
        for round in 0..<40 as Range<UInt64> {
            for call in 1...4 as ClosedRange<UInt64> {
                let text = try await world.reply(round * 10 + call)
                #expect(text.hasPrefix("[\"k\",\"a\(call)\",:"))
                counts.insert(String(text.split(separator: ":").last ?? ""))
            }
        }
        // Each ran exactly once.
        #expect(counts.count == 160)
        try await world.send(9999, "SCRIPT", "EXISTS", script.sha1)
        #expect(try await world.reply(9999) == "[:1]")
        await world.end()
    }

    @Test func aScriptsOwnErrorIsItsAnswer() async throws {
        let server = try RedisServer()
        let world = try RedisWorld()
        try await world.connect(server.url)
        let broken = RedisScript("return nonsense(")
        let raising = RedisScript("return redis.error_reply('NOSCRIPT mine')")
        for tag in 1...3 as ClosedRange<UInt64> {
            try await world.evaluate(tag, broken, [], [])
            try await world.evaluate(tag + 10, raising, [], [])
        }
        for tag in 1...3 as ClosedRange<UInt64> {
            #expect(try await world.answer(tag) == .failed(tag, .init(.scriptFailed)))
            #expect(try await world.answer(tag + 10) == .failed(tag + 10, .init(.noScript)))
        }
        await world.end()
    }

    @Test func aLateServerLosesItsConnectionAndEveryTagFails() async throws {
        let server = try RedisServer(arguments: ["--enable-debug-command", "local"])
        let world = try RedisWorld()
        var limits = RedisWorld.quick
        limits.commandTimeoutNanos = 100_000_000
        try await world.connect(server.url, limits: limits)
        try await world.with { client, _ in
            try client.command(1) { command in
                for word in ["DEBUG", "SLEEP", "1"] { command.arg(word) }
            }
            try client.command(2) { $0.arg("PING") }
        }
        let first = try await world.answer(1)
        let second = try await world.answer(2)
        #expect(first == .failed(1, .init(.timeout)) && second == .failed(2, .init(.timeout)))
        #expect(try await world.waiting().code == .timeout)
        try await world.ready()
        // The late reply of the old connection reaches nobody.
        try await world.send(3, "PING")
        #expect(try await world.reply(3) == "+PONG")
        await world.end()
    }

    @Test func aWrongPasswordIsAFaultOfItsOwn() async throws {
        let server = try RedisServer(arguments: ["--requirepass", "right"])
        for url in ["redis://:wrong@", "redis://nobody:right@", "redis://"] {
            let world = try RedisWorld()
            try await world.start("\(url)127.0.0.1:\(server.port)")
            let fault = try await world.waiting()
            #expect(fault.code == .authentication)
            #expect(!fault.text.contains("wrong"))
            await world.end()
        }
        let world = try RedisWorld()
        try await world.connect("redis://default:right@127.0.0.1:\(server.port)/5")
        try await world.send(1, "CLIENT", "INFO")
        #expect(try await world.reply(1).contains(" db=5 "))
        await world.end()
    }

    @Test func aConnectionThatIsLoggedOutIsReplaced() async throws {
        let server = try RedisServer(arguments: ["--requirepass", "right"])
        let world = try RedisWorld()
        try await world.connect("redis://:right@127.0.0.1:\(server.port)")
        // RESET logs out, as no other command does to a connection that stays open.
        try await world.send(1, "RESET")
        #expect(try await world.reply(1) == "+RESET")
        try await world.send(2, "SET", "k", "v")
        #expect(try await world.answer(2) == .failed(2, .init(.authentication)))
        let fault = try await world.waiting()
        #expect(fault.code == .authentication && !fault.mayHaveRun)
        try await world.ready()
        try await world.send(3, "GET", "k")
        #expect(try await world.reply(3) == "nil")
        await world.end()
    }

    /// What is forbidden once is forbidden again: the next connection waits, and nothing is decided meanwhile.
    @Test func aForbiddenCommandEndsTheConnection() async throws {
        let server = try RedisServer()
        _ = try server.command("ACL SETUSER guest on nopass ~* +ping +eval")
        let world = try RedisWorld()
        try await world.connect("redis://guest:any@127.0.0.1:\(server.port)")
        try await world.send(1, "SET", "k", "v")
        #expect(try await world.answer(1) == .failed(1, .init(.noPermission)))
        #expect(try await world.waiting().code == .noPermission)
        try await world.ready()
        await world.end()
    }

    @Test func aDatabaseThatDoesNotExistIsAFault() async throws {
        let server = try RedisServer()
        let world = try RedisWorld()
        try await world.start("\(server.url)/999999")
        #expect(try await world.waiting().code == .refused)
        await world.end()
    }

    @Test func aReadOnlyReplicaIsLeftAndTriedAgain() async throws {
        let server = try RedisServer(arguments: ["--replicaof", "127.0.0.1 1", "--replica-serve-stale-data", "yes"])
        let world = try RedisWorld()
        try await world.connect(server.url)
        try await world.send(1, "SET", "k", "v")
        #expect(try await world.answer(1) == .failed(1, .init(.readOnly)))
        #expect(try await world.waiting().code == .readOnly)
        try await world.ready()
        await world.end()
    }

    @Test func aTLSServerIsVerified() async throws {
        let minted = try MintedCertificate()
        let folder = try TemporaryFolder()
        let chain = try folder.write(minted.chainPEM, to: "chain.pem")
        let key = try folder.write(minted.privateKeyPEM, to: "key.pem")
        let authority = try folder.write(minted.authorityPEM, to: "ca.pem")
        let port = try Ports.free()
        let server = try RedisServer(arguments: [
            "--tls-port", String(port), "--tls-cert-file", chain, "--tls-key-file", key, "--tls-ca-cert-file",
            authority,
            "--tls-auth-clients", "no",
        ])
        let world = try RedisWorld()
        try await world.connect("rediss://localhost:\(port)?ca_file=\(authority)")
        try await world.send(1, "PING")
        #expect(try await world.reply(1) == "+PONG")
        await world.end()
        let stranger = try RedisWorld()
        try await stranger.start("rediss://localhost:\(port)")
        #expect(try await stranger.waiting().code == .unreachable)
        await stranger.end()
        server.stop()
    }

    /// As for a password, the files are read at each connection.
    @Test func aServerThatWantsACertificateTakesTheOneOfTheMoment() async throws {
        let minted = try MintedCertificate(isForPeers: true)
        let stranger = try MintedCertificate(isForPeers: true)
        let folder = try TemporaryFolder()
        func write(_ one: MintedCertificate) throws -> RedisIdentity {
            RedisIdentity(
                certificateFile: try folder.write(one.chainPEM, to: "client.pem"),
                keyFile: try folder.write(one.privateKeyPEM, to: "client-key.pem"))
        }
        let chain = try folder.write(minted.chainPEM, to: "chain.pem")
        let key = try folder.write(minted.privateKeyPEM, to: "key.pem")
        let authority = try folder.write(minted.authorityPEM, to: "ca.pem")
        let port = try Ports.free()
        let server = try RedisServer(arguments: [
            "--tls-port", String(port), "--tls-cert-file", chain, "--tls-key-file", key, "--tls-ca-cert-file",
            authority, "--tls-auth-clients", "yes",
        ])
        var endpoint = try RedisEndpoint(url: "rediss://localhost:\(port)?ca_file=\(authority)")
        let nobody = try RedisWorld()
        try await nobody.start(endpoint)
        #expect(try await nobody.waiting().code == .unreachable)
        await nobody.end()

        endpoint.identity = try write(stranger)
        let world = try RedisWorld()
        try await world.start(endpoint)
        #expect(try await world.waiting().code == .unreachable)
        _ = try write(minted)
        try await world.ready()
        try await world.send(1, "PING")
        #expect(try await world.reply(1) == "+PONG")
        await world.end()
        server.stop()
    }

    @Test func aCertificateThatCannotBeReadIsNamed() throws {
        let minted = try MintedCertificate()
        let folder = try TemporaryFolder()
        let chain = try folder.write(minted.chainPEM, to: "chain.pem")
        let key = try folder.write(try MintedCertificate().privateKeyPEM, to: "key.pem")
        for (identity, words) in [
            (RedisIdentity(certificateFile: "/no/c.pem", keyFile: key), "/no/c.pem: No such file or directory"),
            (RedisIdentity(certificateFile: chain, keyFile: "/no/k.pem"), "/no/k.pem: No such file or directory"),
            (RedisIdentity(certificateFile: chain, keyFile: key), "key values mismatch"),
        ] {
            #expect { _ = try identity.read().validUntilSeconds() } throws: { "\($0)".contains(words) }
        }
    }

    @Test func aKilledServerFailsEachTagOnceAndItsSuccessorIsFound() async throws {
        let port = try Ports.free()
        let arguments = [
            "--port", String(port), "--bind", "127.0.0.1", "--save", "", "--enable-debug-command", "local",
        ]
        let first = try ServerProcess("redis-server", arguments, readyLine: "Ready to accept")
        let world = try RedisWorld()
        try await world.connect("redis://127.0.0.1:\(port)")
        let script = RedisScript("return redis.call('INCR', KEYS[1])")
        try await world.with { client, recorder in
            recorder.tally = [UInt8](repeating: 0, count: 5000)
            for tag in 0..<4000 as Range<UInt64> { try client.command(tag) { $0.arg("PING") } }
            try client.command(4000) { command in
                for word in ["DEBUG", "SLEEP", "30"] { command.arg(word) }
            }
            for tag in 4001..<5000 as Range<UInt64> {
                try client.evaluate(tag, .other, script, keyCount: 1) { $0.arg("k") }
            }
        }
        first.send(9)
        _ = try await world.reply(.max)
        await world.with { _, recorder in
            #expect(recorder.tally.allSatisfy { $0 == 1 })
            #expect(recorder.failures.keys.allSatisfy { $0 == .connectionLost(wasSent: true) })
            #expect(recorder.failures.values.reduce(0, +) >= 1000)
            recorder.tally = []
        }
        first.stop()
        let second = try ServerProcess("redis-server", arguments, readyLine: "Ready to accept")
        try await world.ready()
        // What this server never saw is loaded anew.
        try await world.evaluate(1, script, ["k"], [])
        #expect(try await world.reply(1) == ":1")
        await world.end()
        second.stop()
    }

    @Test func closingFailsEveryWaitingTagOnce() async throws {
        let server = try RedisServer()
        let world = try RedisWorld()
        try await world.connect(server.url)
        await world.with { client, recorder in
            recorder.tally = [UInt8](repeating: 0, count: 3)
            for tag in 0..<3 as Range<UInt64> { try? client.command(tag) { $0.arg("PING") } }
            client.close()
            client.close()
            #expect(recorder.tally == [1, 1, 1] && client.state == .closed && !client.isReady)
            #expect(throws: RedisFault.self) { try client.command(1) { $0.arg("PING") } }
            client.start()
            #expect(client.state == .closed)
        }
        await world.end()
    }

    @Test func aDelegateMaySendAndCloseFromItsCalls() async throws {
        let server = try RedisServer()
        let world = try RedisWorld()
        try await world.connect(server.url)
        try await world.with { client, recorder in
            recorder.onReply = { client, tag in
                if tag == 1000 { return }
                if tag < 100 { try? client.command(tag + 1) { $0.arg("PING") } } else { client.close() }
            }
            try client.command(0) { outer in
                // A builder inside a builder's closure is another one.
                try? client.command(1000) { $0.arg("PING") }
                outer.arg("PING")
            }
        }
        _ = try await world.facts.first { $0 == .reply(100, "+PONG") }
        _ = try await world.facts.first { $0 == .state(.closed) }
        #expect(world.facts.all.contains(.reply(1000, "+PONG")))
        await world.end()
    }
}
