// SPDX-License-Identifier: Apache-2.0
public import EventLoop
import Telemetry

/// The files of a client certificate, both PEM, for a server with `tls-auth-clients yes`.
public struct RedisIdentity: Sendable, Equatable {
    /// The certificate, then its intermediates.
    public var certificateFile: String
    /// Its unencrypted key.
    public var keyFile: String

    public init(certificateFile: String, keyFile: String) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
    }

    /// Throws with the name of the file that cannot be read.
    public func read() throws(TLSFault) -> TLSIdentity {
        let certificate: [UInt8]
        switch SmallFile.read(certificateFile) {
        case .bytes(let bytes): certificate = bytes
        case .unreadable(let why): throw TLSFault("\(certificateFile): \(why)")
        }
        switch SmallFile.readKey(keyFile, limit: 1 << 20) {
        case .success(let key): return .pem(certificate: certificate, key: key)
        case .failure(let fault): throw TLSFault("\(keyFile): \(fault.why)")
        }
    }
}

/// The TLS settings of the links to servers with one login. On their loop only.
final class RedisTLS {
    private let endpoint: RedisEndpoint
    private var identity: TLSIdentity?
    private var made: TLSClientContext

    init(_ endpoint: RedisEndpoint) throws(TLSFault) {
        self.endpoint = endpoint
        identity = try endpoint.identity?.read()
        made = try Self.make(endpoint, identity)
    }

    /// The settings of a new link. Like the password, a client certificate is read at each connection; where the files
    /// cannot be used, the last good one stays in use.
    var context: TLSClientContext {
        guard let files = endpoint.identity, let fresh = try? files.read(), fresh != identity,
            let context = try? Self.make(endpoint, fresh)
        else { return made }
        identity = fresh
        made = context
        return context
    }

    private static func make(_ endpoint: RedisEndpoint, _ identity: TLSIdentity?) throws(TLSFault) -> TLSClientContext {
        try TLSClientContext(trust: endpoint.caFile.map { .file($0) } ?? .system, identity: identity)
    }
}
