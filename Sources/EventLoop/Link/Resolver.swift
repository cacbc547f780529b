// SPDX-License-Identifier: Apache-2.0
import CLibevent
import Glibc

/// Resolves one host name without a cache and without blocking the loop.
///
/// Every query reads resolv.conf and /etc/hosts again and has its own evdns base. So a moved service is found at its
/// new address, and a changed name server needs no restart. Connects are rare, and this costs them two small file
/// reads.
final class Resolver {
    private let loop: Loop
    private var completion: ((Result<[SocketAddress], LinkFault>) -> Void)?
    private var request: OpaquePointer?

    /// Starts the query. `completion` runs once, never inside this call, and not after the resolver is released.
    init(loop: Loop, host: String, port: UInt16, _ completion: @escaping (Result<[SocketAddress], LinkFault>) -> Void) {
        self.loop = loop
        self.completion = completion
        begin(host: host, port: port)
    }

    deinit {
        // The callback still comes, and finds no resolver.
        if let request { evdns_getaddrinfo_cancel(request) }
    }

    /// The C callback's data: the query's base, and a weak reference to the resolver.
    private final class Query {
        let loop: Loop
        let dns: OpaquePointer
        weak var resolver: Resolver?

        init(_ resolver: Resolver, dns: OpaquePointer) {
            loop = resolver.loop
            self.dns = dns
            self.resolver = resolver
        }

        /// Frees the base a whole turn later, because libevent's deferred callbacks run before that.
        func free() {
            let (loop, dns) = (loop, dns)
            loop.afterCallbacks { loop.afterCallbacks { evdns_base_free(dns, 1) } }
        }
    }

    private func begin(host: String, port: UInt16) {
        if let address = SocketAddress(numericHost: host, port: port) { return finish(.success([address])) }
        guard !host.isEmpty, !host.utf8.contains(0), host.utf8.count <= 253 else {
            return finish(.failure(LinkFault(.dns, "'\(host)' is not a host name")))
        }
        guard let dns = evdns_base_new(loop.base, 0) else {
            return finish(.failure(LinkFault(.system, "cannot make a resolver")))
        }
        configure(dns)
        ask(dns, host: host, port: port)
    }

    private func configure(_ dns: OpaquePointer) {
        // A missing or empty file leaves no name server. The query then fails with a clear fault.
        let everything = DNS_OPTION_SEARCH | DNS_OPTION_NAMESERVERS | DNS_OPTION_MISC | DNS_OPTION_HOSTSFILE
        _ = evdns_base_resolv_conf_parse(dns, everything, "/etc/resolv.conf")
        // Two attempts of two seconds, so that a dead first server leaves time before the usual connect timeout.
        _ = evdns_base_set_option(dns, "timeout", "2")
        _ = evdns_base_set_option(dns, "attempts", "2")
        // Mixed-case names protect against forged answers, but some name servers do not support them.
        _ = evdns_base_set_option(dns, "randomize-case", "0")
    }

    private func ask(_ dns: OpaquePointer, host: String, port: UInt16) {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_protocol = Int32(IPPROTO_TCP)
        hints.ai_flags = AI_ADDRCONFIG
        let query = Query(self, dns: dns)
        // The callback releases the query. It comes exactly once: also after a cancel, and possibly before the call
        // returns (which then gives no request).
        request = evdns_getaddrinfo(
            dns, host, String(port), &hints,
            { code, list, context in
                defer { if let list { evutil_freeaddrinfo(list) } }
                guard let context else { return }
                let query = Unmanaged<Query>.fromOpaque(context).takeRetainedValue()
                query.resolver?.answered(code, list)
                query.free()
            }, Unmanaged.passRetained(query).toOpaque())
    }

    private func answered(_ code: Int32, _ list: UnsafeMutablePointer<addrinfo>?) {
        request = nil
        guard code == 0 else {
            let words = evutil_gai_strerror(code).map { String(cString: $0) } ?? "code \(code)"
            return finish(.failure(LinkFault(.dns, words)))
        }
        var addresses: [SocketAddress] = []
        var next = list
        while let info = next, addresses.count < 16 {
            if let address = SocketAddress(info.pointee.ai_addr, length: Int(info.pointee.ai_addrlen)) {
                addresses.append(address)
            }
            next = info.pointee.ai_next
        }
        finish(addresses.isEmpty ? .failure(LinkFault(.dns, "the name has no address")) : .success(addresses))
    }

    private func finish(_ result: Result<[SocketAddress], LinkFault>) {
        loop.afterCallbacks { [weak self] in
            guard let self, let completion = self.completion else { return }
            self.completion = nil
            completion(result)
        }
    }
}
