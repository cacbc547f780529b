// SPDX-License-Identifier: Apache-2.0
/// The target of a link.
public enum Endpoint: Sendable, Equatable, CustomStringConvertible {
    /// A host name or numeric address, and a port.
    case tcp(host: String, port: UInt16)
    /// A unix-domain stream socket.
    case unix(path: String)

    public var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}
