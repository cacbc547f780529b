import Glibc

/// One client of the operator's port: requests one after the other, each with a time for all of it.
///
/// The time runs from the moment when the connection is ready for a request until its answer is in the kernel's hands, so
/// that neither a request sent byte by byte nor an answer that nobody reads holds the connection for longer.
final class HTTPConnection: LinkDelegate {
    private enum Stage {
        /// A request is awaited, or comes.
        case reading
        /// The handler has it; nothing more is read.
        case answering
        /// Next reading, or closed.
        case writing
    }

    /// When the time of the present request began.
    private(set) var sinceNanos: UInt64
    /// The numeric address of this machine that the client connected to; nil where the system does not tell it.
    let localHost: String?
    /// The numeric address of the client; empty where the system does not tell it.
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
        // Every answer is told when the kernel has all of it.
        link.lowWaterBytes = 0
        link.delegate = self
        timer = LoopTimer(loop: loop) { [unowned self] in end() }
        timer?.arm(afterNanos: limitNanos)
    }

    /// An IPv4 address as its own; a listener on `::` sees it within an IPv6 one (RFC 4291 section 2.5.5.2).
    static func plain(_ host: String) -> String {
        let mapped = "::ffff:"
        return host.hasPrefix(mapped) && host.contains(".") ? String(host.dropFirst(mapped.count)) : host
    }

    /// Whether nothing is owed to the client: no byte of a request lies here or in the kernel, or the answer is ready and the
    /// client does not read it.
    var isIdle: Bool {
        switch stage {
        case .reading: !hasBytes
        case .answering: false
        case .writing: loop.nowNanos &- writingNanos >= Self.stallNanos
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

    /// Ends the connection; a responder that is still held answers nobody.
    func end() {
        link.close()
        server.didEnd(self)
    }

    /// The answer to one request; of what comes late or twice nothing is sent.
    func answer(_ number: UInt64, _ response: HTTPResponse) {
        guard isWaiting(number) else { return }
        write(response)
    }

    private func write(_ response: HTTPResponse) {
        stage = .writing
        writingNanos = loop.nowNanos
        link.write(response.bytes(isHead: isHead, closes: closes))
    }

    /// Takes the next request, if it is here.
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
