// SPDX-License-Identifier: Apache-2.0
import Crypto
import EventLoop
import Glibc
import Support
import Telemetry
import Testing

@Suite(.timeLimit(.minutes(10)))
struct LinkTLSTests {
    /// One try to connect: what the client was told, with the detail of its end.
    private func attempt(
        server: TLSServerContext, client: TLSClientContext, host: String = "127.0.0.1", peerName: String? = nil
    ) async throws -> (events: [LinkEvent], detail: String) {
        let test = try TestLoop("tls")
        let facts = Facts<LinkEvent>()
        let detail = try await test.run { test in
            let echo = try EchoServer(test.loop, tls: server)
            let probe = Probe(facts)
            let link = Link(
                loop: test.loop, to: .tcp(host: host, port: echo.port), tls: client, peerName: peerName)
            link.delegate = probe
            probe.onOpen = { $0.write(Array("ping".utf8)) }
            link.open()
            for object in [echo, probe, link] as [AnyObject] { test.keep(object) }
            return probe.detail
        }
        _ = try await facts.first { $0.isClosed || $0 == .received(Array("ping".utf8)) }
        await settle(test)
        await test.end()
        return (facts.all, detail.all.last ?? "")
    }

    private func server(_ minted: MintedCertificate, alpn: [String] = ["h2"]) throws -> TLSServerContext {
        try TLSServerContext(
            identity: .pem(certificate: minted.chainPEM, key: Secret(bytes: minted.privateKeyPEM)), alpn: alpn)
    }

    private let ping = LinkEvent.received(Array("ping".utf8))

    @Test(arguments: ["127.0.0.1", "localhost"])
    func opensWithTheRightAuthorityAndName(host: String) async throws {
        let minted = try MintedCertificate()
        let client = try TLSClientContext(trust: .pem(minted.authorityPEM), alpn: ["h2"])
        let result = try await attempt(server: server(minted), client: client, host: host)
        #expect(result.events == [.opened("h2"), ping])
    }

    @Test func readsTheAuthorityFromAFile() async throws {
        let minted = try MintedCertificate()
        let folder = try TemporaryFolder()
        let path = try folder.write(minted.authorityPEM, to: "ca.pem")
        let client = try TLSClientContext(trust: .file(path), alpn: ["h2"])
        #expect(try await attempt(server: server(minted), client: client).events == [.opened("h2"), ping])
    }

    @Test func refusesAnotherAuthority() async throws {
        let minted = try MintedCertificate()
        let client = try TLSClientContext(trust: .pem(MintedCertificate().authorityPEM), alpn: ["h2"])
        let result = try await attempt(server: server(minted), client: client)
        #expect(result.events == [.closed(.certificate)])
        #expect(result.detail.contains("certificate"))
    }

    @Test func refusesAPrivateAuthorityWithTheSystemStore() async throws {
        let result = try await attempt(
            server: server(MintedCertificate()), client: TLSClientContext(alpn: ["h2"]))
        #expect(result.events == [.closed(.certificate)])
    }

    @Test(arguments: [("127.0.0.1", "api.push.apple.com"), ("127.0.0.1", "127.0.0.2"), ("localhost", "*")])
    func refusesAnotherName(host: String, peerName: String) async throws {
        let minted = try MintedCertificate()
        let client = try TLSClientContext(trust: .pem(minted.authorityPEM), alpn: ["h2"])
        let result = try await attempt(server: server(minted), client: client, host: host, peerName: peerName)
        #expect(result.events == [.closed(.certificate)])
        #expect(result.detail.contains("mismatch"))
    }

    @Test(arguments: ["", "local\u{0}host"])
    func refusesANameThatNoCertificateCanBear(peerName: String) async throws {
        let minted = try MintedCertificate()
        let client = try TLSClientContext(trust: .pem(minted.authorityPEM))
        let result = try await attempt(server: server(minted), client: client, peerName: peerName)
        #expect(result.events == [.closed(.tls)])
    }

