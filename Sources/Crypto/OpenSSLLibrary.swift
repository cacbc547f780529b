import COpenSSL

/// The C library under this module.
public enum OpenSSLLibrary {
    /// Of the OpenSSL that runs.
    public static var version: String {
        OpenSSL_version(OPENSSL_VERSION_STRING).map { String(cString: $0) } ?? "unknown"
    }
}
