// SPDX-License-Identifier: Apache-2.0
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
}