    @Test func refusesAnExpiredCertificate() async throws {
        let minted = try MintedCertificate(validUntil: -60)
        let client = try TLSClientContext(trust: .pem(minted.authorityPEM), alpn: ["h2"])
        let result = try await attempt(server: server(minted), client: client)
        #expect(result.events == [.closed(.certificate)])
        #expect(result.detail.contains("expired"))
    }

    @Test(arguments: [["http/1.1"], []])
    func refusesAServerWithoutTheProtocol(serverProtocols: [String]) async throws {
        let minted = try MintedCertificate()
        let client = try TLSClientContext(trust: .pem(minted.authorityPEM), alpn: ["h2"])
        let result = try await attempt(server: server(minted, alpn: serverProtocols), client: client)
        #expect(result.events == [.closed(.alpn)])
    }

    @Test func failsOnAPeerThatSpeaksNoTLS() async throws {
        let test = try TestLoop()
        let facts = Facts<LinkEvent>()
        try await test.run { test in
            let listener = try Listener(loop: test.loop) { link in
                link.write(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8))
                test.keep(link)
            }
            let probe = Probe(facts)
            let link = Link(
                loop: test.loop, to: .tcp(host: "127.0.0.1", port: listener.port), tls: try TLSClientContext())
            link.delegate = probe
            link.open()
            for object in [listener, probe, link] as [AnyObject] { test.keep(object) }
        }
        #expect(try await facts.next() == .closed(.tls))
        await test.end()
    }

    @Test func timesOutInAHandshakeThatNobodyAnswers() async throws {
        let silent = try Ports.silentListener(backlog: 16)
        let test = try TestLoop()
        let facts = Facts<LinkEvent>()
        let detail = try await test.run { test in
            let probe = Probe(facts)
            let link = Link(
                loop: test.loop, to: .tcp(host: "127.0.0.1", port: silent.port), tls: try TLSClientContext(),
                connectTimeoutNanos: 100_000_000)
            link.delegate = probe
            link.open()
            for object in [probe, link] as [AnyObject] { test.keep(object) }
            return probe.detail
        }
        #expect(try await facts.next() == .closed(.timeout))
        #expect(detail.all.last?.contains("handshake") == true)
        await test.end()
        close(silent.fd)
    }

    @Test func tellsAnEndWithoutCloseNotifyAsClosedByPeer() async throws {
        for isClean in [true, false] {
            let minted = try MintedCertificate()
            let test = try TestLoop()
            let facts = Facts<LinkEvent>()
            let context = try server(minted)
            let detail = try await test.run { test in
                let holder = Probe(Facts())
                let listener = try Listener(loop: test.loop, tls: context) { link in
                    link.delegate = holder
                    holder.link = link
                }
                // A link that is released without close() sends no close_notify.
                holder.onBytes = { [unowned holder] link in
                    if isClean { link.close() }
                    holder.link = nil
                }
                let probe = Probe(facts)
                let link = Link(
                    loop: test.loop, to: .tcp(host: "127.0.0.1", port: listener.port),
                    tls: try TLSClientContext(trust: .pem(minted.authorityPEM)))
                link.delegate = probe
                probe.onOpen = { $0.write([1]) }
                link.open()
                for object in [listener, holder, probe, link] as [AnyObject] { test.keep(object) }
                return probe.detail
            }
            #expect(try await facts.next() == .opened(nil))
            #expect(try await facts.next() == .closed(.closedByPeer))
            #expect(detail.all.last?.contains("without close_notify") == !isClean)
            await test.end()
        }
    }

    @Test func echoesFiftyMegabytesUnderBackPressure() async throws {
        let minted = try MintedCertificate()
        let client = try TLSClientContext(trust: .pem(minted.authorityPEM), alpn: ["h2"])
        try await echo(bytes: 50 * 1024 * 1024, tls: (client, server(minted)))
    }

    @Test func goesOnReadingWhatTLSHoldsAfterAPause() async throws {
        let minted = try MintedCertificate()
        let test = try TestLoop()
        let facts = Facts<Int>()
        let context = try server(minted)
        try await test.run { test in
            let sender = Probe(Facts())
            // A megabyte in one go, of which the reader takes a piece per pause.
            sender.onOpen = { $0.write([UInt8](repeating: 7, count: 1_000_000)) }
            let listener = try Listener(loop: test.loop, tls: context) { link in
                link.delegate = sender
                sender.link = link
            }
            let link = Link(
                loop: test.loop, to: .tcp(host: "127.0.0.1", port: listener.port),
                tls: try TLSClientContext(trust: .pem(minted.authorityPEM)))
            let reader = PausingReader(test.loop, link, total: 1_000_000, facts)
            link.open()
            for object in [listener, sender, reader] as [AnyObject] { test.keep(object) }
        }
        #expect(try await facts.next() == 1_000_000)
        await test.end()
    }

    @Test func saysWhatIsWrongWithCertificatesAndKeys() throws {
        let minted = try MintedCertificate()
        let other = try MintedCertificate()
        #expect(throws: TLSFault.self) { _ = try TLSClientContext(trust: .file("/nonexistent.pem")) }
        #expect(throws: TLSFault.self) { _ = try TLSClientContext(trust: .pem([1, 2, 3])) }
        #expect(throws: TLSFault.self) { _ = try TLSClientContext(trust: .pem([])) }
        let cutShort = minted.chainPEM + minted.chainPEM.prefix(200)
        #expect(throws: TLSFault.self) { _ = try TLSClientContext(trust: .pem(cutShort)) }
        #expect(throws: TLSFault.self) { _ = try TLSClientContext(alpn: [""]) }
        #expect(throws: TLSFault.self) { _ = try TLSClientContext(alpn: [String(repeating: "a", count: 256)]) }
        #expect(throws: TLSFault.self) {
            _ = try TLSServerContext(
                identity: .pem(certificate: minted.chainPEM, key: Secret(bytes: other.privateKeyPEM)))
        }
        #expect(throws: TLSFault.self) {
            _ = try TLSServerContext(
                identity: .pem(certificate: minted.privateKeyPEM, key: Secret(bytes: minted.chainPEM)))
        }
        #expect(throws: TLSFault.self) {
            _ = try TLSServerContext(identity: .pkcs12([0x30, 0x03], password: Secret("")))
        }
    }

    @Test func showsItsClientCertificate() async throws {
        let minted = try MintedCertificate()
        // The minted leaf is for servers; as a client's it must be refused for its purpose.
        let client = try TLSClientContext(
            trust: .pem(minted.authorityPEM), alpn: ["h2"],
            identity: .pem(certificate: minted.chainPEM, key: Secret(bytes: minted.privateKeyPEM)))
        let context = try TLSServerContext(
            identity: .pem(certificate: minted.chainPEM, key: Secret(bytes: minted.privateKeyPEM)), alpn: ["h2"],
            clientTrust: .pem(minted.authorityPEM))
        let result = try await attempt(server: context, client: client)
        #expect(result.events.last == .closed(.tls))
        #expect(result.detail.contains("certificate"))
    }
}

/// Reads a little, pauses for a turn, and goes on.
private final class PausingReader: LinkDelegate {
    private let loop: Loop
    private let link: Link
    private let total: Int
    private let facts: Facts<Int>
    private var received = 0
    private var timer: LoopTimer?

    init(_ loop: Loop, _ link: Link, total: Int, _ facts: Facts<Int>) {
        self.loop = loop
        self.link = link
        self.total = total
        self.facts = facts
        link.delegate = self
        timer = LoopTimer(loop: loop) { [unowned self] in self.link.resumeReading() }
    }

    func linkDidOpen(_ link: Link) {}

    func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) {
        received += bytes.count
        link.pauseReading()
        timer?.arm(afterNanos: 1)
        if received == total { facts.record(received) }
    }

    func link(_ link: Link, didClose reason: LinkFault) { facts.record(-1) }
}
