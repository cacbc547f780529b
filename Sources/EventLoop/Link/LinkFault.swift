/// Why a link ended, or could not begin.
public struct LinkFault: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kind of fault, for code to compare.
    public enum Reason: String, Sendable {
        /// The name has no address, or no name server answered.
        case dns
        /// The peer has nothing listening there.
        case refused
        /// No way to the peer's network.
        case unreachable
        /// Resolving, connecting and the handshake together took too long.
        case timeout
        /// The peer's certificate did not pass: chain, host name or date.
        case certificate
        /// Peer and we have no application protocol in common.
        case alpn
        /// The proxy on the way gave none.
        case proxy
        /// Any other fault of TLS, in OpenSSL's words.
        case tls
        /// The peer ended the stream, with or without TLS's close_notify.
        case closedByPeer
        /// The peer or the network tore the connection down.
        case reset
        /// A fault on this machine: descriptors, memory, a bad path.
        case system
    }

    public let reason: Reason
    /// Place and cause in words; never holds what was sent or received.
    public let detail: String

    public init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    public var description: String { "\(reason.rawValue): \(detail)" }
}
