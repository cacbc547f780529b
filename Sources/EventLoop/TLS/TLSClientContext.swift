// SPDX-License-Identifier: Apache-2.0
import COpenSSL

/// The TLS settings of client links: trusted authorities, offered protocols, and an optional own certificate.
///
/// Verification cannot be turned off: the whole chain, the dates and the host name (or IP address) are always checked.
/// Create one context per set of settings and share it between links and threads.
public final class TLSClientContext: Sendable {
    let context: SSLContext
    let offersALPN: Bool

    /// Reads certificates and keys now, so that an invalid one is found at start.
    public init(trust: TLSTrust = .system, alpn: [String] = [], identity: TLSIdentity? = nil) throws(TLSFault) {
        context = try SSLContext(method: TLS_client_method(), alpn: alpn)
        offersALPN = !alpn.isEmpty
        try context.trust(trust)
        if let identity { try context.use(identity) }
        SSL_CTX_set_verify(context.raw, SSL_VERIFY_PEER, nil)
        if offersALPN {
            // Zero means success here, unlike in nearly every other call.
            let code = SSL_CTX_set_alpn_protos(
                context.raw, context.alpnWire.baseAddress, UInt32(context.alpnWire.count))
            guard code == 0 else { throw TLSFault("cannot set the ALPN names") }
        }
    }
}
