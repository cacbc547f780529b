public import Telemetry

/// Who may look at the operator's pages.
///
/// A page of the web can have a browser ask any address, also this one, by a name that it made to point here (DNS
/// rebinding). The browser then sends that name as `Host`, so only names that are ours are answered.
public struct HTTPAccess: Sendable, Equatable {
    /// Names beside `localhost` and the address that was connected to; in lower case, without a port.
    public var hosts: [String]
    /// What `Authorization: Bearer` must carry, on all paths that are not open to everybody; nil: none is asked for.
    public var token: Secret?

    public init(hosts: [String] = [], token: Secret? = nil) {
        self.hosts = hosts.map { $0.lowercased() }
        self.token = token
    }

    enum Verdict: Equatable {
        case allowed
        /// 421 (RFC 9110 section 15.5.20): asked for by a name that is not this server's.
        case foreignHost
        /// 401: no token, or a wrong one.
        case noToken
    }

    /// - Parameter addresses: numeric hosts that the server listens on and that the connection came in at.
    func judge(_ head: HTTPRequestHead, addresses: [String], isOpen: Bool) -> Verdict {
        guard head.host == "localhost" || addresses.contains(head.host) || hosts.contains(head.host) else {
            return .foreignHost
        }
        guard let token, !isOpen else { return .allowed }
        guard let sent = Self.bearer(head.authorization) else { return .noToken }
        // `==` of Secret looks at all bytes wherever they differ first.
        return sent == token ? .allowed : .noToken
    }

    /// The token of `Bearer <token>` (RFC 6750 section 2.1; the scheme's case is free).
    private static func bearer(_ field: [UInt8]?) -> Secret? {
        let scheme = Array("bearer ".utf8)
        guard let field, field.count > scheme.count,
            field.prefix(scheme.count).map(HTTPRequestHead.lowered) == scheme
        else { return nil }
        return Secret(bytes: Array(field[scheme.count...].drop { $0 == 0x20 }))
    }
}
