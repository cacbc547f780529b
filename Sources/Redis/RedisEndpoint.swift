// SPDX-License-Identifier: Apache-2.0
internal import EventLoop
public import Telemetry

/// A Redis server's address and login, from one URL.
///
/// `redis://[user:password@]host[:6379][/db]`, `rediss://…` the same over TLS (with `?ca_file=/path` in place of the
/// system's authorities), `unix:///path[?db=n]` (with `user` and `password` before the path, as in
/// `unix://user:password@/path`). Everything may be percent-encoded.
public struct RedisEndpoint: Sendable, Equatable {
    /// A server's address.
    public enum Address: Sendable, Equatable {
        case tcp(host: String, port: UInt16)
        case unix(path: String)
    }

    public var address: Address
    /// Whether the link is encrypted and the server's certificate verified.
    public var usesTLS: Bool
    /// PEM file of the trusted authorities; nil for the system's.
    public var caFile: String?
    /// The client's certificate; nil for none.
    public var identity: RedisIdentity?
    /// ACL user; nil for the default user.
    public var user: String?
    public var password: Secret?
    /// A file that holds the password and is read at each login; where it cannot be read, `password` stays in use.
    public var passwordFile: String?
    public var database: Int

    public init(
        _ address: Address, usesTLS: Bool = false, caFile: String? = nil, user: String? = nil,
        password: Secret? = nil, database: Int = 0
    ) {
        self.address = address
        self.usesTLS = usesTLS
        self.caFile = caFile
        self.user = user
        self.password = password
        self.database = database
    }

    /// Reads a URL. The fault names the wrong part and never quotes the password.
    public init(url: String) throws(RedisEndpointFault) {
        let scheme: String
        var rest: Substring
        if url.hasPrefix("redis://") {
            (scheme, rest) = ("redis", url.dropFirst(8))
        } else if url.hasPrefix("rediss://") {
            (scheme, rest) = ("rediss", url.dropFirst(9))
        } else if url.hasPrefix("unix://") {
            (scheme, rest) = ("unix", url.dropFirst(7))
        } else {
            throw RedisEndpointFault("the URL must begin with redis://, rediss:// or unix://")
        }
        guard !rest.contains("#") else {
            throw RedisEndpointFault("`#` is not allowed; write it as %23 in a password")
        }
        var query: Substring = ""
        if let mark = rest.firstIndex(of: "?") {
            query = rest[rest.index(after: mark)...]
            rest = rest[..<mark]
        }
        self.init(.unix(path: ""), usesTLS: scheme == "rediss")
        let path = rest.firstIndex(of: "/") ?? rest.endIndex
        let authority = try takeLogin(rest[..<path])
        try readQuery(query)
        if scheme == "unix" {
            guard authority.isEmpty else { throw RedisEndpointFault("unix:// takes a path that begins with `/`") }
            let decoded = try Self.decoded(rest[path...], "path")
            guard decoded.utf8.count > 1 else { throw RedisEndpointFault("unix:// needs the socket's path") }
            // sun_path has 108 bytes including the final zero (unix(7)).
            guard decoded.utf8.count < 108 else { throw RedisEndpointFault("the socket's path is over 107 bytes") }
            address = .unix(path: decoded)
        } else {
            address = try Self.hostAndPort(authority)
            let number = rest[path...].dropFirst()
            if !number.isEmpty { database = try Self.databaseNumber(number) }
        }
    }

    /// Removes `user:password@` from the front, stores it, and returns the rest.
    private mutating func takeLogin(_ authority: Substring) throws(RedisEndpointFault) -> Substring {
        guard let at = authority.lastIndex(of: "@") else { return authority }
        let login = authority[..<at]
        guard let colon = login.firstIndex(of: ":") else {
            throw RedisEndpointFault("a login is written user:password@, or :password@ for the default user")
        }
        let name = try Self.decoded(login[..<colon], "user")
        let word = try Self.decoded(login[login.index(after: colon)...], "password")
        guard !word.isEmpty || name.isEmpty else { throw RedisEndpointFault("the user has no password") }
        user = name.isEmpty ? nil : name
        password = word.isEmpty ? nil : Secret(word)
        return authority[authority.index(after: at)...]
    }

