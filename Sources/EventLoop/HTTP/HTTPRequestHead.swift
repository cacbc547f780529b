// SPDX-License-Identifier: Apache-2.0
/// A request line and the header fields that this server uses.
struct HTTPRequestHead: Equatable {
    /// The reason why a head is refused.
    struct Refusal: Error, Equatable {
        let status: Int
        let words: String
    }

    let method: [UInt8]
    let path: String
    /// The text after `?`, percent-encoded; nil without one.
    let query: String?
    /// The requested host name, in lower case, without its port; nil where the client names none, as HTTP/1.0 allows.
    let host: String?
    /// The `Authorization` field as sent; nil without one.
    let authorization: [UInt8]?
    /// A browser says that another site's page began the request.
    let isCrossSite: Bool
    /// The client may send another request on this connection.
    let keepsAlive: Bool

    /// Parses the bytes of a head, including the empty last line. Also returns the number of body bytes.
    static func read(_ bytes: ArraySlice<UInt8>) throws(Refusal) -> (head: HTTPRequestHead, bodyBytes: Int) {
        var lines = lines(of: bytes)[...]
        guard let first = lines.popFirst() else { throw Refusal(status: 400, words: "no request line\n") }
        let words = first.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard words.count == 3, !words[0].isEmpty, words[0].allSatisfy(isTokenByte),
            words[1].allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw Refusal(status: 400, words: "no request line\n") }
        let isNew = words[2].elementsEqual("HTTP/1.1".utf8)
        guard isNew || words[2].elementsEqual("HTTP/1.0".utf8) else {
            throw Refusal(status: 505, words: "only HTTP/1.1 is supported\n")
        }
        let fields = try Fields(lines)
        // RFC 9112 section 3.2: HTTP/1.1 needs the field, and an empty one names no host.
        let field = fields.host ?? []
        let named = hostName(field)
        guard fields.host != nil || !isNew, named != nil || field.isEmpty else {
            throw Refusal(status: 400, words: "exactly one Host header is required\n")
        }
        let (target, authority) = try split(words[1])
        let parts = target.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
        let head = HTTPRequestHead(
            method: Array(words[0]), path: String(decoding: parts.first ?? [], as: UTF8.self),
            query: parts.count > 1 ? String(decoding: parts[1], as: UTF8.self) : nil, host: authority ?? named,
            authorization: fields.authorization.map(Array.init), isCrossSite: fields.isCrossSite,
            keepsAlive: isNew ? !fields.wantsClose : fields.wantsKeepAlive)
        return (head, fields.contentLength)
    }

    /// Path with query, and the host if the target is a whole URL (RFC 9112 section 3.2.2: it overrides `Host`).
    private static func split(_ target: ArraySlice<UInt8>) throws(Refusal) -> (ArraySlice<UInt8>, String?) {
        if target.first == UInt8(ascii: "/") { return (target, nil) }
        let scheme = Array("http://".utf8)
        guard target.starts(with: scheme) else { throw Refusal(status: 400, words: "no path\n") }
        let rest = target.dropFirst(scheme.count)
        let slash = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
        guard let name = hostName(rest[..<slash]) else { throw Refusal(status: 400, words: "no path\n") }
        return (slash == rest.endIndex ? Array("/".utf8)[...] : rest[slash...], name)
    }

    /// The name in `name`, `name:port` or `[address]:port`, in lower case; nil for other forms.
    static func hostName(_ field: ArraySlice<UInt8>) -> String? {
        var name = field
        if field.first == UInt8(ascii: "[") {
            guard let close = field.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            guard isPort(field[field.index(after: close)...]) else { return nil }
            name = field[field.index(after: field.startIndex)..<close]
        } else if let colon = field.firstIndex(of: UInt8(ascii: ":")) {
            guard isPort(field[colon...]) else { return nil }
            name = field[..<colon]
        }
        let isName =
            !name.isEmpty && name.count <= 255 && name.allSatisfy { isTokenByte($0) || $0 == UInt8(ascii: ":") }
        return isName ? String(decoding: name.map(lowered), as: UTF8.self) : nil
    }

    /// Empty, or a colon with digits.
    private static func isPort(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let first = bytes.first else { return true }
        return first == UInt8(ascii: ":") && bytes.count <= 6
            && bytes.dropFirst().allSatisfy { (0x30...0x39).contains($0) }
    }

    /// The lines before the empty one. A single CR or LF remains in its line, which is then refused.
    private static func lines(of bytes: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        var lines: [ArraySlice<UInt8>] = []
        var start = bytes.startIndex
        var index = start
        while index + 1 < bytes.endIndex {
            guard bytes[index] == 0x0D, bytes[index + 1] == 0x0A else {
                index += 1
                continue
            }
            if index > start { lines.append(bytes[start..<index]) }
            index += 2
            start = index
        }
        return lines
    }

    /// RFC 9110 section 5.6.2.
    static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    static func lowered(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
}

