// SPDX-License-Identifier: Apache-2.0
internal import Digits
public import Telemetry

/// A proxy for a tunnel to the peer by CONNECT (RFC 9110 section 9.3.6). TLS runs end to end through the tunnel.
public struct HTTPProxy: Sendable, Hashable {
    public var host: String
    public var port: UInt16
    /// The value of `proxy-authorization`, such as `Basic …`. Never printed.
    public var authorization: Secret?

    public init(host: String, port: UInt16, authorization: Secret? = nil) {
        self.host = host
        self.port = port
        self.authorization = authorization
    }

    /// - Parameter login: `user:password` (RFC 7617).
    public init(host: String, port: UInt16, login: Secret) {
        self.init(host: host, port: port, authorization: login.withBytes(Self.basic))
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(host)
        hasher.combine(port)
    }

    /// `Basic ` and the login in Base64.
    private static func basic(_ login: UnsafeRawBufferPointer) -> Secret {
        let scheme = Array("Basic ".utf8)
        return Secret(byteCount: scheme.count + Base64.count(login.count)) { text in
            text.copyBytes(from: scheme)
            Base64.write(login, to: UnsafeMutableRawBufferPointer(rebasing: text[scheme.count...]))
        }
    }
}

extension HTTPProxy: CustomStringConvertible, CustomDebugStringConvertible {
    public var description: String { "\(host):\(port)" }
    public var debugDescription: String { description }
}
