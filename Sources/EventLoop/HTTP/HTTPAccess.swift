// SPDX-License-Identifier: Apache-2.0
public import Telemetry

/// Decides which requests may see the operator's pages.
///
/// A web page can make a browser request any address, this one too, by a name that resolves to it (DNS rebinding). The
/// browser sends that name as `Host`. So pages that show or change user data answer only requests for known names.
public struct HTTPAccess: Sendable, Equatable {
    /// Accepted names in addition to `localhost` and the connected address; lower case, without a port.
    public var hosts: [String]
    /// The required value of `Authorization: Bearer` on all paths but the probes; nil requires none.
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

    /// - Parameters:
    ///   - addresses: numeric hosts on which the server listens and on which the connection arrived.
    ///   - guarding: the path's conditions for a request.
    func judge(_ head: HTTPRequestHead, addresses: [String], _ guarding: HTTPServer.Guarding) -> Verdict {
        guard guarding != .pages || head.host.map({ isOwn($0, addresses) }) ?? false else { return .foreignHost }
        guard let token, guarding != .probe else { return .allowed }
        guard let sent = Self.bearer(head.authorization) else { return .noToken }
        // `==` of Secret compares all bytes.
        return sent == token ? .allowed : .noToken
    }

    private func isOwn(_ host: String, _ addresses: [String]) -> Bool {
        host == "localhost" || addresses.contains(host) || hosts.contains(host)
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
