import EventLoop

/// A credential in use: what the TLS handshake shows, and what signs provider tokens.
///
/// Loop-bound. Each connection keeps the identity it was opened with to its end, so that a renewed credential takes over
/// connection by connection.
final class ClientIdentity {
    let tls: TLSClientContext
    /// Nil with a certificate.
    let tokens: TokenSource?

    init(_ credential: APNsCredential, for endpoint: APNsEndpoint) throws(APNsFault) {
        do {
            tls = try TLSClientContext(
                trust: endpoint.caFile.map { .file($0) } ?? .system, alpn: ["h2"], identity: credential.identity)
        } catch {
            throw APNsFault(.noTLS, "TLS for \(endpoint.host): \(error.description)")
        }
        if case .token(let key, let keyID, let teamID) = credential {
            tokens = TokenSource(key: key, keyID: keyID, teamID: teamID)
        } else {
            tokens = nil
        }
    }
}
