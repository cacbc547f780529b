// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Support
import Telemetry
import Testing

/// Answers the first request as told, then sends back what it gets: a proxy and the peer behind it in one.
private final class FakeProxy: LinkDelegate {
    private(set) var request: [UInt8] = []
    private let answer: String
    private var hasAnswered = false
    private var listener: Listener?
    private var links: [Link] = []
    var port: UInt16 { listener?.port ?? 0 }

    init(_ loop: Loop, answer: String) throws {
        self.answer = answer
        listener = try Listener(loop: loop) { [unowned self] link in
            link.delegate = self
            links.append(link)
        }
    }

    func linkDidOpen(_ link: Link) {}

    func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) {
        guard !hasAnswered else { return link.write(bytes) }
        request.append(contentsOf: bytes)
        guard request.suffix(4).elementsEqual([13, 10, 13, 10]) else { return }
        hasAnswered = true
        link.write(Array(answer.utf8))
    }

    func link(_ link: Link, didClose reason: LinkFault) {}
}

@Suite(.timeLimit(.minutes(10))) struct LinkProxyTests {
    func open(
        answer: String, _ body: @escaping @Sendable (Facts<LinkEvent>, TestLoop) async throws -> String
    ) async throws -> String {
        let loop = try TestLoop()
        let facts = Facts<LinkEvent>()
        let request = Facts<[UInt8]>()
        try await loop.run { test in
            let proxy = try FakeProxy(test.loop, answer: answer)
            let probe = Probe(facts)
            let link = Link(
                loop: test.loop, to: .tcp(host: "push.example", port: 443),
                proxy: HTTPProxy(host: "127.0.0.1", port: proxy.port, login: Secret("me:pass")))
            probe.onOpen = { link in
                request.record(proxy.request)
                link.write(Array("hello".utf8))
            }
            link.delegate = probe
            probe.link = link
            test.keep(probe)
            test.keep(proxy)
            link.open()
        }
        let said = try await body(facts, loop)
        await loop.end()
        return said + (request.all.first.map { String(decoding: $0, as: UTF8.self) } ?? "")
    }

    @Test func proxyIsAskedForTheWayAndThenTheBytesArePeers() async throws {
        let said = try await open(answer: "HTTP/1.1 200 Connection established\r\nvia: x\r\n\r\n") { facts, _ in
            _ = try await facts.first { $0 == .received(Array("hello".utf8)) }
            return ""
        }
        #expect(said.hasPrefix("CONNECT push.example:443 HTTP/1.1\r\nhost: push.example:443\r\n"))
        #expect(said.contains("proxy-authorization: Basic bWU6cGFzcw==\r\n"))
    }

    @Test(arguments: [
        "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "HTTP/1.1 502 Bad Gateway\r\n\r\n", "SSH-2.0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nmore", "HTTP/1.1 407 Authentication Required\r\ncontent-length: 4\r\n\r\nbody",
    ])
    func anotherAnswerEndsTheLink(answer: String) async throws {
        _ = try await open(answer: answer) { facts, _ in
            let end = try await facts.first { $0.isClosed }
            #expect(end == .closed(.proxy))
            return ""
        }
    }
}
