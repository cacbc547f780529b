// SPDX-License-Identifier: Apache-2.0
import CLibevent
import Glibc
import Telemetry

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
    private var readEvent: UnsafeMutablePointer<event>?
    private var writeEvent: UnsafeMutablePointer<event>?
    /// Output waits until the kernel has room.
    private var isWriteBlocked = false
    private var isFlushScheduled = false
    private var isReadScheduled = false
    private var isReadPaused = false
    private var isAboveLowWater = false
    /// The stage to which the time for its bytes is attributed.
    public var clockStage = StageClock.Stage.other

    private let clientTLS: TLSClientContext?
    private let serverTLS: TLSServerContext?
    let proxy: HTTPProxy?
    private var tunnelAnswer: [UInt8] = []
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

    private func scheduleFlush() {
        guard stage == .open, !isFlushScheduled, !isWriteBlocked else { return }
        isFlushScheduled = true
        loop.flushAtEndOfTurn(self)
    }

    private func scheduleRead() {
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
    private func failSoon(_ fault: LinkFault) {
        loop.afterCallbacks { [weak self] in self?.fail(fault) }
    }

    private func tearDown() {
        stage = .closed
        resolver = nil
        timer = nil
        addresses = []
        freeSocket()
        unsentBytes = output.count
        output.release()
    }

    /// Frees events before the session, and the session before the socket that both use.
    private func freeSocket() {
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

    // MARK: Flow
    // Input and output of an open stream.

    /// Maximum bytes sent in one turn, so that a fast peer cannot occupy the loop.
    private static var writeBudget: Int { 1024 * 1024 }
    /// The largest TLS record's content (RFC 8446 section 5.1). With less room a call is not worth its cost.
    private static var recordBytes: Int { 16 * 1024 }

    func readable() {
        _ = loop.nowNanos
        loop.stageClock?.enter(clockStage)
        switch stage {
        case .tunnelling: tunnelReadable()
        case .handshaking: handshake()
        case .open: receive()
        case .idle, .resolving, .connecting, .closed: break
        }
    }

    func writable() {
        _ = loop.nowNanos
        loop.stageClock?.enter(clockStage)
        isWriteBlocked = false
        switch stage {
        case .connecting: connectFinished()
        case .handshaking: handshake()
        case .open:
            flush()
            // TLS may have had to write before it could continue to read.
            if session != nil, stage == .open { scheduleRead() }
        case .idle, .resolving, .tunnelling, .closed: break
        }
    }

    func resumeRead() {
        isReadScheduled = false
        loop.stageClock?.enter(clockStage)
        if stage == .open, !isReadPaused { receive() }
    }

    /// Reads the available bytes, up to the size of the loop's scratch space, and passes them on in one piece.
    private func receive() {
        var filled = 0
        var hasMore = false
        var end: LinkFault?
        if let session {
            fill: while true {
                guard loop.scratch.count - filled >= Self.recordBytes else {
                    hasMore = true
                    break
                }
                switch session.read(into: UnsafeMutableRawBufferPointer(rebasing: loop.scratch[filled...])) {
                case .bytes(let count): filled += count
                case .wantsRead: break fill
                case .wantsWrite:
                    if let writeEvent { event_add(writeEvent, nil) }
                    break fill
                case .ended(let fault):
                    end = fault
                    break fill
                }
            }
        } else if let stream {
            switch stream.read(into: loop.scratch) {
            case .bytes(let count): filled = count
            case .blocked: break
            case .ended(let fault): end = fault
            }
        } else {
            let count = recv(fd, loop.scratch.baseAddress, loop.scratch.count, 0)
            if count > 0 {
                filled = count
            } else if count == 0 {
                end = LinkFault(.closedByPeer, "\(endpoint): the peer closed the stream")
            } else if errno != EAGAIN, errno != EINTR {
                end = LinkFault(errno: errno, "\(endpoint): read")
            }
        }
        if filled > 0 { delegate?.link(self, didReceive: UnsafeRawBufferPointer(rebasing: loop.scratch[..<filled])) }
        guard stage == .open else { return }
        // A paused link meets its end again when it resumes.
        if let end, !isReadPaused { return fail(end) }
        if hasMore, !isReadPaused { scheduleRead() }
        // TLS may have had to read before it could continue to write.
        if output.count > 0 { scheduleFlush() }
    }

    /// Sends the collected output, at the end of a turn or when the kernel has room again.
    func flush() {
        isFlushScheduled = false
        loop.stageClock?.enter(clockStage)
        guard stage == .open, !isWriteBlocked else { return }
        if let fault = send() { return fail(fault) }
        if isWriteBlocked {
            if let writeEvent { event_add(writeEvent, nil) }
        } else if output.count > 0 {
            scheduleFlush()
        }
        guard isAboveLowWater, output.count <= lowWaterBytes else { return }
        isAboveLowWater = false
        delegate?.linkDidDrain(self)
    }

    /// Writes until the output is empty, the kernel has no room (`isWriteBlocked`), or the turn's budget is used up.
    func send() -> LinkFault? {
        var budget = Self.writeBudget
        while output.count > 0, budget > 0 {
            let sent: Int
            if let session {
                switch session.write(output.bytes) {
                case .bytes(let count): sent = count
                case .wantsWrite:
                    isWriteBlocked = true
                    return nil
                case .wantsRead:
                    // Happens only during a key change. The next read continues it.
                    return nil
                case .ended(let fault): return fault
                }
            } else if let stream {
                switch stream.write(output.bytes) {
                case .bytes(let count): sent = count
                case .blocked:
                    isWriteBlocked = true
                    return nil
                case .ended(let fault): return fault
                }
            } else {
                let bytes = output.bytes
                let count = Glibc.send(fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
                if count < 0, errno == EINTR { continue }
                if count < 0, errno == EAGAIN {
                    isWriteBlocked = true
                    return nil
                }
                guard count >= 0 else { return LinkFault(errno: errno, "\(endpoint): write") }
                sent = count
            }
            output.drop(sent)
            budget -= sent
        }
        return nil
    }

    // MARK: Opening
    // From a name to an open stream: resolve, connect (one address after another), TLS handshake.

    func resolved(_ result: Result<[SocketAddress], LinkFault>) {
        guard stage == .resolving else { return }
        resolver = nil
        switch result {
        case .failure(let fault): fail(LinkFault(fault.reason, "\(endpoint): \(fault.detail)"))
        case .success(let found):
            stage = .connecting
            addresses = ordered(found)
            connectNext(LinkFault(.dns, "\(endpoint): the name has no address"))
        }
    }

    /// In the owner's order, if it gives one with each index at most once.
    private func ordered(_ found: [SocketAddress]) -> [SocketAddress] {
        guard let orderAddresses, found.count > 1 else { return found }
        let places = orderAddresses(found.map(\.text))
        guard places.allSatisfy(found.indices.contains), Set(places).count == found.count else { return found }
        return places.map { found[$0] }
    }

    /// Tries the next address. `last` is the previous attempt's fault, reported when no address is left.
    private func connectNext(_ last: LinkFault) {
        guard stage == .connecting else { return }
        if fd >= 0 || stream != nil, let remoteAddress { failedAddresses.append(remoteAddress) }
        freeSocket()
        var last = last
        while !addresses.isEmpty {
            let address = addresses.removeFirst()
            if let fault = connect(to: address) {
                last = fault
                if let remoteAddress { failedAddresses.append(remoteAddress) }
                freeSocket()
            } else {
                return
            }
        }
        fail(last)
    }

    /// Starts one attempt. Returns nil if it is in progress.
    private func connect(to address: SocketAddress) -> LinkFault? {
        if let system = loop.system {
            remoteAddress = address.text
            stream = system.connect(self, of: loop, to: address.text)
            armForAddress()
            return nil
        }
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        fd = socket(address.family, kind, 0)
        guard fd >= 0 else { return LinkFault(errno: errno, "\(endpoint): socket") }
        remoteAddress = address.family == AF_UNIX ? endpoint.description : address.text
        guard prepareSocket(isUnix: address.family == AF_UNIX) else {
            return LinkFault(.system, "\(place): no event for the socket")
        }
        let code = address.withPointer { Glibc.connect(fd, $0, $1) }
        if code != 0, errno != EINPROGRESS { return LinkFault(errno: errno, "\(place): connect") }
        armForAddress()
        // The write event reports a connected socket, immediately or later.
        if let writeEvent { event_add(writeEvent, nil) }
        return nil
    }

    /// The endpoint, with the address of the attempt unless it names that address itself.
    private var place: String {
        let name = endpoint.description
        guard let remoteAddress, remoteAddress != name else { return name }
        return "\(name) (\(remoteAddress))"
    }

    /// Each address gets its share of the remaining time, so that a silent first one does not use it all.
    private func armForAddress() {
        let now = loop.nowNanos
        let left = deadlineNanos > now ? deadlineNanos - now : 1
        armTimer(afterNanos: left / UInt64(addresses.count + 1))
    }

    private func prepareSocket(isUnix: Bool) -> Bool {
        if !isUnix {
            var on: Int32 = 1
            // Output is already collected per turn. Nagle's algorithm would only add a wait for the peer's ACK.
            setsockopt(fd, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
            setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, socklen_t(MemoryLayout<Int32>.size))
            // Detects a dead peer of an idle link after 60 s, before most address translators drop the connection.
            for (option, value) in [(TCP_KEEPIDLE, Int32(30)), (TCP_KEEPINTVL, 10), (TCP_KEEPCNT, 3)] {
                var value = value
                setsockopt(fd, Int32(IPPROTO_TCP), option, &value, socklen_t(MemoryLayout<Int32>.size))
            }
        }
        let context = Unmanaged.passUnretained(self).toOpaque()
        readEvent = event_new(
            loop.base, fd, Int16(EV_READ | EV_PERSIST),
            { _, _, context in
                guard let context else { return }
                Unmanaged<Link>.fromOpaque(context).takeUnretainedValue().readable()
            }, context)
        writeEvent = event_new(
            loop.base, fd, Int16(EV_WRITE),
            { _, _, context in
                guard let context else { return }
                Unmanaged<Link>.fromOpaque(context).takeUnretainedValue().writable()
            }, context)
        return readEvent != nil && writeEvent != nil
    }

    /// An accepted socket starts here, after the listener's owner has set the delegate.
    func beginAccepted() {
        guard stage == .idle, fd >= 0 || stream != nil else { return }
        guard stream != nil || prepareSocket(isUnix: false) else {
            return fail(LinkFault(.system, "no event for the accepted socket"))
        }
        deadlineNanos = deadline()
        armTimer(afterNanos: connectTimeoutNanos)
        connected()
    }

    private func connectFinished() {
        var code: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) == 0 else {
            return fail(LinkFault(errno: errno, "\(endpoint): getsockopt"))
        }
        guard code == 0 else { return connectNext(LinkFault(errno: code, "\(place): connect")) }
        addresses = []
        connected()
    }

    func connected() {
        if deadlineNanos > loop.nowNanos { armTimer(afterNanos: deadlineNanos - loop.nowNanos) }
        if let proxy { return beginTunnel(proxy) }
        beginTLS()
    }

    /// The TCP connection or tunnel is ready. TLS comes next, if configured.
    private func beginTLS() {
        if stream != nil { return opened() }
        do throws(LinkFault) {
            if let clientTLS {
                session = try TLSSession(client: clientTLS, fd: fd, peerName: peerName)
            } else if let serverTLS {
                session = try TLSSession(server: serverTLS, fd: fd)
            }
        } catch {
            return fail(error)
        }
        guard session != nil else { return opened() }
        stage = .handshaking
        if let readEvent { event_add(readEvent, nil) }
        handshake()
    }

    func handshake() {
        guard stage == .handshaking, let session else { return }
        switch session.handshake() {
        case .bytes: opened()
        case .wantsRead: break
        case .wantsWrite: if let writeEvent { event_add(writeEvent, nil) }
        case .ended(let fault): fail(LinkFault(fault.reason, "\(endpoint): \(fault.detail)"))
        }
    }

    private func opened() {
        stage = .open
        timer = nil
        if let readEvent {
            if isReadPaused {
                event_del(readEvent)
            } else {
                event_add(readEvent, nil)
            }
        }
        delegate?.linkDidOpen(self)
        guard stage == .open else { return }
        // The peer's first bytes may have arrived with its last handshake record.
        if session != nil { scheduleRead() }
        if output.count > 0 { scheduleFlush() }
    }

    /// The deadline for opening.
    func deadline() -> UInt64 {
        let (sum, overflow) = loop.nowNanos.addingReportingOverflow(connectTimeoutNanos)
        return overflow ? .max : sum
    }

    private func armTimer(afterNanos: UInt64) {
        if timer == nil { timer = LoopTimer(loop: loop) { [unowned self] in self.timeUp() } }
        timer?.arm(afterNanos: afterNanos)
    }

    private func timeUp() {
        let doing: String
        switch stage {
        case .resolving: doing = "resolving the name"
        case .connecting: doing = "connecting"
        case .tunnelling: doing = "the proxy's answer"
        case .handshaking: doing = "the TLS handshake"
        case .idle, .open, .closed: return
        }
        let fault = LinkFault(.timeout, "\(endpoint): \(doing) timed out")
        if stage == .connecting, !addresses.isEmpty { return connectNext(fault) }
        fail(fault)
    }

    // MARK: Tunnel
    // The tunnel through a proxy: one HTTP/1.1 request on the new connection, one answer, then the peer's bytes.

    /// More than any proxy's answer to CONNECT needs.
    private static var answerBytesMax: Int { 8192 }

    /// Asks the proxy for a tunnel. The socket's buffer is empty, so it accepts these few bytes at once.
    private func beginTunnel(_ proxy: HTTPProxy) {
        guard case .tcp(let host, let port) = endpoint else { return }
        let authority = "\(host.contains(":") ? "[\(host)]" : host):\(port)"
        var request = Array("CONNECT \(authority) HTTP/1.1\r\nhost: \(authority)\r\n".utf8)
        if let authorization = proxy.authorization {
            // Reserves all memory in advance, so that no copy of the login remains in freed memory.
            request.reserveCapacity(request.count + 64 + authorization.withBytes(\.count))
            request += Array("proxy-authorization: ".utf8)
            authorization.withBytes { request.append(contentsOf: $0) }
            request += Array("\r\n".utf8)
        }
        request += Array("\r\n".utf8)
        stage = .tunnelling
        let sent = request.withUnsafeMutableBytes { bytes in
            defer { if let start = bytes.baseAddress { explicit_bzero(start, bytes.count) } }
            return Glibc.send(fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        }
        guard sent == request.count else {
            return fail(LinkFault(.proxy, "\(endpoint): the proxy \(proxy) accepts no request"))
        }
        if let readEvent { event_add(readEvent, nil) }
    }

    private func tunnelReadable() {
        guard stage == .tunnelling, let proxy else { return }
        let count = recv(fd, loop.scratch.baseAddress, Self.answerBytesMax, 0)
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        guard count > 0 else {
            return fail(LinkFault(.proxy, "\(endpoint): the proxy \(proxy) closed the connection"))
        }
        tunnelAnswer.append(contentsOf: loop.scratch[..<count])
        // A refusal says all in its first line: what follows, a page for a browser as a rule, is not awaited.
        if let status = Self.status(tunnelAnswer), status / 100 > 2 {
            let why = status == 407 ? " (the proxy asks for a login, or refuses the one it got)" : ""
            return fail(LinkFault(.proxy, "\(endpoint): the proxy \(proxy) answered \(status)\(why)"))
        }
        guard let end = Self.end(of: tunnelAnswer) else {
            guard tunnelAnswer.count < Self.answerBytesMax else {
                return fail(LinkFault(.proxy, "\(endpoint): the proxy \(proxy) answers without an end"))
            }
            return
        }
        // In TLS the client speaks first, so bytes after the answer mean that this is not a tunnel.
        guard let status = Self.status(tunnelAnswer), status / 100 == 2, end == tunnelAnswer.count else {
            return fail(LinkFault(.proxy, "\(endpoint): the proxy \(proxy) does not speak HTTP/1.1"))
        }
        tunnelAnswer = []
        if let readEvent { event_del(readEvent) }
        beginTLS()
    }

    /// The position after the blank line.
    private static func end(of answer: [UInt8]) -> Int? {
        var at = 3
        while at < answer.count {
            if answer[at] == 10, answer[at - 1] == 13, answer[at - 2] == 10, answer[at - 3] == 13 { return at + 1 }
            at += 1
        }
        return nil
    }

    /// The status of `HTTP/1.x nnn …`.
    private static func status(_ answer: [UInt8]) -> Int? {
        guard answer.count >= 12, answer.starts(with: "HTTP/1.".utf8), answer[8] == UInt8(ascii: " ") else {
            return nil
        }
        return Int(String(decoding: answer[9..<12], as: UTF8.self))
    }

    // MARK: Virtual
    // Calls of a virtual system to a link, in turns of its loop.

    /// The name's numeric addresses; nil if no name server answers.
    package func didResolve(_ hosts: [String]?) {
        guard case .tcp(let host, let port) = endpoint else { return }
        guard let hosts else { return resolved(.failure(LinkFault(.dns, "no name server answers for '\(host)'"))) }
        resolved(.success(hosts.compactMap { SocketAddress(numericHost: $0, port: port) }))
    }

    /// The attempt over this stream has succeeded, or failed.
    package func didConnect(_ stream: any VirtualStream, _ fault: LinkFault?) {
        guard stage == .connecting, stream === self.stream else { return }
        if let fault { return connectNext(fault) }
        addresses = []
        connected()
    }

    /// Whether the link would take bytes, or the end of the stream, now.
    package var isReading: Bool { stage == .open && !isReadPaused }

    /// Whether output waits for room.
    package var isWaitingForRoom: Bool { stage == .open && isWriteBlocked }

    /// The stream has something to read.
    package func comeUpToRead() { readable() }

    /// The stream has room.
    package func comeUpToWrite() { writable() }
}
