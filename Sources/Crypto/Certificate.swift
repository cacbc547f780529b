// SPDX-License-Identifier: Apache-2.0
import COpenSSL

/// An X.509 certificate under construction.
struct Certificate: ~Copyable {
    private let raw: OpaquePointer

    /// An empty certificate; `describe` fills it.
    init() throws(CryptoFault) {
        guard let raw = X509_new() else { throw .library("no memory for a certificate") }
        self.raw = raw
    }

    deinit { X509_free(raw) }

    /// Sets version 3, a random serial number and the given properties. Times are seconds from now.
    func describe(subject: String, key: PrivateKey, validFrom: Int, validUntil: Int) throws(CryptoFault) {
        var serial = try RandomBytes.make(8)
        serial[0] &= 0x7F  // a serial number is positive (RFC 5280 section 4.1.2.2)
        let number = BN_bin2bn(serial, Int32(serial.count), nil)
        defer { BN_free(number) }
        let name = X509_get_subject_name(raw)
        let handle = raw
        let made =
            X509_set_version(raw, 2) == 1
            && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(raw)) != nil
            && X509_gmtime_adj(X509_getm_notBefore(raw), validFrom) != nil
            && X509_gmtime_adj(X509_getm_notAfter(raw), validUntil) != nil
            && X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, subject, Int32(subject.utf8.count), -1, 0) == 1
            && key.withHandle { X509_set_pubkey(handle, $0) } == 1
        guard made else { throw .library("cannot fill a certificate") }
    }

    /// Adds an extension in OpenSSL's text form.
    func add(_ id: Int32, _ value: String) throws(CryptoFault) {
        var context = X509V3_CTX()
        X509V3_set_ctx(&context, raw, raw, nil, nil, 0)
        guard let made = X509V3_EXT_conf_nid(nil, &context, id, value) else { throw .library("cannot make \(value)") }
        defer { X509_EXTENSION_free(made) }
        guard X509_add_ext(raw, made, -1) == 1 else { throw .library("cannot add \(value)") }
    }

    /// Sets the issuer and signs with SHA-256.
    func sign(issuer: borrowing Certificate, key: PrivateKey) throws(CryptoFault) {
        let handle = raw
        guard X509_set_issuer_name(raw, X509_get_subject_name(issuer.raw)) == 1,
            key.withHandle({ X509_sign(handle, $0, EVP_sha256()) }) > 0
        else { throw .library("cannot sign a certificate") }
    }

    func pem() throws(CryptoFault) -> [UInt8] {
        let raw = raw
        return try PEM.text { PEM_write_bio_X509($0, raw) }
    }
}
