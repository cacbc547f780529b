// SPDX-License-Identifier: Apache-2.0
public import EventLoop

/// The address of APNs: host, port, and for tests the authority to trust instead of the system's.
public struct APNsEndpoint: Sendable, Hashable {
    public var host: String
    /// 443. 2197 is Apple's alternative for networks that block 443.
    public var port: UInt16
    /// PEM file with the only trusted authorities; nil for the system's store. Verification is never off.
    public var caFile: String?
    /// The proxy for a CONNECT tunnel; nil for a direct connection. It sees only the host name.
    public var proxy: HTTPProxy?

    public init(host: String, port: UInt16 = 443, caFile: String? = nil, proxy: HTTPProxy? = nil) {
        self.host = host
        self.port = port
        self.caFile = caFile
        self.proxy = proxy
    }

    /// Reads `https://host[:port]`. An IPv6 address is in brackets.
    public init(url: String, caFile: String? = nil) throws(APNsFault) {
        let scheme = "https://"
        guard url.hasPrefix(scheme) else {
            throw APNsFault(.badEndpoint, "endpoint '\(url)' must begin with https://")
        }
        var rest = url.dropFirst(scheme.count)
        if rest.hasSuffix("/") { rest = rest.dropLast() }
        let host: Substring
        var port: Substring = ""
        if rest.hasPrefix("["), let close = rest.firstIndex(of: "]") {
            host = rest[rest.index(after: rest.startIndex)..<close]
            port = rest[rest.index(after: close)...]
        } else if let colon = rest.lastIndex(of: ":") {
            host = rest[..<colon]
            port = rest[colon...]
        } else {
            host = rest
        }
        guard !host.isEmpty, host.utf8.allSatisfy(Self.isHostByte) else {
            throw APNsFault(.badEndpoint, "endpoint '\(url)' names no host")
        }
        self.init(host: String(host), caFile: caFile)
        guard !port.isEmpty else { return }
        guard port.first == ":", let number = UInt16(port.dropFirst()), number > 0 else {
            throw APNsFault(.badEndpoint, "endpoint '\(url)' has no valid port")
        }
        self.port = number
    }

    /// Apple's own hosts.
    public static var production: APNsEndpoint { APNsEndpoint(host: "api.push.apple.com") }
    public static var sandbox: APNsEndpoint { APNsEndpoint(host: "api.sandbox.push.apple.com") }

    /// `:authority` for HTTP/2: no default port, IPv6 in brackets.
    var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == 443 ? name : "\(name):\(port)"
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"),
            UInt8(ascii: ":"):
            true
        default: false
        }
    }
}

/// The reason why a client cannot be created: a setting, a file or a key. The text names the cure.
public struct APNsFault: Error, Sendable, Equatable, CustomStringConvertible {
    public enum Code: Sendable {
        case badEndpoint, badCredential, unreadableFile, noTLS
    }

    public let code: Code
    /// Names place and cure; contains no secret.
    public let description: String

    init(_ code: Code, _ text: String) {
        self.code = code
        self.description = text
    }

    public static func == (one: APNsFault, other: APNsFault) -> Bool { one.code == other.code }
}
