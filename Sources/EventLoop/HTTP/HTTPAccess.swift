// SPDX-License-Identifier: Apache-2.0
public import Telemetry

/// Decides which requests may see the operator's pages.
///
/// A web page can make a browser request any address, this one too, by a name that resolves to it (DNS rebinding). The
/// browser sends that name as `Host`. So only requests for known names are answered.
public struct HTTPAccess: Sendable, Equatable {
    /// Accepted names in addition to `localhost` and the connected address; lower case, without a port.
    public var hosts: [String]
    /// The required value of `Authorization: Bearer` on all paths that are not open; nil requires none.
    public var token: Secret?

    public init(hosts: [String] = [], token: Secret? = nil) {
        self.hosts = hosts.map { $0.lowercased() }
        self.token = token
    }

    enum Verdict: Equatable {
        case allowed
        /// 421 (RFC 9110 section 15.5.20): the requested name is not one of this server.
        case foreignHost
        /// 401: the token is missing or wrong.
        case noToken
    }

    /// - Parameter addresses: numeric hosts on which the server listens and on which the connection arrived.
    func judge(_ head: HTTPRequestHead, addresses: [String], isOpen: Bool) -> Verdict {
        guard head.host == "localhost" || addresses.contains(head.host) || hosts.contains(head.host) else {
            return .foreignHost
        }
        guard let token, !isOpen else { return .allowed }
        guard let sent = Self.bearer(head.authorization) else { return .noToken }
        // `==` of Secret compares all bytes.
        return sent == token ? .allowed : .noToken
    }

    /// The token of `Bearer <token>` (RFC 6750 section 2.1; the scheme is case-insensitive).
    private static func bearer(_ field: [UInt8]?) -> Secret? {
        let scheme = Array("bearer ".utf8)
        guard let field, field.count > scheme.count,
            field.prefix(scheme.count).map(HTTPRequestHead.lowered) == scheme
        else { return nil }
        return Secret(bytes: Array(field[scheme.count...].drop { $0 == 0x20 }))
    }
}
