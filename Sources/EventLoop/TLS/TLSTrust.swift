// SPDX-License-Identifier: Apache-2.0
/// The authorities that may sign a peer's certificate.
public enum TLSTrust: Sendable {
    /// The system's store (`/etc/ssl/certs`, or the paths in SSL_CERT_FILE and SSL_CERT_DIR).
    case system
    /// A PEM file of certificate authorities, in place of the system's.
    case file(String)
    /// PEM bytes of certificate authorities, in place of the system's.
    case pem([UInt8])
}
