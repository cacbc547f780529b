import CLibevent

/// The one answer that a request still waits for, given now or in a later turn of the loop.
///
/// A client that goes away meanwhile is no fault: the answer is then dropped. A responder released unanswered says 500.
public final class HTTPResponder {
    private let loop: Loop
    private let isHead: Bool
    private var request: UnsafeMutablePointer<evhttp_request>?

    init(loop: Loop, request: UnsafeMutablePointer<evhttp_request>, isHead: Bool) {
        self.loop = loop
        self.request = request
        self.isHead = isHead
        // The connection frees its request when it ends; the pointer must be forgotten just before.
        evhttp_connection_set_closecb(
            evhttp_request_get_connection(request),
            { _, context in
                guard let context else { return }
                Unmanaged<HTTPResponder>.fromOpaque(context).takeUnretainedValue().request = nil
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit {
        loop.assertReleasable()
        send(HTTPResponse(status: 500, text: "no answer\n"))
    }

    /// Whether an answer can still reach someone.
    public var isWaited: Bool { request != nil }

    /// Answers; the first call counts.
    public func respond(_ response: HTTPResponse) {
        loop.assertOnLoop()
        send(response)
    }

    private func send(_ response: HTTPResponse) {
        guard let request else { return }
        self.request = nil
        evhttp_connection_set_closecb(evhttp_request_get_connection(request), nil, nil)
        let headers = evhttp_request_get_output_headers(request)
        evhttp_add_header(headers, "Content-Type", response.contentType)
        evhttp_add_header(headers, "Content-Length", String(response.body.count))
        // Live figures: neither a browser nor a proxy may keep them.
        evhttp_add_header(headers, "Cache-Control", "no-store")
        evhttp_add_header(headers, "X-Content-Type-Options", "nosniff")
        // RFC 9110 section 15.5.6: 405 names what is allowed.
        if response.status == 405 { evhttp_add_header(headers, "Allow", "GET, HEAD") }
        let body = evbuffer_new()
        defer { if let body { evbuffer_free(body) } }
        // RFC 9110 section 9.3.2: HEAD has GET's headers and no content.
        if !isHead, let body { response.body.withUnsafeBytes { _ = evbuffer_add(body, $0.baseAddress, $0.count) } }
        evhttp_send_reply(request, Int32(clamping: response.status), Self.reason(response.status), body)
    }

    private static func reason(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 400: "Bad Request"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 503: "Service Unavailable"
        case 500...: "Server Error"
        default: "Status"
        }
    }
}
