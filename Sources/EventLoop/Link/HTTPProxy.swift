public import Telemetry

/// A proxy that is asked by CONNECT for a way to the peer (RFC 9110 section 9.3.6); TLS then runs through it end to end.
public struct HTTPProxy: Sendable, Hashable {
    public var host: String
    public var port: UInt16
    /// The value of `proxy-authorization`, such as `Basic …`; never printed.
    public var authorization: Secret?

    public init(host: String, port: UInt16, authorization: Secret? = nil) {
        self.host = host
        self.port = port
        self.authorization = authorization
    }

    /// With `user:password` as its login (RFC 7617).
    public init(host: String, port: UInt16, login: Secret) {
        self.init(host: host, port: port, authorization: login.withBytes(Self.basic))
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(host)
        hasher.combine(port)
    }

    /// `Basic ` and the login in Base64 (RFC 4648 section 4).
    private static func basic(_ login: UnsafeRawBufferPointer) -> Secret {
        let scheme = Array("Basic ".utf8)
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        return Secret(byteCount: scheme.count + (login.count + 2) / 3 * 4) { text in
            text.copyBytes(from: scheme)
            var place = scheme.count
            for start in stride(from: 0, to: login.count, by: 3) {
                let piece = login[start..<min(start + 3, login.count)]
                let word = piece.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - piece.count))
                for character in 0..<4 {
                    let isPadding = character > piece.count
                    text[place] =
                        isPadding ? UInt8(ascii: "=") : alphabet[Int(word >> UInt32(18 - 6 * character) & 63)]
                    place += 1
                }
            }
        }
    }
}

extension HTTPProxy: CustomStringConvertible, CustomDebugStringConvertible {
    public var description: String { "\(host):\(port)" }
    public var debugDescription: String { description }
}
