// SPDX-License-Identifier: Apache-2.0
import Glibc

/// The reason why a link ended, or could not be opened.
public struct LinkFault: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kind of fault, for comparisons in code.
    public enum Reason: String, Sendable {
        /// The name has no address, or no name server answered.
        case dns
        /// Nothing listens at the peer's port.
        case refused
        /// There is no route to the peer's network.
        case unreachable
        /// Resolving, connecting and the handshake together took too long.
        case timeout
        /// The peer's certificate is invalid: chain, host name or date.
        case certificate
        /// No common application protocol.
        case alpn
        /// The proxy refused the tunnel.
        case proxy
        /// Any other fault of TLS, in OpenSSL's words.
        case tls
        /// The peer ended the stream, with or without TLS's close_notify.
        case closedByPeer
        /// The peer or the network reset the connection.
        case reset
        /// A fault on this machine: descriptors, memory, a bad path.
        case system
    }

    public let reason: Reason
    /// Place and cause in words. Never contains transferred data.
    public let detail: String

    public init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    public var description: String { "\(reason.rawValue): \(detail)" }

    // MARK: Errno

    /// Converts an errno value of connect, read or write.
    init(errno code: Int32, _ place: String) {
        let reason: Reason =
            switch code {
            // A full backlog of a unix socket gives EAGAIN, a missing socket ENOENT: nobody accepts the connection.
            case ECONNREFUSED, EAGAIN, ENOENT: .refused
            case EHOSTUNREACH, ENETUNREACH, ENETDOWN, EADDRNOTAVAIL: .unreachable
            case ETIMEDOUT: .timeout
            case ECONNRESET, EPIPE, ECONNABORTED, ENOTCONN: .reset
            default: .system
            }
        self.init(reason, "\(place): \(systemErrorText(code))")
    }
}
