// SPDX-License-Identifier: Apache-2.0
import CLibevent
import Glibc
internal import Telemetry

/// Resolves one host name without a cache and without blocking the loop.
///
/// The C library asks, as it does for librdkafka: with /etc/hosts, search domains, several name servers, and over TCP where an
/// answer is too long for a datagram. So a moved service is found at its new address, and a changed name server needs no restart.
final class Resolver {
    private let loop: Loop
    private var completion: ((Result<[SocketAddress], LinkFault>) -> Void)?

    /// Starts the query. `completion` runs once, never inside this call, and not after the resolver is released.
    init(loop: Loop, host: String, port: UInt16, _ completion: @escaping (Result<[SocketAddress], LinkFault>) -> Void) {
        self.loop = loop
        self.completion = completion
        begin(host: host, port: port)
    }

    private func begin(host: String, port: UInt16) {
        if let address = SocketAddress(numericHost: host, port: port) { return finishLater(.success([address])) }
        guard !host.isEmpty, !host.utf8.contains(0), host.utf8.count <= 253 else {
            return finishLater(.failure(LinkFault(.dns, "'\(host)' is not a host name")))
        }
        if !NameLookup.join(NameLookup.Name(host: host, port: port), NameLookup.Waiter(loop: loop, resolver: self)) {
            finishLater(.failure(LinkFault(.system, "no thread can be made to look the name up")))
        }
    }

    private func finishLater(_ result: Result<[SocketAddress], LinkFault>) {
        loop.afterCallbacks { [weak self] in self?.finish(result) }
    }

    fileprivate func finish(_ result: Result<[SocketAddress], LinkFault>) { completion.take()?(result) }
}

/// One question to the C library, on a thread of its own, for all resolvers of the process that want the same name now.
///
/// The library gives up after some seconds, later than most links do. So the number of threads is at most that of the names.
private enum NameLookup {
    struct Name: Hashable, Sendable {
        let host: String
        let port: UInt16
    }

    /// Unchecked Sendable: the resolver is used on its loop only; a weak reference may be released on any thread.
    struct Waiter: @unchecked Sendable {
        let loop: Loop
        weak var resolver: Resolver?
    }

    private static let open = Guarded<[Name: [Waiter]]>([:])

    /// - Returns: false if no thread can be made.
    static func join(_ name: Name, _ waiter: Waiter) -> Bool {
        let isFirst = open.withLock { open in
            let waiting = open[name]
            open[name] = (waiting ?? []).filter { $0.resolver != nil } + [waiter]
            return waiting == nil
        }
        if !isFirst { return true }
        let isBegun = runDetached {
            let result = ask(name)
            let waiters = open.withLock { $0.removeValue(forKey: name) ?? [] }
            for waiter in waiters { waiter.loop.post { waiter.resolver?.finish(result) } }
        }
        if !isBegun { open.withLock { $0[name] = nil } }
        return isBegun
    }

    /// Blocks.
    private static func ask(_ name: Name) -> Result<[SocketAddress], LinkFault> {
        // So that a dead first name server leaves time before the usual connect timeout.
        limit_name_queries(2, 2)
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_protocol = Int32(IPPROTO_TCP)
        hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(name.host, String(name.port), &hints, &list)
        let number = errno
        guard code == 0 else {
            let words = gai_strerror(code).map { String(cString: $0) } ?? "code \(code)"
            return .failure(
                code == EAI_SYSTEM ? LinkFault(errno: number, "looking the name up") : LinkFault(.dns, words))
        }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = list
        while let info = next, addresses.count < 16 {
            if let address = SocketAddress(info.pointee.ai_addr, length: Int(info.pointee.ai_addrlen)) {
                addresses.append(address)
            }
            next = info.pointee.ai_next
        }
        return addresses.isEmpty ? .failure(LinkFault(.dns, "the name has no address")) : .success(addresses)
    }
}
