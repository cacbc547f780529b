// SPDX-License-Identifier: Apache-2.0
import COpenSSL
import Telemetry

/// An opened PKCS#12 archive: a certificate, its key, and intermediate certificates.
struct PKCS12Archive: ~Copyable {
    let leaf: OpaquePointer
    let key: OpaquePointer
    private let chain: OpaquePointer?

    init(_ bytes: [UInt8], password: Secret) throws(TLSFault) {
        let bio = try SSLContext.memoryBIO(bytes)
        defer { BIO_free(bio) }
        guard let archive = d2i_PKCS12_bio(bio, nil) else { throw SSLContext.fault("not a PKCS#12 archive") }
        defer { PKCS12_free(archive) }
        var parts = Parts()
        if let error = parts.take(archive, password) {
            let mayBeOld = error.reason != PKCS12_R_MAC_VERIFY_FAILURE
            guard mayBeOld, parts.takeOld(archive, password) else { throw Self.fault(error) }
        }
        guard let leaf = parts.leaf, let key = parts.key else {
            parts.free()
            throw TLSFault("the PKCS#12 archive lacks a certificate or its key")
        }
        self.leaf = leaf
        self.key = key
        chain = parts.chain
    }

    deinit {
        var parts = Parts(key: key, leaf: leaf, chain: chain)
        parts.free()
    }

    /// Calls back with each certificate except the leaf, borrowed.
    func forEachIssuer(_ body: (UnsafeMutableRawPointer) -> Void) {
        for index in 0..<max(0, OPENSSL_sk_num(chain)) {
            if let one = OPENSSL_sk_value(chain, index) { body(one) }
        }
    }

    private static func fault(_ error: (text: String, reason: Int32)) -> TLSFault {
        error.reason == PKCS12_R_MAC_VERIFY_FAILURE
            ? TLSFault("the password does not open the PKCS#12 archive")
            : TLSFault("cannot open the PKCS#12 archive (export it again with a current tool): \(error.text)")
    }

    private struct Parts {
        var key: OpaquePointer?
        var leaf: OpaquePointer?
        var chain: OpaquePointer?

        /// - Returns: OpenSSL's error, nil on success. On failure OpenSSL has freed its objects.
        mutating func take(_ archive: OpaquePointer, _ password: Secret) -> (text: String, reason: Int32)? {
            ERR_clear_error()
            let code = password.withCString { PKCS12_parse(archive, $0, &key, &leaf, &chain) }
            guard code != 1 else { return nil }
            self = Parts()
            return takeOpenSSLError() ?? ("no reason given", 0)
        }

        /// The keychain and older tools encrypt with RC2, which OpenSSL 3 has only in its legacy provider. The provider
        /// is loaded in addition to the default one for this read only. Returns false if it is not installed or did not
        /// help.
        mutating func takeOld(_ archive: OpaquePointer, _ password: Secret) -> Bool {
            guard let legacy = OSSL_PROVIDER_try_load(nil, "legacy", 1) else {
                ERR_clear_error()
                return false
            }
            defer { OSSL_PROVIDER_unload(legacy) }
            return take(archive, password) == nil
        }

        mutating func free() {
            EVP_PKEY_free(key)
            X509_free(leaf)
            if let chain {
                while let one = OPENSSL_sk_pop(chain) { X509_free(OpaquePointer(one)) }
                OPENSSL_sk_free(chain)
            }
            self = Parts()
        }
    }
}
