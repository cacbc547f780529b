// SPDX-License-Identifier: Apache-2.0
import EventLoop
import HTTP2

/// One connection to APNs: link, HTTP/2 session and connection machine. Loop-bound, owned by its client.
///
/// It decides nothing about pushes. It reports stream events to the client, which knows the push by its slot.
final class APNsConnection {
    /// Identifies the connection within its client.
    let serial: Int32
    var machine: ConnectionMachine
    private(set) var token: ConnectionToken?
    /// A push was accepted on it.
    var isProven = false
    /// Its successor is being opened, for this reason.
    var replaceCause: ConnectionMachine.DrainCause?
    /// It stopped answering, after this number of answers.
    var frozenAfter: UInt64?
    /// The route that it serves.
    let route: PushTable.Route
    var health: ConnectionHealth
    let identity: ClientIdentity
    /// The first fault was reported to the pacer.
    var hasFailed = false

    private let link: Link
    private var forwarder: LinkForwarder?
    private let session: HTTP2Session
    /// The client's turns enclose the events of the link and the session.
    private unowned let client: APNsClient
    private unowned let pool: ConnectionPool
    private unowned let attempts: PushAttempts
    private let loop: Loop
    private let authority: String
    private var hasComparedClocks = false
    private var blocks = [RequestBlock?](repeating: nil, count: RequestBlock.shapes)

    init(
        client: APNsClient, loop: Loop, serial: Int32, route: PushTable.Route, endpoint: APNsEndpoint,
        identity: ClientIdentity, rules: ConnectionMachine.Rules
    ) throws(HTTP2Fault) {
        self.client = client
        pool = client.pool
        attempts = client.attempts
        self.loop = loop
        self.serial = serial
        self.route = route
        self.identity = identity
        health = ConnectionHealth(nowNanos: loop.nowNanos)
        authority = endpoint.authority
        machine = ConnectionMachine(rules: rules, nowNanos: loop.nowNanos)
        // The name is resolved again for each connect (Apple: no cached addresses).
        link = Link(
            loop: loop, to: .tcp(host: endpoint.host, port: endpoint.port), tls: identity.tls, proxy: endpoint.proxy,
            connectTimeoutNanos: rules.connectTimeoutNanos)
        link.clockStage = .send
        session = try HTTP2Session(.client)
        let forwarder = LinkForwarder(self)
        self.forwarder = forwarder
        link.delegate = forwarder
        link.lookUp = pool.lookUp
        link.orderAddresses = { [unowned pool] in pool.orderAddresses($0) }
        session.delegate = self
        link.open()
    }

    var tokens: TokenSource? { identity.tokens }
    var isFrozen: Bool { frozenAfter != nil }
    var isReplacing: Bool { replaceCause != nil }
    var isSuspicious: Bool { replaceCause == .suspicious }
    var remoteAddress: String? { link.remoteAddress }
    /// Addresses that failed during the connect.
    var failedAddresses: [String] { link.failedAddresses }

    /// Which limit of the peer keeps a push of so many bytes from leaving here; nil: none does.
    func block(of bytes: Int) -> ConnectionHealth.Suspicion? {
        if machine.peerLimit < 1 { return .streams }
        return machine.room > 0 && session.connectionSendWindow < bytes ? .window : nil
    }

    /// - Returns: whether a push with a body of this size may be sent now.
    ///
    /// A body larger than the peer's window would keep a stream half open and let later headers overtake it.
    func canCarry(_ bytes: Int) -> Bool {
        machine.room > 0 && session.connectionSendWindow >= bytes && !link.isFull
    }

    /// The number of pushes of this size that may be sent now.
    func room(for bytes: Int) -> Int {
        canCarry(bytes) ? min(machine.room, Int(session.connectionSendWindow) / max(bytes, 1)) : 0
    }

    /// Writes a request. After `.sent` the caller records it and then calls `flush`.
    func submit(_ push: borrowing Push, slot: PushTable.Slot, tokens: TokenSource?, nowNanos: UInt64, wallMs: Int64)
        -> Submission
    {
        refreshToken(tokens, wallMs: wallMs)
        // Signing failed. A request without its token would only pause the credential.
        if tokens != nil, token == nil { return .unfit }
        let shape = RequestBlock.shape(of: push.headers)
        let block: RequestBlock
        if let made = blocks[shape] {
            block = made
        } else {
            guard
                let made = try? RequestBlock(authority: authority, headers: push.headers, token: token?.token)
            else { return .unfit }
            blocks[shape] = made
            block = made
        }
        let submission = block.submit(push, token: token?.token, to: session, tag: UInt64(UInt32(bitPattern: slot)))
        if case .sent = submission {
            health.submitted(isFirstInFlight: machine.inFlight == 0, nowNanos: nowNanos)
            machine.submitted(nowNanos: nowNanos)
        }
        return submission
    }

