// SPDX-License-Identifier: Apache-2.0
import CLibevent
import Glibc

/// One stream to a peer, TCP or unix, plain or TLS, client's or accepted. Redis and APNs both use it.
///
/// Bound to its loop's thread. Output written in a turn is sent at its end in as few system calls and TLS records as
/// possible. Input is read in batches of up to 256 KB per turn. The link uses libevent's events and not its
/// bufferevents: `bufferevent_openssl` reads one TLS record per turn, writes one per 4 KB chain and cannot use
/// OpenSSL's read-ahead (measured for 1 KB messages, both ends: 1.3 µs of CPU here, 2.6 µs there). The owner keeps the
/// link. When the last reference goes, it closes without a callback.
public final class Link {
    enum Stage {
        /// Created, not opened.
        case idle
        /// Waiting for the name server. Next: connecting or closed.
        case resolving
        /// Waiting for the connection. Next: tunnelling, handshaking, open or closed.
        case connecting
        /// Waiting for the proxy's answer. Next: handshaking or closed.
        case tunnelling
        /// TLS handshake. Next: open or closed.
        case handshaking
        /// Bytes flow. Next: closed.
        case open
        /// Final.
        case closed
    }

    /// Receives the events; weak. Set it before `open()`, for an accepted link inside the accept callback.
    public weak var delegate: (any LinkDelegate)?

    /// The peer's configured name, or the accepted peer's address.
    public let endpoint: Endpoint

    /// The connected numeric address, `127.0.0.1:6379`; nil before.
    public internal(set) var remoteAddress: String?

    /// Changes the order in which a name's addresses are tried: receives their texts, returns their indices. Called
    /// once per `open()`.
    public var orderAddresses: (([String]) -> [Int])?

    /// Replaces the name server in tests: receives a name, returns numeric hosts.
    package var lookUp: ((String) -> [String])?

    /// Addresses that failed, in the order of the attempts.
    public internal(set) var failedAddresses: [String] = []

    /// `linkDidDrain` is called when the output has exceeded this and falls to it or below.
    public var lowWaterBytes = 64 * 1024

    /// `isFull` is true above this. Nothing is refused; the owner checks before it writes more.
    public var highWaterBytes = 1024 * 1024

    let loop: Loop
    var stage = Stage.idle
    var fd: Int32 = -1
    var session: TLSSession?
    /// In place of the socket and of TLS, on a virtual loop.
    var stream: (any VirtualStream)?
    var output = OutputBuffer()
    private var unsentBytes = 0
    var readEvent: UnsafeMutablePointer<event>?
    var writeEvent: UnsafeMutablePointer<event>?
    /// Output waits until the kernel has room.
    var isWriteBlocked = false
    var isFlushScheduled = false
    var isReadScheduled = false
    var isReadPaused = false
    var isAboveLowWater = false
    /// The stage to which the time for its bytes is attributed.
    public var clockStage = StageClock.Stage.other

    let clientTLS: TLSClientContext?
    let serverTLS: TLSServerContext?
    let proxy: HTTPProxy?
    var tunnelAnswer: [UInt8] = []
    let peerName: String
    let connectTimeoutNanos: UInt64
    var deadlineNanos: UInt64 = 0
    var timer: LoopTimer?
    var resolver: Resolver?
    var addresses: [SocketAddress] = []

    /// A client's link, which `open()` connects. `connectTimeoutNanos` covers name lookup, connection and handshake.
    ///
    /// `peerName` is the name that the certificate must have if it is not the endpoint's host. With a `proxy`, only the
    /// proxy's name is resolved here; the proxy resolves the endpoint's.
    public init(
        loop: Loop, to endpoint: Endpoint, tls: TLSClientContext? = nil, peerName: String? = nil,
        proxy: HTTPProxy? = nil, connectTimeoutNanos: UInt64 = 5_000_000_000
    ) {
        loop.assertOnLoop()
        self.loop = loop
        self.endpoint = endpoint
        clientTLS = tls
        serverTLS = nil
        self.proxy = proxy
        self.connectTimeoutNanos = connectTimeoutNanos
        switch endpoint {
        case .tcp(let host, _): self.peerName = peerName ?? host
        case .unix: self.peerName = peerName ?? "localhost"
        }
    }

    /// A listener's link for an accepted socket, which it now owns.
    init(loop: Loop, accepted fd: Int32, from address: SocketAddress?, tls: TLSServerContext?, timeoutNanos: UInt64) {
        self.loop = loop
        self.fd = fd
        endpoint = .tcp(host: address?.host ?? "?", port: address?.port ?? 0)
        remoteAddress = address?.text
        clientTLS = nil
        serverTLS = tls
        proxy = nil
        peerName = ""
        connectTimeoutNanos = timeoutNanos
    }

    /// A virtual listener's link.
    convenience init(
        loop: Loop, accepted stream: any VirtualStream, from address: SocketAddress?, timeoutNanos: UInt64
    ) {
        self.init(loop: loop, accepted: -1, from: address, tls: nil, timeoutNanos: timeoutNanos)
        self.stream = stream
        stream.attach(self)
    }

    deinit {
        loop.assertReleasable()
        if stage != .closed { tearDown() }
    }

    /// The protocol chosen by ALPN; nil without TLS or without an agreement.
    public var negotiatedProtocol: String? { session?.negotiatedProtocol }

    /// Bytes written and not accepted by the kernel yet. For a closed link, the bytes that were never sent.
    ///
    /// Bytes accepted by the kernel may have reached the peer. The bytes counted here cannot have, and with TLS no
    /// record of them.
    public var pendingOutputBytes: Int { stage == .closed ? unsentBytes : output.count }

