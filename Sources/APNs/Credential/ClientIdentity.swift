// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Telemetry

/// A credential in use: its TLS identity, and its source of provider tokens.
///
/// Loop-bound. Each connection keeps its identity to its end, so that a new credential takes over connection by
/// connection.
final class ClientIdentity {
    let tls: TLSClientContext
    /// Nil with a certificate.
    let tokens: TokenSource?
    /// Nothing connects with it.
    let isAbsent: Bool

    /// - Parameters:
    ///   - credential: nil where none can be used now.
    ///   - trust: as `trust(of:)` read it before; nil reads it now.
    init(_ credential: APNsCredential?, for endpoint: APNsEndpoint, trust: TLSTrust? = nil) throws(APNsFault) {
        let trust = if let trust { trust } else { try Self.trust(of: endpoint) }
        do {
            tls = try TLSClientContext(trust: trust, alpn: ["h2"], identity: credential?.identity)
        } catch {
            throw APNsFault(.noTLS, "TLS for \(endpoint.host): \(error.description)")
        }
        isAbsent = credential == nil
        if case .token(let key, let keyID, let teamID)? = credential {
            tokens = TokenSource(key: key, keyID: keyID, teamID: teamID)
        } else {
            tokens = nil
        }
    }

    /// The authorities that clients of the endpoint trust. Reads the file of authorities, if one is named.
    static func trust(of endpoint: APNsEndpoint) throws(APNsFault) -> TLSTrust {
        guard let file = endpoint.caFile else { return .system }
        switch SmallFile.read(file) {
        case .bytes(let bytes): return .pem(bytes)
        case .unreadable(let why):
            throw APNsFault(.noTLS, "TLS for \(endpoint.host): cannot load the CA file \(file): \(why)")
        }
    }
}
