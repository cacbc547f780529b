// SPDX-License-Identifier: Apache-2.0
import COpenSSL
import Glibc
import Telemetry

/// Owns one SSL_CTX with the settings common to client and server.
///
/// `@unchecked Sendable`: it is changed only before it is shared. Afterwards OpenSSL only reads it and counts
/// references atomically (SSL_CTX is documented as safe to share when it is no longer changed).
final class SSLContext: @unchecked Sendable {
    let raw: OpaquePointer
    /// The ALPN list in wire form, each name after its length. The select callback reads it as long as the context
    /// lives.
    let alpnWire: UnsafeBufferPointer<UInt8>

    init(method: OpaquePointer?, alpn: [String]) throws(TLSFault) {
        let wire = try Self.alpnWire(alpn)
        guard let raw = SSL_CTX_new(method) else {
            throw TLSFault("cannot make a TLS context: \(takeOpenSSLError()?.text ?? "no reason given")")
        }
        self.raw = raw
        let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: wire.count)
        _ = copy.initialize(from: wire)
        alpnWire = UnsafeBufferPointer(copy)

        // APNs requires at least TLS 1.2, and older versions are broken.
        SSL_CTX_ctrl(raw, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
        SSL_CTX_ctrl(raw, SSL_CTRL_MODE, Int(SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER), nil)
        // Reads many small records per system call. The link asks again while OpenSSL holds more.
        SSL_CTX_ctrl(raw, SSL_CTRL_SET_READ_AHEAD, 1, nil)
        SSL_CTX_set_default_read_buffer_len(raw, 64 * 1024)
        SSL_CTX_set_options(raw, UInt64(1) << 30 | UInt64(1) << 17)  // no renegotiation, no compression
    }

    deinit {
        SSL_CTX_free(raw)
        alpnWire.deallocate()
    }

    func trust(_ trust: TLSTrust) throws(TLSFault) {
        switch trust {
        case .system:
            guard SSL_CTX_set_default_verify_paths(raw) == 1 else {
                throw Self.fault("cannot load the system's certificates")
            }
        case .file(let path):
            switch SmallFile.read(path) {
            case .bytes(let bytes): try self.trust(.pem(bytes))
            case .unreadable(let why): throw TLSFault("cannot load the CA file \(path): \(why)")
            }
        case .pem(let bytes):
            let store = SSL_CTX_get_cert_store(raw)
            let certificates = try Self.certificates(bytes)
            for certificate in certificates.list where X509_STORE_add_cert(store, certificate) != 1 {
                throw Self.fault("cannot use a CA certificate")
            }
        }
    }

    func use(_ identity: TLSIdentity) throws(TLSFault) {
        switch identity {
        case .pem(let certificate, let key): try usePEM(certificate: certificate, key: key)
        case .pkcs12(let bytes, let password): try usePKCS12(bytes, password: password)
        }
        guard SSL_CTX_check_private_key(raw) == 1 else {
            throw Self.fault("the private key does not belong to the certificate")
        }
    }

