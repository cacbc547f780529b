// SPDX-License-Identifier: Apache-2.0
import CLibevent
import Glibc

/// Accepts TCP connections on one address and passes them on as links, with TLS if it has a context.
public final class Listener {
    /// The bound port, also if 0 asked for a free one.
    public private(set) var port: UInt16 = 0

    private let loop: Loop
    private let tls: TLSServerContext?
    private let accept: (Link) -> Void
    private let freeDescriptor: () -> Bool
    private let handshakeTimeoutNanos: UInt64
    private var handle: OpaquePointer?
    private var pause: LoopTimer?

    /// Binds and listens at once. `accept` receives each link before its handshake. It sets the delegate and keeps the
    /// link; `linkDidOpen` follows. A link that is not kept closes.
    ///
    /// - Parameter freeDescriptor: called where the process has no free descriptor; true if it has closed one.
    public init(
        loop: Loop, host: String = "127.0.0.1", port: UInt16 = 0, tls: TLSServerContext? = nil,
        handshakeTimeoutNanos: UInt64 = 10_000_000_000, freeDescriptor: @escaping () -> Bool = { false },
        accept: @escaping (Link) -> Void
    ) throws(LoopFault) {
        loop.assertOnLoop()
        self.loop = loop
        self.tls = tls
        self.accept = accept
        self.freeDescriptor = freeDescriptor
        self.handshakeTimeoutNanos = handshakeTimeoutNanos
        guard let address = SocketAddress(numericHost: host, port: port) else {
            throw LoopFault(.bind, "cannot listen on '\(host)': a numeric address is required")
        }
        if let system = loop.system {
            guard let bound = system.listen(self, of: loop, host: host, port: port) else {
                throw LoopFault(.addressInUse, "cannot listen on \(host):\(port): another listener has it")
            }
            self.port = bound
            return
        }
        let flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE
        let context = Unmanaged.passUnretained(self).toOpaque()
        handle = address.withPointer { pointer, length in
            evconnlistener_new_bind(
                loop.base,
                { _, fd, address, length, context in
                    guard let context else { return }
                    Unmanaged<Listener>.fromOpaque(context).takeUnretainedValue()
                        .accepted(fd, SocketAddress(address, length: Int(length)))
                }, context, UInt32(flags), 1024, pointer, Int32(length))
        }
        guard let handle else {
            let code = errno
            throw LoopFault(
                code == EADDRINUSE ? .addressInUse : .bind, "cannot listen on \(host):\(port): \(systemErrorText(code))"
            )
        }
        self.port = SocketAddress(localOf: evconnlistener_get_fd(handle))?.port ?? port
        evconnlistener_set_error_cb(
            handle,
            { _, context in
                guard let context else { return }
                Unmanaged<Listener>.fromOpaque(context).takeUnretainedValue().acceptFailed()
            })
    }

    deinit {
        loop.assertReleasable()
        if let handle { evconnlistener_free(handle) }
        loop.system?.forget(self, of: loop)
    }

    /// Stops accepting and closes the listening socket. Accepted links remain open.
    public func close() {
        loop.assertOnLoop()
        if let handle { evconnlistener_free(handle) }
        handle = nil
        pause = nil
        loop.system?.forget(self, of: loop)
    }

    private func accepted(_ fd: Int32, _ address: SocketAddress?) {
        let link = Link(loop: loop, accepted: fd, from: address, tls: tls, timeoutNanos: handshakeTimeoutNanos)
        pass(on: link)
    }

    /// A virtual connection came in.
    package func didAccept(_ stream: any VirtualStream, host: String, port: UInt16) {
        pass(
            on: Link(
                loop: loop, accepted: stream, from: SocketAddress(numericHost: host, port: port),
                timeoutNanos: handshakeTimeoutNanos))
    }

    private func pass(on link: Link) {
        accept(link)
        loop.afterCallbacks { [weak link] in link?.beginAccepted() }
    }

    /// No descriptor is free. Without one the pending connection would make the loop spin, so the listener pauses for a
    /// moment.
    private func acceptFailed() {
        let code = errno
        if code == EMFILE || code == ENFILE, freeDescriptor() { return }
        guard let handle else { return }
        evconnlistener_disable(handle)
        let timer = LoopTimer(loop: loop) { [unowned self] in
            if let handle = self.handle { evconnlistener_enable(handle) }
        }
        timer.arm(afterNanos: 100_000_000)
        pause = timer
    }
}
