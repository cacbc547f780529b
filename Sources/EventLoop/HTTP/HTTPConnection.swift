// SPDX-License-Identifier: Apache-2.0
import Glibc

/// One client of the operator's port. Requests are handled one after another, each with a time limit.
///
/// The time limit covers the wait for the request, the answer, and its transfer to the kernel. So neither a request
/// sent byte by byte nor an answer that the client does not read keeps the connection longer.
final class HTTPConnection: LinkDelegate {
    private enum Stage {
        /// Waiting for a request, or receiving it.
        case reading
        /// The request waits for its turn of the loop. Nothing more is read.
        case waiting
        /// The handler has the request. Nothing more is read.
        case answering
        /// Sending the answer. Next: reading, or closed.
        case writing
    }

    /// Start of the present request's time.
    private(set) var sinceNanos: UInt64
    /// The numeric local address of the connection; nil if the system does not report it.
    let localHost: String?
    /// The numeric address of the client; empty if the system does not give it.
    let source: String

    private let link: Link
    private unowned let server: HTTPServer
    private let loop: Loop
    private let limitNanos: UInt64
    private var timer: LoopTimer?
    private var reader = HTTPRequestReader()
    private var stage = Stage.reading
    private var number: UInt64 = 0
    private var isHead = false
    private var closes = false

    init(loop: Loop, link: Link, server: HTTPServer, limitNanos: UInt64) {
        self.loop = loop
        self.link = link
        self.server = server
        self.limitNanos = limitNanos
        localHost = SocketAddress(localOf: link.fd)?.host.map(Self.plain)
        source = SocketAddress(peerOf: link.fd)?.host.map(Self.plain) ?? ""
        sinceNanos = loop.nowNanos
        // The drain callback then comes when the kernel has the whole answer.
        link.lowWaterBytes = 0
        link.delegate = self
        timer = LoopTimer(loop: loop) { [unowned self] in end() }
        timer?.arm(afterNanos: limitNanos)
    }

    /// An IPv4 address in its own form. A listener on `::` sees it inside an IPv6 address (RFC 4291 section 2.5.5.2).
    static func plain(_ host: String) -> String {
        let mapped = "::ffff:"
        return host.hasPrefix(mapped) && host.contains(".") ? String(host.dropFirst(mapped.count)) : host
    }

    /// How little a client is owed. Where room is short, the lowest gives way first.
    enum Standing: Int {
        /// No byte of a request lies here or in the kernel, or the client has not read its answer for a while.
        case idle
        /// The client has not read its answer yet.
        case unread
        case waiting
        /// The request of a new connection may still come: a probe sends it right after connecting.
        case new
        case served
    }

    var standing: Standing {
        let now = loop.nowNanos
        return switch stage {
        case .reading where hasBytes: .served
        case .reading: now &- sinceNanos >= HTTPServer.newcomerNanos ? .idle : .new
        case .waiting: .waiting
        case .answering: .served
        case .writing: now &- writingNanos >= Self.stallNanos ? .idle : .unread
        }
    }

    /// Connections are accepted many at a time, before any of them is read: a request may be in the kernel already.
    private var hasBytes: Bool {
        var byte: UInt8 = 0
        return recv(link.fd, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) > 0
    }

    private static let stallNanos: UInt64 = 1_000_000_000
    private var writingNanos: UInt64 = 0

    private func isWaiting(_ number: UInt64) -> Bool { stage == .answering && self.number == number && !link.isClosed }

    /// Closes the connection. A responder that still exists then has no effect.
    func end() {
        link.close()
        server.didEnd(self)
    }

    /// The request waits for its turn.
    func wait() { stage = .waiting }

    /// The request's turn has come. Returns false if it is no longer open.
    func begin(_ number: UInt64) -> Bool {
        guard stage == .waiting, self.number == number, !link.isClosed else { return false }
        stage = .answering
        return true
    }

    /// Sends the answer to one request. Late and repeated answers are dropped.
    func answer(_ number: UInt64, _ response: HTTPResponse) {
        guard isWaiting(number) else { return }
        write(response)
    }

    private func write(_ response: HTTPResponse) {
        stage = .writing
        writingNanos = loop.nowNanos
        link.write(response.bytes(isHead: isHead, closes: closes))
    }

    /// Takes the next request if it is complete.
    private func advance() {
        guard stage == .reading else { return }
        switch reader.next() {
        case .more: break
        case .refused(let status, let words):
            link.pauseReading()
            isHead = false
            closes = true
            write(HTTPResponse(status: status, text: words))
        case .request(let head):
            link.pauseReading()
            stage = .answering
            number &+= 1
            isHead = head.method.elementsEqual("HEAD".utf8)
            closes = !head.keepsAlive
            server.handle(head, of: self, HTTPResponder(loop: loop, connection: self, number: number))
        }
    }

    // MARK: - LinkDelegate

    func linkDidOpen(_ link: Link) {}

    func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) {
        reader.append(bytes)
        advance()
    }

    func linkDidDrain(_ link: Link) {
        guard stage == .writing else { return }
        if closes { return end() }
        stage = .reading
        sinceNanos = loop.nowNanos
        timer?.arm(afterNanos: limitNanos)
        link.resumeReading()
        advance()
    }

    func link(_ link: Link, didClose reason: LinkFault) { server.didEnd(self) }
}