    private func usePEM(certificate: [UInt8], key: Secret) throws(TLSFault) {
        let certificates = try Self.certificates(certificate)
        for (index, one) in certificates.list.enumerated() {
            let done =
                index == 0
                ? SSL_CTX_use_certificate(raw, one)
                // SSL_CTX_add1_chain_cert is a macro for this call.
                : Int32(truncatingIfNeeded: SSL_CTX_ctrl(raw, SSL_CTRL_CHAIN_CERT, 1, UnsafeMutableRawPointer(one)))
            guard done == 1 else { throw Self.fault("cannot use the certificate") }
        }
        // The BIO reads the secret's own bytes, so it must not outlive this call.
        let read = key.withBytes { bytes -> OpaquePointer? in
            guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else { return nil }
            defer { BIO_free(bio) }
            // The callback replaces a password prompt on the terminal.
            return PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in -1 }, nil)
        }
        guard let parsed = read else {
            throw Self.fault("cannot read the private key (unencrypted PEM is required)")
        }
        defer { EVP_PKEY_free(parsed) }
        guard SSL_CTX_use_PrivateKey(raw, parsed) == 1 else { throw Self.fault("cannot use the private key") }
    }

    private func usePKCS12(_ bytes: [UInt8], password: Secret) throws(TLSFault) {
        let archive = try PKCS12Archive(bytes, password: password)
        guard SSL_CTX_use_certificate(raw, archive.leaf) == 1, SSL_CTX_use_PrivateKey(raw, archive.key) == 1 else {
            throw Self.fault("cannot use the PKCS#12 archive's certificate")
        }
        archive.forEachIssuer { SSL_CTX_ctrl(raw, SSL_CTRL_CHAIN_CERT, 1, $0) }
    }

    /// The end of the own certificate's validity in Unix seconds; nil without a certificate or a readable date.
    var identityEndSeconds: Int64? {
        guard let leaf = SSL_CTX_get0_certificate(raw), let end = X509_get0_notAfter(leaf) else { return nil }
        var time = tm()
        guard ASN1_TIME_to_tm(end, &time) == 1 else { return nil }
        return Int64(timegm(&time))
    }

    /// The user id (UID) in the own certificate's subject, at most 255 bytes; nil without one.
    var identityUserID: String? {
        guard let leaf = SSL_CTX_get0_certificate(raw), let name = X509_get_subject_name(leaf) else { return nil }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            let count = X509_NAME_get_text_by_NID(name, NID_userId, buffer.baseAddress, Int32(buffer.count))
            guard count > 0 else { return nil }
            return String(decoding: buffer.prefix(Int(count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    // MARK: Reading

    /// Parsed certificates, freed together.
    private final class Certificates {
        var list: [OpaquePointer] = []
        deinit { for certificate in list { X509_free(certificate) } }
    }

    private static func certificates(_ pem: [UInt8]) throws(TLSFault) -> Certificates {
        let bio = try memoryBIO(pem)
        defer { BIO_free(bio) }
        let found = Certificates()
        while let certificate = PEM_read_bio_X509(bio, nil, nil, nil) { found.list.append(certificate) }
        // OpenSSL reports the end of the input as an error ("no start line"). Any other error is a truncated
        // certificate.
        let error = takeOpenSSLError()
        guard !found.list.isEmpty else { throw TLSFault("no PEM certificate found") }
        guard error == nil || error?.reason == PEM_R_NO_START_LINE else {
            throw TLSFault("PEM certificate \(found.list.count + 1) is broken: \(error?.text ?? "no reason given")")
        }
        return found
    }

    /// A BIO with its own copy of the bytes.
    static func memoryBIO(_ bytes: [UInt8]) throws(TLSFault) -> OpaquePointer {
        guard bytes.count <= 1 << 20, let bio = BIO_new(BIO_s_mem()) else {
            throw TLSFault("more than 1 MB of PEM or PKCS#12")
        }
        let written = bytes.withUnsafeBytes { BIO_write(bio, $0.baseAddress, Int32($0.count)) }
        guard written == Int32(bytes.count) || bytes.isEmpty else {
            BIO_free(bio)
            throw fault("cannot copy PEM bytes")
        }
        return bio
    }

    static func fault(_ place: String) -> TLSFault {
        TLSFault(takeOpenSSLError().map { "\(place): \($0.text)" } ?? place)
    }

    private static func alpnWire(_ names: [String]) throws(TLSFault) -> [UInt8] {
        var wire: [UInt8] = []
        for name in names {
            // RFC 7301 section 3.1: a protocol name has 1 to 255 bytes.
            guard let length = UInt8(exactly: name.utf8.count), length > 0 else {
                throw TLSFault("bad ALPN name '\(name)'")
            }
            wire.append(length)
            wire.append(contentsOf: name.utf8)
        }
        return wire
    }
}
