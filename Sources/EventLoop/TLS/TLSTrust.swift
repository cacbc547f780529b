/// Whose signature makes a peer's certificate good.
public enum TLSTrust: Sendable {
    /// The system's store (`/etc/ssl/certs`, or what SSL_CERT_FILE and SSL_CERT_DIR name).
    case system
    /// A PEM file of certificate authorities, in place of the system's.
    case file(String)
    /// PEM bytes of certificate authorities, in place of the system's.
    case pem([UInt8])
}
