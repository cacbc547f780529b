/// A proxy that is asked by CONNECT for a way to the peer (RFC 9110 section 9.3.6); TLS then runs through it end to end.
public struct HTTPProxy: Sendable, Hashable {
    public var host: String
    public var port: UInt16
    /// The value of `proxy-authorization`, such as `Basic …`; never printed.
    public var authorization: [UInt8]?

    public init(host: String, port: UInt16, authorization: [UInt8]? = nil) {
        self.host = host
        self.port = port
        self.authorization = authorization
    }
}

extension HTTPProxy: CustomStringConvertible, CustomDebugStringConvertible {
    public var description: String { "\(host):\(port)" }
    public var debugDescription: String { description }
}
