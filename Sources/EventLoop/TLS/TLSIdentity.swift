// SPDX-License-Identifier: Apache-2.0
import COpenSSL
public import Telemetry

/// A certificate with its private key: a server's, or a client's for certificate-based APNs connections.
public enum TLSIdentity: Sendable, Equatable {
    /// PEM bytes: the leaf first, then the intermediate certificates; and the leaf's unencrypted private key.
    case pem(certificate: [UInt8], key: Secret)
    /// A PKCS#12 archive, as Apple's keychain exports it, and its password.
    case pkcs12([UInt8], password: Secret)

    /// The user id in the certificate's subject (in an APNs certificate the bundle id); nil without one.
    public func userID() throws(TLSFault) -> String? {
        let context = try SSLContext(method: TLS_client_method(), alpn: [])
        try context.use(self)
        return context.identityUserID
    }

    /// Opens it like a context and returns the end of its certificate's validity in Unix seconds.
    ///
    /// Throws the fault of certificate, key or password, so that it can be reported at start with the file's name.
    public func validUntilSeconds() throws(TLSFault) -> Int64 {
        let context = try SSLContext(method: TLS_client_method(), alpn: [])
        try context.use(self)
        guard let end = context.identityEndSeconds else { throw TLSFault("the certificate's dates cannot be read") }
        return end
    }
}
