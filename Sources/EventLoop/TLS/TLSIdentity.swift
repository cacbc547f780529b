/// A certificate with its private key: a server's own, or the client's for certificate-based APNs connections.
public enum TLSIdentity: Sendable {
    /// PEM bytes: the leaf first, then what leads to the authority; and the leaf's unencrypted private key.
    case pem(certificate: [UInt8], key: [UInt8])
    /// A PKCS#12 archive, as Apple's keychain exports it, and its password.
    case pkcs12([UInt8], password: String)
}
