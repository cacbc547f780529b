// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc
import Support
import Testing

@Suite(.timeLimit(.minutes(10)))
struct LinkTests {
    @Test func carriesBytesBothWaysOverTCP() async throws {
        let test = try TestLoop()
        let facts = Facts<LinkEvent>()
        try await test.run { test in
            let server = try EchoServer(test.loop)
            let probe = Probe(facts)
            let link = Link(loop: test.loop, to: .tcp(host: "127.0.0.1", port: server.port))
            link.delegate = probe
            probe.onOpen = { link in
                #expect(link.remoteAddress == "127.0.0.1:\(server.port)")
                link.write(Array("ping".utf8))
            }
            link.open()
            for object in [server, probe, link] as [AnyObject] { test.keep(object) }
        }
        #expect(try await facts.next() == .opened(nil))
        #expect(try await facts.next() == .received(Array("ping".utf8)))
        await test.end()
    }

    @Test func echoesFiftyMegabytesUnderBackPressure() async throws {
        try await echo(bytes: 50 * 1024 * 1024, tls: nil)
    }

    @Test func findsLocalhostInTheHostsFile() async throws {
        let test = try TestLoop()
        let facts = Facts<LinkEvent>()
        try await test.run { test in
            let server = try EchoServer(test.loop)
            let probe = Probe(facts)
            let link = Link(loop: test.loop, to: .tcp(host: "localhost", port: server.port))
            link.delegate = probe
            link.open()
            for object in [server, probe, link] as [AnyObject] { test.keep(object) }
        }
        #expect(try await facts.next() == .opened(nil))
        await test.end()
    }

    @Test func talksOverAUnixSocket() async throws {
        let redis = try RedisServer()
        let test = try TestLoop()
        let facts = Facts<LinkEvent>()
        await test.run { test in
            let probe = Probe(facts)
            let link = Link(loop: test.loop, to: .unix(path: redis.socketPath))
            link.delegate = probe
            link.write(Array("PING\r\n".utf8))
            link.open()
            for object in [probe, link] as [AnyObject] { test.keep(object) }
        }
        #expect(try await facts.next() == .opened(nil))
        #expect(try await facts.next() == .received(Array("+PONG\r\n".utf8)))
        redis.stop()
        #expect(try await facts.next() == .closed(.closedByPeer))
        await test.end()
    }

    @Test(arguments: [
        (Endpoint.unix(path: "/nonexistent/socket"), LinkFault.Reason.refused),
        (Endpoint.unix(path: ""), .system),
        (Endpoint.unix(path: String(repeating: "x", count: 200)), .system),
        (Endpoint.tcp(host: "", port: 1), .dns),
        (Endpoint.tcp(host: "a\u{0}b", port: 1), .dns),
        (Endpoint.tcp(host: "no-such-host.invalid", port: 1), .dns),
    ])
    func tellsWhyItCannotConnect(endpoint: Endpoint, reason: LinkFault.Reason) async throws {
        #expect(try await fate(of: endpoint) == [.closed(reason)])
    }

    @Test func isRefusedWhereNobodyListens() async throws {
        // Bound and held: a free port might be another test's server by now.
        let held = try Ports.silentListener(backlog: nil)
        #expect(try await fate(of: .tcp(host: "127.0.0.1", port: held.port)) == [.closed(.refused)])
        close(held.fd)
    }

    @Test func aFaultNamesAnAddressOnce() async throws {
        let held = try Ports.silentListener(backlog: nil)
        let (test, facts) = (try TestLoop(), Facts<LinkEvent>())
        let detail = await test.run { test in
            let probe = Probe(facts)
            let link = Link(loop: test.loop, to: .tcp(host: "127.0.0.1", port: held.port))
            link.delegate = probe
            link.open()
            for object in [probe, link] as [AnyObject] { test.keep(object) }
            return probe.detail
        }
        _ = try await facts.first { $0.isClosed }
        await test.end()
        #expect(detail.all.last?.hasPrefix("127.0.0.1:\(held.port): ") == true, "\(detail.all)")
        close(held.fd)
    }