    private func refreshToken(_ tokens: TokenSource?, wallMs: Int64) {
        guard let tokens else { return }
        if token == nil {
            token = tokens.current(nowMs: wallMs).map { ConnectionToken($0, nowMs: wallMs) }
        } else {
            token?.refresh(from: tokens, nowMs: wallMs)
        }
    }

    /// Resets a stream. Its end is reported as an event.
    func reset(_ stream: Int32) {
        session.resetStream(stream, .cancel)
        flush()
    }

    func ping() {
        try? session.submitPing(loop.nowNanos)
        flush()
    }

    /// Moves nghttp2's output into the link, which writes once at the end of the turn.
    ///
    /// Called for each push: otherwise queued HEADERS would be sent before the DATA of earlier requests.
    func flush() {
        let link = link
        do {
            try session.drainOutput { link.write($0) }
        } catch {
            pool.broke(self, fault: error.description)
        }
    }

    /// Closes from our side: every open stream is reported as lost or unprocessed, then nothing more.
    func shut() {
        machine.closed()
        link.close()
        session.abandon()
    }
}

// The link's events. Tests without sockets call these directly.
extension APNsConnection: LinkOwner {
    func linkDidOpen() {
        let client = client
        client.enter()
        defer { client.leave() }
        // A link without agreement on h2 has failed already (LinkFault.alpn).
        machine.opened(nowNanos: loop.nowNanos)
        flush()
    }

    func received(_ bytes: UnsafeRawBufferPointer) {
        let client = client
        client.enter()
        defer { client.leave() }
        machine.heard(nowNanos: loop.nowNanos)
        do {
            try session.receive(bytes)
        } catch {
            return pool.broke(self, fault: error.description)
        }
        guard machine.phase != .closed else { return }
        flush()
        if session.isDone { pool.broke(self, fault: session.complaint ?? "the HTTP/2 session is over") }
    }

    func linkClosed(_ reason: LinkFault) {
        let client = client
        client.enter()
        defer { client.leave() }
        pool.broke(self, fault: reason.description)
    }
}

extension APNsConnection: HTTP2SessionDelegate {
    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveHeaders fields: borrowing HeaderFields, endStream: Bool
    ) {
        var retryAfter: UInt32?
        if fields.status != 200, let value = fields.first("retry-after") {
            let date = fields.first("date").flatMap { HTTPDate.seconds($0) }
            retryAfter = RetryAfter.seconds(value, date: date, nowMs: loop.wallMs)
        }
        if !hasComparedClocks || fields.status == 403 {
            hasComparedClocks = true
            let date = fields.first("date").flatMap { HTTPDate.seconds($0) }
            if let date { client.credential.noteServerDate(date) }
        }
        attempts.answerBegan(stream, status: fields.status, retryAfterSeconds: retryAfter, on: self)
    }

    func http2(
        _ session: HTTP2Session, stream: HTTP2Stream, didReceiveData bytes: UnsafeRawBufferPointer, endStream: Bool
    ) {
        attempts.answerBody(stream, bytes, on: self)
    }

    func http2(_ session: HTTP2Session, stream: HTTP2Stream, didEnd end: StreamEnd) {
        attempts.streamEnded(stream, end, on: self)
    }

    func http2(_ session: HTTP2Session, didReceiveSettings settings: PeerSettings) {
        let streams = settings.maxConcurrentStreams
        switch machine.settings(maxStreams: streams == .max ? nil : streams, nowNanos: loop.nowNanos) {
        case .becameReady: pool.ready(self)
        case .nothing, .limitChanged: break
        }
    }

    func http2(_ session: HTTP2Session, didReceiveGoAway goAway: GoAway) {
        pool.goes(self, goAway)
    }

    func http2(_ session: HTTP2Session, didReceivePingAck opaque: UInt64) {
        if let nanos = machine.pingAcknowledged(nowNanos: loop.nowNanos) { pool.pingAnswered(nanos) }
    }
}
