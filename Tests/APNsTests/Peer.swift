// SPDX-License-Identifier: Apache-2.0
import Crypto
import EventLoop
import HTTP2
import Telemetry

/// One request as the scripted peer got it.
struct PeerRequest: Sendable {
    let connection: Int
    let stream: Int32
    let token: String
    let id: String
    let authorization: String
    let headers: [String: String]
    var body: [UInt8] = []
}

/// A scripted APNs in the test's own loop: real TLS and HTTP/2, and a closure that says what happens to each request.
///
/// It checks nothing that Apple checks (the simulator does); it gives a test the frame-by-frame control it needs.
final class Peer {
    static let certificate = Result { try MintedCertificate() }

    let loop: Loop
    var listener: Listener?
    let port: UInt16
    var maxStreams: UInt32? = 1000
    /// Nobody greets: TLS comes up, SETTINGS never do.
    var isMute = false
    /// Window for all bodies of a connection, and whether it is given back.
    var windowBytes: Int32 = 1 << 24
    /// Window for the body of each stream.
    var streamWindowBytes: UInt32 = 1 << 20
    var returnsWindow = true
    var onConnection: (PeerConnection) -> Void = { _ in }
    var onRequest: (PeerRequest, PeerConnection) -> Void = { request, connection in
        connection.answer(request.stream, 200)
    }
    private(set) var connections: [PeerConnection] = []
    private(set) var requests: [PeerRequest] = []

    init(loop: Loop, host: String = "127.0.0.1", port wanted: UInt16 = 0) throws {
        self.loop = loop
        let tls = try Self.context()
        var accepted: (Link) -> Void = { _ in }
        let listener = try Listener(loop: loop, host: host, port: wanted, tls: tls) { accepted($0) }
        port = listener.port
        self.listener = listener
        accepted = { [unowned self] in accept($0) }
    }

    private static func context() throws -> TLSServerContext {
        let certificate = try Self.certificate.get()
        return try TLSServerContext(
            identity: .pem(certificate: certificate.chainPEM, key: Secret(bytes: certificate.privateKeyPEM)),
            alpn: ["h2"])
    }

    func stopListening() {
        listener?.close()
        listener = nil
    }

    func listenAgain() throws {
        listener = try Listener(loop: loop, port: port, tls: try Self.context()) { [unowned self] in accept($0) }
    }

    private func accept(_ link: Link) {
        guard let connection = try? PeerConnection(peer: self, link: link, index: connections.count) else { return }
        connections.append(connection)
        onConnection(connection)
    }

    fileprivate func received(_ request: PeerRequest, _ connection: PeerConnection) {
        requests.append(request)
        onRequest(request, connection)
    }

    var openStreamsPeak: Int { connections.map(\.openPeak).max() ?? 0 }
}

final class PeerConnection: LinkDelegate, HTTP2SessionDelegate {
    let index: Int
    let link: Link
    private(set) var open: [Int32: PeerRequest] = [:]
    private(set) var openPeak = 0
    private let session: HTTP2Session
    private unowned let peer: Peer
    private var isReceiving = false

    init(peer: Peer, link: Link, index: Int) throws {
        self.peer = peer
        self.link = link
        self.index = index
        var configuration = HTTP2Configuration()
        configuration.settings.maxConcurrentStreams = peer.maxStreams
        configuration.settings.initialWindowBytes = peer.streamWindowBytes
        configuration.connectionWindowBytes = peer.windowBytes
        configuration.returnsWindow = peer.returnsWindow
        session = try HTTP2Session(.server, configuration: configuration)
        link.delegate = self
        session.delegate = self
    }

    func answer(_ stream: Int32, _ status: Int, _ body: String = "", retryAfter: String? = nil, date: String? = nil) {
        var headers = HeaderList()
        _ = try? headers.append(":status", String(status))
        if let date { _ = try? headers.append("date", date) }
        if let retryAfter { _ = try? headers.append("retry-after", retryAfter) }
        open[stream] = nil
        try? session.submitResponse(stream, headers, body: Array(body.utf8))
        flush()
    }

    func reset(_ stream: Int32, _ code: HTTP2ErrorCode) {
        open[stream] = nil
        session.resetStream(stream, code)
        flush()
    }

    func settings(maxStreams: UInt32) {
        var settings = HTTP2Settings()
        settings.maxConcurrentStreams = maxStreams
        try? session.submitSettings(settings)
        flush()
    }

    func goAway(last: Int32, debug: String = "") {
        try? session.submitGoAway(lastStreamID: last, .noError, debug: Array(debug.utf8))
        flush()
    }

    func cut() { link.close() }

    private func flush() {
        guard !isReceiving else { return }
        let link = link
        try? session.drainOutput { link.write($0) }
    }

    func linkDidOpen(_ link: Link) { if !peer.isMute { flush() } }

    func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) {
        guard !peer.isMute else { return }
        isReceiving = true
        try? session.receive(bytes)
        isReceiving = false
        flush()
    }

    func link(_ link: Link, didClose reason: LinkFault) {}

    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveHeaders fields: borrowing HeaderFields, endStream: Bool
    ) {
        var headers: [String: String] = [:]
        for index in 0..<fields.count {
            headers[String(decoding: fields.name(index), as: UTF8.self)] =
                String(decoding: fields.value(index), as: UTF8.self)
        }
        open[stream.id] = PeerRequest(
            connection: index, stream: stream.id, token: String((headers[":path"] ?? "").dropFirst(10)),
            id: headers["apns-id"] ?? "", authorization: headers["authorization"] ?? "", headers: headers)
        openPeak = max(openPeak, open.count)
    }

    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveData bytes: UnsafeRawBufferPointer, endStream: Bool
    ) {
        open[stream.id]?.body.append(contentsOf: bytes)
        if endStream, let request = open[stream.id] { peer.received(request, self) }
    }

    func http2(_ session: HTTP2Session, stream: HTTP2Stream, didEnd end: StreamEnd) { open[stream.id] = nil }
    func http2(_ session: HTTP2Session, didReceiveSettings settings: PeerSettings) {}
    func http2(_ session: HTTP2Session, didReceiveGoAway goAway: GoAway) {}
    func http2(_ session: HTTP2Session, didReceivePingAck opaque: UInt64) {}
}
