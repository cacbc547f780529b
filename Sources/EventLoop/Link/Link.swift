import CLibevent
import Glibc

/// One stream to a peer, TCP or unix, plain or TLS, client's or accepted: Redis and APNs both travel over it.
///
/// Bound to its loop's thread. What is written in a turn leaves at its end in as few system calls and TLS records as it
/// takes; what has come is read in batches of up to 256 KB per turn. The socket is driven by libevent's events and not
/// by its bufferevents: `bufferevent_openssl` reads one TLS record per turn, writes one per 4 KB chain and cannot use
/// OpenSSL's read-ahead (measured for 1 KB messages, both ends: 1.3 µs of CPU here, 2.6 µs there). The owner keeps the link; when the last reference goes, it closes silently.
public final class Link {
    enum Stage {
        /// Made, not opened.
        case idle
        /// Waiting for the name server; next connecting or closed.
        case resolving
        /// Waiting for the peer's system; next handshaking, open or closed.
        case connecting
        /// The proxy was asked for the way; next handshaking or closed.
        case tunnelling
        /// TLS; next open or closed.
        case handshaking
        /// Bytes flow; next closed.
        case open
        /// For good.
        case closed
    }

    /// Told what happens; held weakly. Set it before `open()`, for an accepted link inside the accept callback.
    public weak var delegate: (any LinkDelegate)?

    /// The peer as it was named, or the accepted peer's address.
    public let endpoint: Endpoint

    /// The numeric address connected to, `127.0.0.1:6379`; nil before.
    public internal(set) var remoteAddress: String?

    /// Has a name's addresses tried in another order: gets their texts, gives their places. Asked once per `open()`.
    public var orderAddresses: (([String]) -> [Int])?

    /// Asked in place of the name server: gets a name, gives numeric hosts. A test's network.
    package var lookUp: ((String) -> [String])?

    /// Addresses that were tried in vain, in the order of trying.
    public internal(set) var failedAddresses: [String] = []

    /// `linkDidDrain` comes when the output, having been above this, falls to it or below.
    public var lowWaterBytes = 64 * 1024

    /// `isFull` is true above this. Nothing is refused: the owner asks before it writes more.
    public var highWaterBytes = 1024 * 1024

    let loop: Loop
    var stage = Stage.idle
    var fd: Int32 = -1
    var session: TLSSession?
    var output = OutputBuffer()
    private var unsentBytes = 0
    var readEvent: UnsafeMutablePointer<event>?
    var writeEvent: UnsafeMutablePointer<event>?
    /// Output waits for the kernel's word that there is room.
    var isWriteBlocked = false
    var isFlushScheduled = false
    var isReadScheduled = false
    var isReadPaused = false
    var isAboveLowWater = false
    /// Whose the time for its bytes is.
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

    /// A client's link, which `open()` connects. `connectTimeoutNanos` covers name, connection and handshake together.
    ///
    /// `peerName` is the name that the certificate must bear where it is not the endpoint's host. Through a `proxy` the
    /// proxy's name is looked up here, and the endpoint's there.
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

    /// A listener's link on an accepted socket, which it now owns.
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

    deinit {
        loop.assertReleasable()
        if stage != .closed { tearDown() }
    }

    /// The protocol that ALPN agreed on; nil without TLS or without agreement.
    public var negotiatedProtocol: String? { session?.negotiatedProtocol }

    /// Bytes written and not yet taken by the kernel; of a closed link those that never were, for good.
    ///
    /// What the kernel took may have reached the peer; what stands here cannot have, nor, with TLS, any record of it.
    public var pendingOutputBytes: Int { stage == .closed ? unsentBytes : output.count }

    /// Whether the owner should hold back until `linkDidDrain`.
    public var isFull: Bool { output.count > highWaterBytes }

    /// Whether bytes can flow now.
    public var isOpen: Bool { stage == .open }

    /// Whether the link has ended, by either side.
    public var isClosed: Bool { stage == .closed }

    /// Starts connecting; the answer is `linkDidOpen` or `didClose`, later. A second call does nothing.
    public func open() {
        loop.assertOnLoop()
        guard stage == .idle, fd < 0 else { return }
        deadlineNanos = deadline()
        armTimer(afterNanos: connectTimeoutNanos)
        switch endpoint {
        case .unix(let path):
            stage = .connecting
            guard let address = SocketAddress(unixPath: path) else {
                return failSoon(LinkFault(.system, "'\(path)' is no path of a unix socket (1 to 107 bytes)"))
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
            resolver = Resolver(loop: loop, host: target.0, port: target.1) { [weak self] result in
                self?.resolved(result)
            }
        }
    }

    /// Ends the link; no callback comes after it. What the kernel takes at once of the output still leaves.
    public func close() {
        loop.assertOnLoop()
        guard stage != .closed else { return }
        if stage == .open { _ = send() }
        session?.shutDown()
        tearDown()
    }

    /// How a stream can break off that was not closed properly.
    public enum BreakOff: Sendable {
        /// A TLS record begins and does not end; without TLS, simply the end.
        case midRecord
        /// TCP RST.
        case reset
    }

    /// Ends the link as a dying host would, without close_notify: for a server that plays one. No callback comes after it.
    public func breakOff(_ how: BreakOff) {
        loop.assertOnLoop()
        guard stage != .closed else { return }
        switch how {
        case .midRecord where session != nil && !isWriteBlocked:
            _ = send()
            // Application data of 16 KB announced (RFC 8446 section 5.1), three bytes of it sent.
            let stump: [UInt8] = [0x17, 0x03, 0x03, 0x40, 0x00, 0xCA, 0x11, 0x07]
            if !isWriteBlocked { _ = Glibc.send(fd, stump, stump.count, Int32(MSG_NOSIGNAL)) }
        case .midRecord: _ = send()
        case .reset:
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        }
        tearDown()
    }

    /// Adds bytes to the output, which leaves at the end of the turn; before `linkDidOpen` they wait for it.
    ///
    /// Written to a closed link they are dropped, since its `didClose` is told already or on its way.
    public func write(_ bytes: UnsafeRawBufferPointer) {
        loop.assertOnLoop()
        guard stage != .closed else { return }
        output.append(bytes)
        if output.count > lowWaterBytes { isAboveLowWater = true }
        scheduleFlush()
    }

    /// Adds an array's bytes to the output.
    public func write(_ bytes: [UInt8]) { bytes.withUnsafeBytes { write($0) } }

    /// Stops reading, so that the peer is slowed down by the network's own means.
    public func pauseReading() {
        loop.assertOnLoop()
        guard !isReadPaused else { return }
        isReadPaused = true
        if let readEvent, stage == .open { event_del(readEvent) }
    }

    /// Goes on reading.
    public func resumeReading() {
        loop.assertOnLoop()
        guard isReadPaused else { return }
        isReadPaused = false
        guard stage == .open else { return }
        if let readEvent { event_add(readEvent, nil) }
        // TLS may hold bytes that the kernel will not announce again.
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

    /// Ends the link with a fault and tells the owner, once. Never called from inside the owner's own call.
    func fail(_ fault: LinkFault) {
        guard stage != .closed else { return }
        tearDown()
        delegate?.link(self, didClose: fault)
    }

    /// As `fail`, but after the caller has returned.
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

    /// Frees events before the session and the session before the socket that both of them use.
    func freeSocket() {
        if let readEvent { event_free(readEvent) }
        if let writeEvent { event_free(writeEvent) }
        readEvent = nil
        writeEvent = nil
        session = nil
        if fd >= 0 { Glibc.close(fd) }
        fd = -1
        isWriteBlocked = false
    }
}
