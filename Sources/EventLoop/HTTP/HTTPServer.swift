import CLibevent
import Glibc

/// The operator's HTTP/1.1 server: a few GET paths on the loop, on loopback unless told otherwise.
///
/// GET and HEAD only (405 else), exact paths (404 else). A request may have 8 KB of headers, 4 KB of body, which is
/// ignored, and ten seconds; a connection idle for longer is closed. Answers given at once run in the callback, so they
/// must be short; longer ones take the responder and answer in a later turn.
public final class HTTPServer {
    /// Answers at once, or keeps the responder for later.
    public typealias Handler = (HTTPRequest, HTTPResponder) -> Void

    private static let headerBytesMax = 8 * 1024
    private static let bodyBytesMax = 4 * 1024
    private static let idleSeconds: Int32 = 10
    /// How long accepting rests after the process ran out of descriptors.
    private static let restNanos: UInt64 = 1_000_000_000

    /// The port bound, also where 0 asked the system to choose.
    public let port: UInt16

    private let loop: Loop
    private let http: OpaquePointer
    private let listener: OpaquePointer
    private var routes: [String: Handler] = [:]
    private var accepting: LoopTimer?

    /// Binds and serves at once; paths without a route are 404 until they have one.
    public init(loop: Loop, host: String = "127.0.0.1", port: UInt16 = 0) throws(LoopFault) {
        loop.assertOnLoop()
        guard let address = SocketAddress(numericHost: host, port: port) else {
            throw LoopFault(.bind, "cannot serve HTTP on '\(host)': a numeric address is wanted")
        }
        guard let http = evhttp_new(loop.base) else { throw LoopFault(.resources, "cannot make an HTTP server") }
        let flags = UInt32(LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE)
        let listener = address.withPointer { pointer, length in
            evconnlistener_new_bind(loop.base, nil, nil, flags, 128, pointer, Int32(length))
        }
        guard let listener else {
            let words = systemErrorText(errno)
            evhttp_free(http)
            throw LoopFault(.bind, "cannot serve HTTP on \(host):\(port): \(words)")
        }
        guard evhttp_bind_listener(http, listener) != nil else {
            evconnlistener_free(listener)
            evhttp_free(http)
            throw LoopFault(.resources, "cannot serve HTTP on \(host):\(port)")
        }
        self.loop = loop
        self.http = http
        self.listener = listener
        self.port = SocketAddress(localOf: evconnlistener_get_fd(listener))?.port ?? port
        configure()
    }

    deinit {
        loop.assertReleasable()
        evhttp_free(http)  // and the listener, which it owns
    }

    /// Answers a path with what the handler returns.
    public func get(_ path: String, _ handler: @escaping (HTTPRequest) -> HTTPResponse) {
        loop.assertOnLoop()
        routes[path] = { request, responder in responder.respond(handler(request)) }
    }

    /// Hands a path's requests over together with the responder, to be answered in this turn or a later one.
    public func getLater(_ path: String, _ handler: @escaping Handler) {
        loop.assertOnLoop()
        routes[path] = handler
    }

    private func configure() {
        evhttp_set_max_headers_size(http, Self.headerBytesMax)
        evhttp_set_max_body_size(http, Self.bodyBytesMax)
        evhttp_set_timeout(http, Self.idleSeconds)
        // Every method that libevent knows comes here, so that the refusal is a 405 and not its own 501.
        evhttp_set_allowed_methods(http, 0x1FF)
        evhttp_set_gencb(
            http,
            { request, context in
                guard let request, let context else { return }
                Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue().handle(request)
            }, Unmanaged.passUnretained(self).toOpaque())
        // Out of descriptors, a waiting connection would make the loop spin. The callback is given evhttp's context, not
        // ours, so it only stops accepting, and a timer lets it go on.
        evconnlistener_set_error_cb(listener, { listener, _ in _ = evconnlistener_disable(listener) })
        accepting = LoopTimer(loop: loop) { [unowned self] in
            evconnlistener_enable(self.listener)
            self.accepting?.arm(afterNanos: Self.restNanos)
        }
        accepting?.arm(afterNanos: Self.restNanos)
    }

    private func handle(_ request: UnsafeMutablePointer<evhttp_request>) {
        _ = loop.nowNanos
        let command = evhttp_request_get_command(request)
        let responder = HTTPResponder(loop: loop, request: request, isHead: command == EVHTTP_REQ_HEAD)
        guard command == EVHTTP_REQ_GET || command == EVHTTP_REQ_HEAD else {
            return responder.respond(HTTPResponse(status: 405, text: "only GET and HEAD\n"))
        }
        guard let uri = evhttp_request_get_evhttp_uri(request), let path = evhttp_uri_get_path(uri) else {
            return responder.respond(HTTPResponse(status: 400, text: "no path\n"))
        }
        let query = evhttp_uri_get_query(uri).map { String(cString: $0) }
        let asked = HTTPRequest(path: String(cString: path), query: query)
        guard let handler = routes[asked.path] else {
            return responder.respond(HTTPResponse(status: 404, text: "no such page\n"))
        }
        handler(asked, responder)
    }
}
