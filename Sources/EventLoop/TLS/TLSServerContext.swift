// SPDX-License-Identifier: Apache-2.0
import COpenSSL

/// The TLS settings of a listener: its certificate with key, its protocols, and the authority of client certificates.
public final class TLSServerContext: Sendable {
    let context: SSLContext

    /// With `clientTrust` a client may present a certificate, which must be signed by that authority. A client without
    /// one is also accepted.
    public init(identity: TLSIdentity, alpn: [String] = [], clientTrust: TLSTrust? = nil) throws(TLSFault) {
        context = try SSLContext(method: TLS_server_method(), alpn: alpn)
        try context.use(identity)
        if let clientTrust {
            try context.trust(clientTrust)
            SSL_CTX_set_verify(context.raw, SSL_VERIFY_PEER, nil)
        }
        // No tickets: a client that closes at once would leave them unread and get a reset.
        SSL_CTX_set_num_tickets(context.raw, 0)
        guard !alpn.isEmpty else { return }
        SSL_CTX_set_alpn_select_cb(
            context.raw,
            { _, chosen, chosenLength, offered, offeredLength, argument in
                guard let argument, let chosen, let chosenLength else { return SSL_TLSEXT_ERR_ALERT_FATAL }
                let wire = Unmanaged<SSLContext>.fromOpaque(argument).takeUnretainedValue().alpnWire
                var found: UnsafeMutablePointer<UInt8>?
                let code = SSL_select_next_proto(
                    &found, chosenLength, wire.baseAddress, UInt32(wire.count), offered, offeredLength)
                // RFC 7301 section 3.2: without a common protocol the handshake fails with a fatal alert.
                guard code == OPENSSL_NPN_NEGOTIATED, let found else { return SSL_TLSEXT_ERR_ALERT_FATAL }
                chosen.pointee = UnsafePointer(found)
                return SSL_TLSEXT_ERR_OK
            }, Unmanaged.passUnretained(context).toOpaque())  // every link holds the context while its SSL lives
    }
}