    /// Whether the owner should stop writing until `linkDidDrain`.
    public var isFull: Bool { output.count > highWaterBytes }

    /// Whether bytes can flow now.
    public var isOpen: Bool { stage == .open }

    /// Whether either side has ended the link.
    public var isClosed: Bool { stage == .closed }

    /// Starts connecting. `linkDidOpen` or `didClose` follows later. A second call does nothing.
    public func open() {
        loop.assertOnLoop()
        guard stage == .idle, fd < 0 else { return }
        deadlineNanos = deadline()
        armTimer(afterNanos: connectTimeoutNanos)
        switch endpoint {
        case .unix(let path):
            stage = .connecting
            guard let address = SocketAddress(unixPath: path) else {
                return failSoon(LinkFault(.system, "'\(path)' is not a path of a unix socket (1 to 107 bytes)"))
            }
            addresses = [address]
            loop.afterCallbacks { [weak self] in self?.connectNext(LinkFault(.system, "no address")) }
        case .tcp(let host, let port):
            stage = .resolving
            let target = proxy.map { ($0.host, $0.port) } ?? (host, port)
            if let lookUp {
                let found = lookUp(target.0).compactMap { SocketAddress(numericHost: $0, port: target.1) }
                return loop.afterCallbacks { [weak self] in self?.resolved(.success(found)) }
            }
            if let system = loop.system { return system.resolve(target.0, for: self, of: loop) }
            resolver = Resolver(loop: loop, host: target.0, port: target.1) { [weak self] result in
                self?.resolved(result)
            }
        }
    }

    /// Ends the link. No callback follows. Output that the kernel accepts at once is still sent.
    public func close() {
        loop.assertOnLoop()
        guard stage != .closed else { return }
        if stage == .open { _ = send() }
        session?.shutDown()
        tearDown()
    }

    /// Ways in which a stream can end without being closed properly.
    public enum BreakOff: Sendable {
        /// A TLS record begins and is not completed; without TLS, a plain end.
        case midRecord
        /// TCP RST.
        case reset
    }

    /// Ends the link as a crashed host would, without close_notify, for test servers. No callback follows.
    public func breakOff(_ how: BreakOff) {
        loop.assertOnLoop()
        guard stage != .closed else { return }
        switch how {
        case .midRecord where session != nil && !isWriteBlocked:
            _ = send()
            // Announces 16 KB of application data (RFC 8446 section 5.1) and sends three bytes of it.
            let stump: [UInt8] = [0x17, 0x03, 0x03, 0x40, 0x00, 0xCA, 0x11, 0x07]
            if !isWriteBlocked { _ = Glibc.send(fd, stump, stump.count, Int32(MSG_NOSIGNAL)) }
        case .midRecord: _ = send()
        case .reset where stream != nil:
            stream?.close(isReset: true)
            stream = nil
        case .reset:
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        }
        tearDown()
    }

    /// Adds bytes to the output, which is sent at the end of the turn. Before `linkDidOpen` they wait.
    ///
    /// Bytes for a closed link are dropped, because `didClose` was called already or will follow.
    public func write(_ bytes: UnsafeRawBufferPointer) {
        loop.assertOnLoop()
        guard stage != .closed else { return }
        output.append(bytes)
        if output.count > lowWaterBytes { isAboveLowWater = true }
        scheduleFlush()
    }

    /// Adds an array's bytes to the output.
    public func write(_ bytes: [UInt8]) { bytes.withUnsafeBytes { write($0) } }

    /// Stops reading, so that the network slows the peer down.
    public func pauseReading() {
        loop.assertOnLoop()
        guard !isReadPaused else { return }
        isReadPaused = true
        if let readEvent, stage == .open { event_del(readEvent) }
    }

    /// Resumes reading.
    public func resumeReading() {
        loop.assertOnLoop()
        guard isReadPaused else { return }
        isReadPaused = false
        guard stage == .open else { return }
        if let readEvent { event_add(readEvent, nil) }
        // TLS may hold bytes that the kernel will not report again.
        if session != nil { scheduleRead() }
    }

    func scheduleFlush() {
        guard stage == .open, !isFlushScheduled, !isWriteBlocked else { return }
        isFlushScheduled = true
        loop.flushAtEndOfTurn(self)
    }

    func scheduleRead() {
        guard !isReadScheduled else { return }
        isReadScheduled = true
        loop.readNextTurn(self)
    }

    /// Ends the link with a fault and notifies the owner once. Never called inside the owner's own call.
    func fail(_ fault: LinkFault) {
        guard stage != .closed else { return }
        tearDown()
        delegate?.link(self, didClose: fault)
    }

    /// Like `fail`, but after the caller has returned.
    func failSoon(_ fault: LinkFault) {
        loop.afterCallbacks { [weak self] in self?.fail(fault) }
    }

    func tearDown() {
        stage = .closed
        resolver = nil
        timer = nil
        addresses = []
        freeSocket()
        unsentBytes = output.count
        output.release()
    }

    /// Frees events before the session, and the session before the socket that both use.
    func freeSocket() {
        if let readEvent { event_free(readEvent) }
        if let writeEvent { event_free(writeEvent) }
        readEvent = nil
        writeEvent = nil
        session = nil
        stream?.close(isReset: false)
        stream = nil
        if fd >= 0 { Glibc.close(fd) }
        fd = -1
        isWriteBlocked = false
    }
}