    @Test func timesOutWhereNobodyAnswers() async throws {
        // A full backlog drops further SYNs, as a silent network does.
        let listener = try Ports.silentListener(backlog: 0)
        let fillers = (0..<2).compactMap { _ in try? Ports.connect(port: listener.port, seconds: 1) }
        let endpoint = Endpoint.tcp(host: "127.0.0.1", port: listener.port)
        #expect(try await fate(of: endpoint, timeoutNanos: 200_000_000) == [.closed(.timeout)])
        for fd in fillers { close(fd) }
        close(listener.fd)
    }

    @Test func staysSilentAfterItsOwnClose() async throws {
        let test = try TestLoop()
        let facts = Facts<LinkEvent>()
        let done = Facts<String>()
        try await test.run { test in
            let server = try EchoServer(test.loop)
            let probe = Probe(facts)
            let link = Link(loop: test.loop, to: .tcp(host: "127.0.0.1", port: server.port))
            link.delegate = probe
            probe.onOpen = { $0.write(Array("x".utf8)) }
            probe.onBytes = { link in
                link.close()
                link.close()
                link.write(Array("late".utf8))
                #expect(link.isClosed)
                done.record("closed")
            }
            link.open()
            for object in [server, probe, link] as [AnyObject] { test.keep(object) }
        }
        _ = try await done.next()
        await settle(test)
        #expect(facts.all == [.opened(nil), .received([UInt8(ascii: "x")])])
        await test.end()
    }

    @Test func survivesItsReleaseInsideEveryCallback() async throws {
        let test = try TestLoop()
        let server = try await test.run { test in
            let server = try EchoServer(test.loop)
            test.keep(server)
            return server.port
        }
        for moment in 0..<3 {
            let facts = Facts<LinkEvent>()
            let probe = await test.run { test in
                let probe = Probe(facts)
                let link = Link(loop: test.loop, to: .tcp(host: "127.0.0.1", port: server))
                link.delegate = probe
                probe.link = link
                if moment == 0 { probe.onOpen = { [unowned probe] _ in probe.link = nil } }
                if moment > 0 { probe.onOpen = { $0.write(Array("x".utf8)) } }
                if moment == 1 { probe.onBytes = { [unowned probe] _ in probe.link = nil } }
                link.open()
                test.keep(probe)
                return facts
            }
            #expect(try await probe.next() == .opened(nil))
            if moment > 0 { _ = try await probe.next() }
        }
        await settle(test)
        await test.end()
    }

    @Test func tellsItsEndExactlyOnce() async throws {
        let test = try TestLoop()
        let facts = Facts<LinkEvent>()
        let server = try await test.run { test in
            let server = try EchoServer(test.loop)
            let probe = Probe(facts)
            let link = Link(loop: test.loop, to: .tcp(host: "127.0.0.1", port: server.port))
            link.delegate = probe
            // Many writes on a link that is being closed from the other side: several faults meet.
            probe.onBytes = { link in
                server.closeAll()
                for _ in 0..<100 { link.write([UInt8](repeating: 1, count: 100_000)) }
            }
            probe.onOpen = { $0.write(Array("x".utf8)) }
            link.open()
            for object in [server, probe, link] as [AnyObject] { test.keep(object) }
            return facts
        }
        _ = try await server.first { $0.isClosed }
        await settle(test)
        #expect(facts.all.filter(\.isClosed).count == 1)
        #expect(facts.all.last?.isClosed == true)
        await test.end()
    }

    @Test func sendsWhatWasWrittenJustBeforeTheClose() async throws {
        let test = try TestLoop()
        let facts = Facts<LinkEvent>()
        try await test.run { test in
            let probe = Probe(facts)
            let listener = try Listener(loop: test.loop) { link in
                link.delegate = probe
                probe.link = link
            }
            let sender = Probe(Facts())
            let link = Link(loop: test.loop, to: .tcp(host: "127.0.0.1", port: listener.port))
            link.delegate = sender
            sender.onOpen = { link in
                link.write(Array("goodbye".utf8))
                link.close()
            }
            link.open()
            for object in [listener, probe, sender, link] as [AnyObject] { test.keep(object) }
        }
        #expect(try await facts.next() == .opened(nil))
        #expect(try await facts.next() == .received(Array("goodbye".utf8)))
        #expect(try await facts.next() == .closed(.closedByPeer))
        await test.end()
    }

