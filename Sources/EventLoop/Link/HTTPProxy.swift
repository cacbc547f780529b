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

    /// With `user:password` as its login (RFC 7617).
    public init(host: String, port: UInt16, login: [UInt8]) {
        self.init(host: host, port: port, authorization: Array("Basic ".utf8) + Self.base64(login))
    }

    private static func base64(_ bytes: [UInt8]) -> [UInt8] {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let piece = bytes[start..<min(start + 3, bytes.count)]
            let word = piece.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - piece.count))
            for place in 0..<4 {
                let isPadding = place > piece.count
                text.append(isPadding ? UInt8(ascii: "=") : alphabet[Int(word >> UInt32(18 - 6 * place) & 63)])
            }
        }
        return text
    }
}

extension HTTPProxy: CustomStringConvertible, CustomDebugStringConvertible {
    public var description: String { "\(host):\(port)" }
    public var debugDescription: String { description }
}