extension HTTPRequestHead {
    /// The fields that this server uses. A repeated field is refused, and so is a transfer coding.
    private struct Fields {
        var host: ArraySlice<UInt8>?
        var authorization: ArraySlice<UInt8>?
        private var fetchSite: ArraySlice<UInt8>?
        private var origins: [ArraySlice<UInt8>] = []
        var contentLength = 0
        var wantsClose = false
        var wantsKeepAlive = false

        init(_ lines: ArraySlice<ArraySlice<UInt8>>) throws(Refusal) {
            var hasLength = false
            for line in lines {
                let (name, value) = try Self.parts(line)
                if name.elementsEqual("host".utf8) {
                    guard host == nil else {
                        throw Refusal(status: 400, words: "exactly one Host header is required\n")
                    }
                    host = value
                } else if name.elementsEqual("authorization".utf8) {
                    guard authorization == nil else { throw Refusal(status: 400, words: "two of Authorization\n") }
                    authorization = value
                } else if name.elementsEqual("sec-fetch-site".utf8) {
                    fetchSite = value
                } else if name.elementsEqual("origin".utf8) || name.elementsEqual("referer".utf8) {
                    origins.append(value)
                } else if name.elementsEqual("content-length".utf8) {
                    guard !hasLength, let length = Self.length(value) else {
                        throw Refusal(status: 400, words: "no such Content-Length\n")
                    }
                    hasLength = true
                    contentLength = length
                } else if name.elementsEqual("transfer-encoding".utf8) {
                    throw Refusal(status: 501, words: "transfer codings are not supported\n")
                } else if name.elementsEqual("connection".utf8) {
                    let words = value.map(HTTPRequestHead.lowered)
                    for word in words.split(whereSeparator: { $0 == UInt8(ascii: ",") || $0 == 0x20 || $0 == 0x09 }) {
                        if word.elementsEqual("close".utf8) { wantsClose = true }
                        if word.elementsEqual("keep-alive".utf8) { wantsKeepAlive = true }
                    }
                }
            }
        }

        /// By `Sec-Fetch-Site`, which browsers send to secure addresses and to this machine's own, else by `Origin` and
        /// `Referer`. Programs send none of them.
        var isCrossSite: Bool {
            if let fetchSite, !["same-origin", "none"].contains(where: { fetchSite.elementsEqual($0.utf8) }) {
                return true
            }
            return origins.contains { !isOwn($0) }
        }

        /// Whether scheme, name and port of an URL are those of this server, as `Host` names it.
        private func isOwn(_ url: ArraySlice<UInt8>) -> Bool {
            guard let host else { return false }
            for scheme in ["http://", "https://"] where url.starts(with: scheme.utf8) {
                let rest = url.dropFirst(scheme.utf8.count)
                let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
                return authority.map(HTTPRequestHead.lowered) == host.map(HTTPRequestHead.lowered)
            }
            return false
        }

        /// The name in lower case, and the value without surrounding white space.
        private static func parts(_ line: ArraySlice<UInt8>) throws(Refusal) -> ([UInt8], ArraySlice<UInt8>) {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
                line[..<colon].allSatisfy(HTTPRequestHead.isTokenByte)
            else { throw Refusal(status: 400, words: "a header has no name\n") }
            var value = line[line.index(after: colon)...]
            while value.first == 0x20 || value.first == 0x09 { value.removeFirst() }
            while value.last == 0x20 || value.last == 0x09 { value.removeLast() }
            guard value.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
                throw Refusal(status: 400, words: "a header has a control character\n")
            }
            return (line[..<colon].map(HTTPRequestHead.lowered), value)
        }

        /// Up to nine digits; nil for anything else.
        private static func length(_ value: ArraySlice<UInt8>) -> Int? {
            guard (1...9).contains(value.count), value.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            return value.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        }
    }
}
