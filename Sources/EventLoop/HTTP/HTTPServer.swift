// SPDX-License-Identifier: Apache-2.0
import Glibc

/// The operator's HTTP/1.1 server: a few GET paths on the loop, by default on loopback.
///
/// GET and HEAD only (else 405), exact paths (else 404), known host names (else 421). Clients are bounded: number of
/// connections, time per request, and few descriptors from the range reserved for the process's own work. A probe is
/// answered in the callback. Every other request waits for its turn of the loop, one per turn, so that a crowd of them
/// does not delay a probe. A handler must be short; a longer one takes the responder and answers in a later turn.
public final class HTTPServer {
    /// Answers at once, or keeps the responder for later.
    public typealias Handler = (HTTPRequest, HTTPResponder) -> Void

    /// Bounds for all clients together.
    public struct Limits: Sendable {
        /// One more takes the place of another one: of the source that has most of them, the one that has waited longest
        /// without a request or without reading its answer.
        public var connections = 64
        /// Places beyond them for the first moments of a connection, so that a flood of connects does not end a probe before
        /// its request has arrived.
        public var newcomers = 192
        /// Time for one request: from the connection's readiness to the answer's last byte.
        public var requestNanos: UInt64 = 10_000_000_000
        /// Descriptors at the end of the process's range (RLIMIT_NOFILE) for the process's own work; nil for an eighth, at
        /// least 64.
        public var keptDescriptors: Int?
        /// Descriptors that are held back for clients who come when only those are left. With all of them in use a new
        /// client takes the place of another one.
        public var spareDescriptors = 4

        public init() {}
    }

    /// A path's conditions for a request.
    public enum Guarding: Sendable {
        /// A known host name, and the token if there is one: for all that shows or changes user data.
        case pages
        /// The token alone.
        case figures
        /// Nothing. Such a path is answered before all others, and also to OPTIONS, which HAProxy's checks use.
        case probe
    }

    private struct Route {
        let guarding: Guarding
        var isOwnPagesOnly = false
        let handler: Handler
    }

    /// A request that waits for its turn.
    private struct Waiting {
        let route: Route
        let request: HTTPRequest
        let responder: HTTPResponder
    }

    /// The bound port, also if 0 asked for a free one.
    public var port: UInt16 { listener?.port ?? 0 }

    /// Present number of clients.
    public var connectionCount: Int { connections.count }

    private let loop: Loop
    private let host: String
    private let access: HTTPAccess
    private let limits: Limits
    private var listener: Listener?
    private var routes: [String: Route] = [:]
    private var connections: [ObjectIdentifier: HTTPConnection] = [:]
    private var waiting: [Waiting] = []
    private var reserve: DescriptorReserve

    /// Binds and serves at once. Paths without a route answer 404.
    public init(
        loop: Loop, host: String = "127.0.0.1", port: UInt16 = 0, access: HTTPAccess = HTTPAccess(),
        limits: Limits = Limits()
    ) throws(LoopFault) {
        loop.assertOnLoop()
        self.loop = loop
        self.host = host.lowercased()
        self.access = access
        self.limits = limits
        reserve = DescriptorReserve(count: loop.system == nil ? limits.spareDescriptors : 0)
        listener = try Listener(
            loop: loop, host: host, port: port, freeDescriptor: { [unowned self] in freeDescriptor() },
            accept: { [unowned self] in accepted($0) })
    }

    deinit { loop.assertReleasable() }

    /// Answers a path with the handler's result.
    ///
    /// - Parameter guarding: its conditions for a request.
    public func get(
        _ path: String, _ guarding: Guarding = .pages, _ handler: @escaping (HTTPRequest) -> HTTPResponse
    ) {
        loop.assertOnLoop()
        routes[path] = Route(guarding: guarding) { request, responder in responder.respond(handler(request)) }
    }

    /// Passes a path's requests to the handler together with a responder, for an answer in this turn or a later one.
    ///
    /// - Parameter fromOwnPagesOnly: a browser that is at another site is refused (403): that site could have it ask.
    public func getLater(_ path: String, fromOwnPagesOnly: Bool = false, _ handler: @escaping Handler) {
        loop.assertOnLoop()
        routes[path] = Route(guarding: .pages, isOwnPagesOnly: fromOwnPagesOnly, handler: handler)
    }

