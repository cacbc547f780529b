// SPDX-License-Identifier: Apache-2.0
import COpenSSL

/// A P-256 private key: Apple's `.p8` provider key, or one created for a test.
///
/// `@unchecked Sendable`: the OpenSSL key never changes after creation, and OpenSSL allows any number of threads to
/// sign with it.
public final class PrivateKey: @unchecked Sendable {
    private let key: OpaquePointer

    /// Reads an unencrypted PEM key (PKCS#8 as in `.p8`, or SEC 1). Throws for any key that cannot sign ES256.
    public convenience init(pem: [UInt8]) throws(CryptoFault) {
        // Typed throws do not pass through the array's method.
        self.init(
            owning: try pem.withUnsafeBytes { pem in Result { () throws(CryptoFault) in try Self.read(pem) } }.get())
    }

    /// Like ``init(pem:)-([UInt8])``, from memory that is valid during the call and that the caller may wipe.
    public convenience init(pem: UnsafeRawBufferPointer) throws(CryptoFault) {
        self.init(owning: try Self.read(pem))
    }

    private static func read(_ pem: UnsafeRawBufferPointer) throws(CryptoFault) -> OpaquePointer {
        // The BIO reads the caller's bytes in place. An empty passphrase makes an encrypted key fail here, instead of
        // asking on the terminal.
        var key: OpaquePointer?
        if let bio = BIO_new_mem_buf(pem.baseAddress, Int32(clamping: pem.count)) {
            key = "".withCString { PEM_read_bio_PrivateKey(bio, nil, nil, UnsafeMutableRawPointer(mutating: $0)) }
            BIO_free(bio)
        }
        guard let key else {
            _ = CryptoFault.lastReason()
            throw CryptoFault(
                .notPEM, "no unencrypted PEM private key: give Apple's AuthKey_….p8 file as it was downloaded")
        }
        guard P256.holds(key) else {
            EVP_PKEY_free(key)
            throw CryptoFault(.wrongCurve, "the key is not on the P-256 curve: Apple's provider keys are; give the .p8")
        }
        return key
    }

    private init(owning key: OpaquePointer) {
        self.key = key
    }

    deinit { EVP_PKEY_free(key) }

    /// A new random key.
    public static func generate() throws(CryptoFault) -> PrivateKey {
        PrivateKey(owning: try P256.generate())
    }

    /// Signs with ECDSA over P-256 and SHA-256. Returns R‖S, 64 bytes, as a JWT needs it (RFC 7518 section 3.4).
    ///
    /// Any thread; about 30 µs. Two calls give different bytes, both valid, because OpenSSL uses a new nonce.
    public func signES256(_ message: [UInt8]) throws(CryptoFault) -> [UInt8] {
        try P256.rawSignature(der: try signES256DER(message)[...])
    }

    /// Like ``signES256(_:)``, in DER.
    public func signES256DER(_ message: [UInt8]) throws(CryptoFault) -> [UInt8] {
        guard let context = EVP_MD_CTX_new() else { throw .library("no memory to sign") }
        defer { EVP_MD_CTX_free(context) }
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1 else { throw .library("cannot sign") }
        // A DER signature over P-256 is at most 72 bytes.
        var der = [UInt8](repeating: 0, count: 80)
        var length = der.count
        guard EVP_DigestSign(context, &der, &length, message, message.count) == 1 else { throw .library("cannot sign") }
        return Array(der[..<length])
    }

    /// Like `signES256`, but the same key and message always give the same bytes (RFC 6979).
    ///
    /// For provider tokens, which every process must create alike. Any thread; about 300 µs.
    public func signES256Deterministically(_ message: [UInt8]) throws(CryptoFault) -> [UInt8] {
        try DeterministicSigner(key: key).sign(digest: SHA256.hash(message))
    }

    /// The public half.
    public func publicKey() throws(CryptoFault) -> PublicKey {
        try PublicKey(pem: publicPEM())
    }

    /// PKCS#8 PEM, the form of Apple's `.p8` files. A secret: write it only to a file that its owner alone can read.
    public func pem() throws(CryptoFault) -> [UInt8] {
        try PEM.text { PEM_write_bio_PKCS8PrivateKey($0, self.key, nil, nil, 0, nil, nil) }
    }

    /// SubjectPublicKeyInfo PEM of the public half.
    public func publicPEM() throws(CryptoFault) -> [UInt8] {
        try PEM.text { PEM_write_bio_PUBKEY($0, self.key) }
    }

    /// Gives this module's certificate code access to the handle.
    func withHandle<R, F>(_ body: (OpaquePointer) throws(F) -> R) throws(F) -> R {
        try body(key)
    }
}
