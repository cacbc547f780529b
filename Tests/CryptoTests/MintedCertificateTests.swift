// SPDX-License-Identifier: Apache-2.0
import COpenSSL
import Crypto
import Testing

@Suite struct MintedCertificateTests {
    @Test func theServerCertificateVerifiesAgainstItsAuthorityForItsHosts() throws {
        let minted = try MintedCertificate()
        #expect(Verification.result(minted, trusting: minted.authorityPEM, host: "localhost") == X509_V_OK)
        #expect(Verification.result(minted, trusting: minted.authorityPEM, address: "127.0.0.1") == X509_V_OK)
    }

    @Test func itFailsForOtherHostsOtherAuthoritiesAndAfterItsEnd() throws {
        let minted = try MintedCertificate()
        let other = try MintedCertificate()
        #expect(
            Verification.result(minted, trusting: minted.authorityPEM, host: "api.push.apple.com")
                == X509_V_ERR_HOSTNAME_MISMATCH)
        #expect(Verification.result(minted, trusting: other.authorityPEM, host: "localhost") != X509_V_OK)
        let expired = try MintedCertificate(validFrom: -7200, validUntil: -60)
        #expect(
            Verification.result(expired, trusting: expired.authorityPEM, host: "localhost")
                == X509_V_ERR_CERT_HAS_EXPIRED)
    }

    @Test(arguments: ["", "a,DNS:b", "a b", "@section"])
    func aHostThatCouldCarryAnotherNameIsRefused(host: String) {
        #expect(throws: CryptoFault.self) { try MintedCertificate(hosts: [host]) }
    }
}

/// OpenSSL's own verdict on a minted chain.
private enum Verification {
    static func result(
        _ minted: MintedCertificate, trusting authority: [UInt8], host: String? = nil, address: String? = nil
    ) -> Int32 {
        guard let root = certificate(authority), let leaf = certificate(minted.chainPEM),
            let store = X509_STORE_new(), let context = X509_STORE_CTX_new()
        else { return -1 }
        defer {
            X509_STORE_CTX_free(context)
            X509_STORE_free(store)
            X509_free(leaf)
            X509_free(root)
        }
        X509_STORE_add_cert(store, root)
        X509_STORE_CTX_init(context, store, leaf, nil)
        let parameters = X509_STORE_CTX_get0_param(context)
        if let host { X509_VERIFY_PARAM_set1_host(parameters, host, 0) }
        if let address { X509_VERIFY_PARAM_set1_ip_asc(parameters, address) }
        _ = X509_verify_cert(context)
        return X509_STORE_CTX_get_error(context)
    }

    private static func certificate(_ pem: [UInt8]) -> OpaquePointer? {
        guard let bio = BIO_new_mem_buf(pem, Int32(pem.count)) else { return nil }
        defer { BIO_free(bio) }
        return PEM_read_bio_X509(bio, nil, nil, nil)
    }
}