    @Test(arguments: [false, true]) func knowsAfterItsEndWhatNeverLeft(isOurs: Bool) async throws {
        let test = try TestLoop()
        let facts = Facts<LinkEvent>()
        let unsent = Facts<Int>()
        let total = 64 * 1024 * 1024
        let listener = try Ports.silentListener(backlog: 1)
        await test.run { test in
            let probe = Probe(facts, unsent: unsent)
            let link = Link(loop: test.loop, to: .tcp(host: "127.0.0.1", port: listener.port))
            link.delegate = probe
            probe.onOpen = { link in
                link.write([UInt8](repeating: 7, count: total))
                guard isOurs else { return }
                link.close()
                unsent.record(link.pendingOutputBytes)
            }
            link.open()
            for object in [probe, link] as [AnyObject] { test.keep(object) }
        }
        #expect(try await facts.next() == .opened(nil))
        // A peer that read while we end could take everything.
        let left = isOurs ? try await unsent.next() : nil
        let peer = accept(listener.fd, nil, nil)
        var block = [UInt8](repeating: 0, count: 64 * 1024)
        var taken = read(peer, &block, block.count)
        // To our own end the peer reads all that left; or it ends with bytes unread, which resets the connection.
        while isOurs, case let count = read(peer, &block, block.count), count > 0 { taken += count }
        close(peer)
        close(listener.fd)
        let rest = if let left { left } else { try await unsent.next() }
        #expect(taken > 0 && rest > 0)
        #expect(isOurs ? taken + rest == total : taken + rest <= total)
        await test.end()
    }

    @Test func refusesToListenOnATakenPortOrAName() async throws {
        let test = try TestLoop()
        let taken = try Ports.silentListener(backlog: 1)
        await test.run { test in
            #expect(throws: LoopFault.self) { _ = try Listener(loop: test.loop, port: taken.port) { _ in } }
            #expect(throws: LoopFault.self) { _ = try Listener(loop: test.loop, host: "example.org") { _ in } }
        }
        close(taken.fd)
        await test.end()
    }

    private func fate(of endpoint: Endpoint, timeoutNanos: UInt64 = 15_000_000_000) async throws -> [LinkEvent] {
        let test = try TestLoop()
        let facts = Facts<LinkEvent>()
        await test.run { test in
            let probe = Probe(facts)
            let link = Link(loop: test.loop, to: endpoint, connectTimeoutNanos: timeoutNanos)
            link.delegate = probe
            link.open()
            link.open()
            // Nothing is told from inside the call.
            #expect(facts.all.isEmpty)
            for object in [probe, link] as [AnyObject] { test.keep(object) }
        }
        _ = try await facts.first { $0.isClosed }
        await settle(test)
        await test.end()
        return facts.all
    }
}

/// Lets the loop take some turns, so that a callback that must not come would have come.
func settle(_ test: TestLoop) async {
    for _ in 0..<10 { await test.run { _ in } }
}

/// Sends a seeded stream through an echo server on another loop and checks every byte that comes back.
func echo(bytes total: Int, tls: (client: TLSClientContext, server: TLSServerContext)?) async throws {
    let near = try TestLoop("near")
    let far = try TestLoop("far")
    let seed = UInt64.random(in: .min ... .max)
    let facts = Facts<String>()
    let peak = Facts<Int>()
    let port = try await far.run { far in
        let server = try EchoServer(far.loop, tls: tls?.server)
        server.onGone = { peak.record($0) }
        far.keep(server)
        return server.port
    }
    await near.run { near in
        let link = Link(loop: near.loop, to: .tcp(host: "127.0.0.1", port: port), tls: tls?.client)
        let checker = StreamChecker(link, total: total, seed: seed, facts)
        near.keep(checker)
        link.open()
    }
    #expect(try await facts.next() == "all came back", "seed \(seed)")
    await near.end()
    // What one turn reads may be added while the output is just not full.
    #expect(try await peak.next() <= 1024 * 1024 + 256 * 1024)
    await far.end()
}