    private mutating func readQuery(_ query: Substring) throws(RedisEndpointFault) {
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts.count == 2 ? parts[1] : ""
            switch parts[0] {
            case "ca_file" where usesTLS && !value.isEmpty: caFile = try Self.decoded(value, "ca_file")
            case "ca_file": throw RedisEndpointFault("ca_file needs rediss:// and a path")
            case "db": database = try Self.databaseNumber(value)
            default: throw RedisEndpointFault("unknown option in the query; there are ca_file and db")
            }
        }
    }

    private static func hostAndPort(_ text: Substring) throws(RedisEndpointFault) -> Address {
        var host = text
        var port: Substring?
        if text.hasPrefix("[") {
            guard let close = text.firstIndex(of: "]") else { throw RedisEndpointFault("`[` without `]`") }
            host = text[text.index(after: text.startIndex)..<close]
            let after = text[text.index(after: close)...]
            guard after.isEmpty || after.hasPrefix(":") else { throw RedisEndpointFault("what follows `]`?") }
            port = after.isEmpty ? nil : after.dropFirst()
        } else if let colon = text.firstIndex(of: ":") {
            host = text[..<colon]
            port = text[text.index(after: colon)...]
        }
        let name = try decoded(host, "host")
        guard !name.isEmpty else { throw RedisEndpointFault("the host is missing") }
        guard let port else { return .tcp(host: name, port: 6379) }
        guard let number = UInt16(port), number > 0 else { throw RedisEndpointFault("the port must be 1...65535") }
        return .tcp(host: name, port: number)
    }

    private static func databaseNumber(_ text: Substring) throws(RedisEndpointFault) -> Int {
        guard let number = Int(text), (0...1_000_000).contains(number) else {
            throw RedisEndpointFault("the database must be a number from 0")
        }
        return number
    }

    /// Percent-decoding of RFC 3986 section 2.1. Control characters are invalid in every part.
    private static func decoded(_ text: Substring, _ part: String) throws(RedisEndpointFault) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(hex), let low = rest.popFirst().flatMap(hex) else {
                throw RedisEndpointFault("bad percent-encoding in the \(part)")
            }
            bytes.append(high << 4 | low)
        }
        guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }), let out = String(validating: bytes, as: UTF8.self) else {
            throw RedisEndpointFault("control characters or broken UTF-8 in the \(part)")
        }
        return out
    }

    private static func hex(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 48...57: digit - 48
        case 65...70: digit - 55
        case 97...102: digit - 87
        default: nil
        }
    }
}

extension RedisEndpoint {
    /// The password as its file holds it now.
    var currentPassword: Secret? {
        guard let passwordFile, case .success(let secret) = SmallFile.readSecret(passwordFile) else { return password }
        return secret
    }

    /// The TLS settings of its links; nil without TLS.
    func tls() throws(TLSFault) -> RedisTLS? { usesTLS ? try RedisTLS(self) : nil }

    /// Another server with the same login.
    func at(_ address: NodeAddress) -> RedisEndpoint {
        var other = self
        other.address = .tcp(host: address.host, port: address.port)
        return other
    }

    /// Nil for a unix socket.
    var nodeAddress: NodeAddress? {
        guard case .tcp(let host, let port) = address else { return nil }
        return NodeAddress(host: host, port: port)
    }
}

extension RedisEndpoint: CustomStringConvertible {
    /// Host and port or path, without the login, for logs.
    public var description: String {
        switch address {
        case .tcp(let host, let port): "\(usesTLS ? "rediss" : "redis")://\(host):\(port)/\(database)"
        case .unix(let path): "unix://\(path)"
        }
    }
}

/// The fault of a Redis URL.
public struct RedisEndpointFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// The part and the cure, without the URL itself.
    public let description: String

    init(_ description: String) { self.description = description }
}