    // MARK: - Connections

    private func accepted(_ link: Link) {
        makeRoom()
        guard Int(link.fd) < descriptorsMax || freeDescriptor() else { return link.close() }
        let connection = HTTPConnection(loop: loop, link: link, server: self, limitNanos: limits.requestNanos)
        connections[ObjectIdentifier(connection)] = connection
    }

    /// Gives up a descriptor for a new client: one that is held back, or else another client's.
    ///
    /// - Returns: false if there is none.
    private func freeDescriptor() -> Bool {
        if reserve.give() { return true }
        guard limits.spareDescriptors > 0, let victim = victim(mayBeNew: true) else { return false }
        victim.end()
        return reserve.give()
    }

    /// How long a connection is a newcomer.
    static let newcomerNanos: UInt64 = 250_000_000

    /// Ends connections until there is a place for one more.
    private func makeRoom() {
        while connections.count >= limits.connections {
            guard let victim = victim(mayBeNew: connections.count >= limits.connections + limits.newcomers) else {
                return
            }
            victim.end()
        }
    }

    /// The connection that gives way: by its standing, then one of the source that has most, then the oldest.
    private func victim(mayBeNew: Bool) -> HTTPConnection? {
        let now = loop.nowNanos
        var counts: [String: Int] = [:]
        for connection in connections.values { counts[connection.source, default: 0] += 1 }
        func rank(_ connection: HTTPConnection) -> (Int, Int, UInt64) {
            (connection.standing.rawValue, -(counts[connection.source] ?? 0), connection.sinceNanos)
        }
        return connections.values.lazy.filter { mayBeNew || now &- $0.sinceNanos >= Self.newcomerNanos }
            .map { (connection: $0, rank: rank($0)) }.min { $0.rank < $1.rank }?.connection
    }

    /// The system assigns the lowest free descriptor, so a descriptor above this number means that few are left.
    private var descriptorsMax: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return .max }
        let count = Int(clamping: limit.rlim_cur)
        return count - (limits.keptDescriptors ?? max(64, count / 8))
    }

    func didEnd(_ connection: HTTPConnection) {
        connections[ObjectIdentifier(connection)] = nil
        reserve.refill()
    }

    // MARK: - Requests

    func handle(_ head: HTTPRequestHead, of connection: HTTPConnection, _ responder: HTTPResponder) {
        let route = routes[head.path]
        let addresses = [host] + (connection.localHost.map { [$0] } ?? [])
        switch access.judge(head, addresses: addresses, route?.guarding ?? .pages) {
        case .allowed: break
        case .foreignHost:
            return responder.respond(HTTPResponse(status: 421, text: "no server of that name: see http.hosts\n"))
        case .noToken:
            return responder.respond(HTTPResponse(status: 401, text: "Authorization: Bearer is required\n"))
        }
        let methods = route?.guarding == .probe ? ["GET", "HEAD", "OPTIONS"] : ["GET", "HEAD"]
        guard methods.contains(where: { head.method.elementsEqual($0.utf8) }) else {
            return responder.respond(HTTPResponse(status: 405, text: "only GET and HEAD\n"))
        }
        guard let route else { return responder.respond(HTTPResponse(status: 404, text: "no such page\n")) }
        if route.isOwnPagesOnly, head.isCrossSite {
            return responder.respond(HTTPResponse(status: 403, text: "only this server's own pages may ask here\n"))
        }
        let request = HTTPRequest(path: head.path, query: head.query)
        if route.guarding == .probe { return route.handler(request, responder) }
        connection.wait()
        waiting.append(Waiting(route: route, request: request, responder: responder))
        if waiting.count == 1 { serveInItsTurn() }
    }

    /// Answers one request after the others of this turn have been read, and the next one after another look at the kernel.
    private func serveInItsTurn() {
        loop.afterCallbacks { [weak self] in
            guard let self, let next = waiting.first else { return }
            waiting.removeFirst()
            if next.responder.begin() { next.route.handler(next.request, next.responder) }
            if !waiting.isEmpty { serveInItsTurn() }
        }
    }
}
