// SPDX-License-Identifier: Apache-2.0
import COpenSSL

/// A P-256 public key that verifies ES256 signatures.
///
/// `@unchecked Sendable`: it never changes after creation, and OpenSSL allows concurrent use of such a key.
public final class PublicKey: @unchecked Sendable {
    private let key: OpaquePointer

    /// Reads a SubjectPublicKeyInfo PEM. Throws for anything except a P-256 key.
    public init(pem: [UInt8]) throws(CryptoFault) {
        // The BIO reads the array's own bytes, so it must not outlive this scope.
        let read = pem.withUnsafeBytes { pem -> OpaquePointer? in
            guard let bio = BIO_new_mem_buf(pem.baseAddress, Int32(clamping: pem.count)) else { return nil }
            defer { BIO_free(bio) }
            return PEM_read_bio_PUBKEY(bio, nil, nil, nil)
        }
        guard let read else {
            _ = CryptoFault.lastReason()
            throw CryptoFault(.notPEM, "no PEM public key")
        }
        key = read
        guard P256.holds(read) else { throw CryptoFault(.wrongCurve, "the public key is not on the P-256 curve") }
    }

    deinit { EVP_PKEY_free(key) }

    /// - Returns: whether `signature` (R‖S, 64 bytes) is this key's signature of `message`. Any thread. Never traps on
    ///   invalid bytes.
    public func verifyES256(_ signature: some Collection<UInt8>, of message: some Collection<UInt8>) -> Bool {
        guard let der = P256.derSignature(raw: signature) else { return false }
        return verifyES256(der: der, of: message)
    }

    /// Like ``verifyES256(_:of:)`` for a signature in DER, `SEQUENCE { r, s }` (RFC 3279 section 2.2.3).
    public func verifyES256(der: [UInt8], of message: some Collection<UInt8>) -> Bool {
        // At most 72 bytes over P-256. OpenSSL refuses invalid DER.
        guard der.count <= 80, let context = EVP_MD_CTX_new() else { return false }
        let message = Array(message)
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        guard EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key) == 1 else { return false }
        return EVP_DigestVerify(context, der, der.count, message, message.count) == 1
    }
}
