// SPDX-License-Identifier: Apache-2.0
import CLibevent
import Glibc

// From a name to an open stream: resolve, connect (one address after another), TLS handshake.
extension Link {
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
    func connectNext(_ last: LinkFault) {
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

    func connectFinished() {
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
    func beginTLS() {
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

    func armTimer(afterNanos: UInt64) {
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
}
