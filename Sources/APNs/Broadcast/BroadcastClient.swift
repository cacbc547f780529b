// SPDX-License-Identifier: Apache-2.0
public import EventLoop
import HTTP2

/// Manages broadcast channels and sends broadcasts, with one connection per request, because requests are rare.
///
/// Loop-bound; one request at a time. Separate from `APNsClient`, which is made for many pushes.
public final class BroadcastClient {
    /// Maximum kept answer bytes: ten thousand channels of 24 characters, with room to spare.
    fileprivate static let bodyMax = 1 << 20

    /// Called once per `perform`: the answer, or a text with the reason why there is none. A broadcast without an
    /// answer may have been sent.
    public typealias Completion = (Result<BroadcastAnswer, BroadcastFault>) -> Void

    private let loop: Loop
    private let endpoint: APNsEndpoint
    private let identity: ClientIdentity
    private var link: Link?
    private var session: HTTP2Session?
    private var forwarder: Forwarder?
    private var timer: LoopTimer?
    private var spent: (Link, HTTP2Session?)?
    private var request: (BroadcastRequest, bundleID: String)?
    fileprivate var answer = BroadcastAnswer()
    private var completion: Completion?

    /// - Throws: if the credential or the authority's file cannot be used.
    public init(loop: Loop, endpoint: APNsEndpoint, credential: APNsCredential) throws(APNsFault) {
        loop.assertOnLoop()
        self.loop = loop
        self.endpoint = endpoint
        identity = try ClientIdentity(credential, for: endpoint)
    }

    /// Connects, sends the request and reports the answer. Abandons a previous open request.
    public func perform(
        _ request: BroadcastRequest, bundleID: String, timeoutNanos: UInt64 = 15_000_000_000,
        _ completion: @escaping Completion
    ) {
        loop.assertOnLoop()
        finish(.failure(BroadcastFault("another request took its place")))
        self.completion = completion
        if let problem = request.problem(bundleID: bundleID) { return finish(.failure(BroadcastFault(problem))) }
        self.request = (request, bundleID)
        answer = BroadcastAnswer()
        let forwarder = self.forwarder ?? Forwarder(self)
        self.forwarder = forwarder
        do throws(HTTP2Fault) {
            let session = try HTTP2Session(.client)
            session.delegate = forwarder
            self.session = session
        } catch {
            return finish(.failure(BroadcastFault(error.description)))
        }
        let link = Link(
            loop: loop, to: .tcp(host: endpoint.host, port: endpoint.port), tls: identity.tls, proxy: endpoint.proxy,
            connectTimeoutNanos: timeoutNanos)
        link.delegate = forwarder
        self.link = link
        if timer == nil {
            timer = LoopTimer(loop: loop) { [unowned self] in
                self.finish(.failure(BroadcastFault("no answer in time")))
            }
        }
        timer?.arm(afterNanos: timeoutNanos)
        link.open()
    }

    /// Abandons an open request without a callback.
    public func close() {
        completion = nil
        finish(.failure(BroadcastFault("closed")))
    }

    fileprivate func finish(_ result: Result<BroadcastAnswer, BroadcastFault>) {
        let tell = completion
        completion = nil
        request = nil
        timer?.cancel()
        link?.close()
        session?.stop()
        // Both may be further up the stack.
        if let link { spent = (link, session) }
        link = nil
        session = nil
        tell?(result)
    }

    fileprivate func submit() {
        guard let request, let session else { return }
        self.request = nil
        do throws(HTTP2Fault) {
            let headers = try headers(request.0, bundleID: request.bundleID)
            _ = try session.submitRequest(headers, body: request.0.body, tag: 1)
        } catch {
            finish(.failure(BroadcastFault(error.description)))
        }
    }

    private func headers(_ request: BroadcastRequest, bundleID: String) throws(HTTP2Fault) -> HeaderList {
        var headers = HeaderList()
        try headers.append(":method", request.method)
        try headers.append(":scheme", "https")
        try headers.append(":authority", endpoint.authority)
        try headers.append(":path", request.path(bundleID: bundleID))
        if let token = identity.tokens?.current(nowMs: loop.wallMs) {
            try headers.append("authorization", token.header, indexing: .never)
        }
        if !request.body.isEmpty { try headers.append("content-length", String(request.body.count)) }
        if let channel = request.channel { try headers.append("apns-channel-id", channel) }
        if case .send(_, _, let expirationSeconds, let priority) = request {
            try headers.append("apns-push-type", "liveactivity")
            try headers.append("apns-expiration", String(expirationSeconds))
            try headers.append("apns-priority", String(priority.rawValue))
        }
        return headers
    }

    fileprivate func received(_ bytes: UnsafeRawBufferPointer) {
        do {
            try session?.receive(bytes)
        } catch {
            return finish(.failure(BroadcastFault(error.description)))
        }
        flush()
    }

    fileprivate func flush() {
        guard let link, let session else { return }
        try? session.drainOutput { link.write($0) }
        if session.isDone { finish(.failure(BroadcastFault(session.complaint ?? "the HTTP/2 session is over"))) }
    }
}

/// Forwards the events of one connection's link and session, so that neither protocol is part of the client's
/// interface.
private final class Forwarder: LinkDelegate, HTTP2SessionDelegate {
    private unowned let client: BroadcastClient

    init(_ client: BroadcastClient) { self.client = client }

    func linkDidOpen(_ link: Link) { client.flush() }
    func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) { client.received(bytes) }
    func link(_ link: Link, didClose reason: LinkFault) { client.finish(.failure(BroadcastFault(reason.description))) }

    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveHeaders fields: borrowing HeaderFields, endStream: Bool
    ) {
        client.answer.status = fields.status
        client.answer.channel = fields.first("apns-channel-id").map { String(decoding: $0, as: UTF8.self) }
        client.answer.requestID = fields.first("apns-request-id").map { String(decoding: $0, as: UTF8.self) }
    }

    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveData bytes: UnsafeRawBufferPointer, endStream: Bool
    ) {
        client.answer.body.append(contentsOf: bytes.prefix(max(0, BroadcastClient.bodyMax - client.answer.body.count)))
    }

    func http2(_ session: HTTP2Session, stream: HTTP2Stream, didEnd end: StreamEnd) {
        // An answer is complete only if its stream ended normally.
        guard end == .closed(.noError), client.answer.status > 0 else {
            return client.finish(.failure(BroadcastFault("the request ended without an answer: \(end)")))
        }
        client.finish(.success(client.answer))
    }

    func http2(_ session: HTTP2Session, didReceiveSettings settings: PeerSettings) { client.submit() }

    func http2(_ session: HTTP2Session, didReceiveGoAway goAway: GoAway) {
        // The request is the first stream. If GOAWAY covers it, its answer still comes, or the link ends.
        guard goAway.lastStreamID < 1 else { return }
        let farewell = APNsFarewell.goAway(code: goAway.code.description, reason: AnswerBody(goAway.debug).reason)
        client.finish(.failure(BroadcastFault(farewell.description)))
    }

    func http2(_ session: HTTP2Session, didReceivePingAck opaque: UInt64) {}
}

/// The reason why there is no answer, in words.
public struct BroadcastFault: Error, Sendable, Equatable, CustomStringConvertible {
    public let description: String

    /// - Parameter description: the event in words.
    public init(_ description: String) { self.description = description }
}
