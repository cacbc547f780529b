// SPDX-License-Identifier: Apache-2.0
import COpenSSL

/// The C library under this module.
public enum OpenSSLLibrary {
    /// The version of the loaded OpenSSL.
    public static var version: String {
        OpenSSL_version(OPENSSL_VERSION_STRING).map { String(cString: $0) } ?? "unknown"
    }
}
