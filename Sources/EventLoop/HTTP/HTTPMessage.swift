// SPDX-License-Identifier: Apache-2.0
import Glibc

/// A request of an operator's client.
public struct HTTPRequest: Sendable, Equatable {
    /// The path as sent, without the query.
    public let path: String
    /// The text after `?`, percent-encoded; nil without one.
    public let query: String?
}

/// A handler's answer.
public struct HTTPResponse: Sendable, Equatable {
    public var status: Int
    public var contentType: String
    public var body: [UInt8]
    /// True for a page that loads styles, scripts, pictures and data from this server and submits its form to it.
    /// Otherwise the page may load nothing. Either way nothing comes from other servers or from inline code.
    public var usesOwnFiles: Bool

    public init(
        status: Int = 200, contentType: String = "text/plain; charset=utf-8", body: [UInt8],
        usesOwnFiles: Bool = false
    ) {
        self.status = status
        self.contentType = contentType
        self.body = body
        self.usesOwnFiles = usesOwnFiles
    }

    /// A short plain-text answer.
    public init(status: Int = 200, text: String) {
        self.init(status: status, body: Array(text.utf8))
    }

    /// The bytes of the answer. For HEAD the content is missing (RFC 9110 section 9.3.2), but its length is sent.
    func bytes(isHead: Bool, closes: Bool) -> [UInt8] {
        var head = "HTTP/1.1 \(status) \(reason)\r\nDate: \(Self.date())\r\n"
        head += "Content-Type: \(contentType)\r\nContent-Length: \(body.count)\r\n"
        // Live figures must not be cached by a browser or proxy.
        head += "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: same-origin\r\n"
        // No other page may embed this one.
        head += "Content-Security-Policy: \(usesOwnFiles ? Self.ownFilesPolicy : Self.nothingPolicy)\r\n"
        head += "X-Frame-Options: DENY\r\n"
        head += "Cross-Origin-Resource-Policy: same-origin\r\n"
        // RFC 9110 section 15.5.6: 405 names the allowed methods. Section 11.6.1: 401 names the scheme.
        if status == 405 { head += "Allow: GET, HEAD\r\n" }
        if status == 401 { head += "WWW-Authenticate: Bearer\r\n" }
        if closes { head += "Connection: close\r\n" }
        head += "\r\n"
        return isHead ? Array(head.utf8) : Array(head.utf8) + body
    }

    private static let nothingPolicy =
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    private static let ownFilesPolicy =
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        + "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

    /// A date as headers have it (RFC 9110 section 5.6.7).
    package static func date(seconds: Int = time(nil)) -> String {
        var now = seconds
        var parts = tm()
        gmtime_r(&now, &parts)
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
            guard let start = buffer.baseAddress,
                strftime(start, buffer.count, "%a, %d %b %Y %H:%M:%S GMT", &parts) > 0
            else { return "" }
            return String(cString: start)
        }
    }

    private var reason: String {
        switch status {
        case 200: "OK"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 413: "Content Too Large"
        case 421: "Misdirected Request"
        case 431: "Request Header Fields Too Large"
        case 501: "Not Implemented"
        case 503: "Service Unavailable"
        case 505: "HTTP Version Not Supported"
        case 500...: "Server Error"
        default: "Status"
        }
    }
}
