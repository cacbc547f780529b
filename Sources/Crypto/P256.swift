// SPDX-License-Identifier: Apache-2.0
import COpenSSL

/// The shared parts of the key types: curve check, key generation and the two encodings of a signature.
enum P256 {
    /// Bytes of R and of S.
    static let scalarLength = 32

    static func generate() throws(CryptoFault) -> OpaquePointer {
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { throw .library("no EC support") }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1,
            EVP_PKEY_CTX_set_group_name(context, "P-256") == 1,
            EVP_PKEY_generate(context, &key) == 1, let key
        else { throw .library("cannot make a key") }
        return key
    }

    static func holds(_ key: OpaquePointer) -> Bool {
        var name = [CChar](repeating: 0, count: 64)
        var length = 0
        defer { ERR_clear_error() }
        guard EVP_PKEY_is_a(key, "EC") == 1,
            EVP_PKEY_get_group_name(key, &name, name.count, &length) == 1
        else { return false }
        return name.prefix(length).elementsEqual("prime256v1".utf8.map(CChar.init))
    }

    /// DER `SEQUENCE { r, s }` to fixed-width R‖S.
    static func rawSignature(der: ArraySlice<UInt8>) throws(CryptoFault) -> [UInt8] {
        let parsed = der.withUnsafeBufferPointer { bytes -> OpaquePointer? in
            var cursor = bytes.baseAddress
            return d2i_ECDSA_SIG(nil, &cursor, bytes.count)
        }
        guard let parsed else { throw .library("unreadable signature") }
        defer { ECDSA_SIG_free(parsed) }
        var raw = [UInt8](repeating: 0, count: scalarLength * 2)
        let fits = raw.withUnsafeMutableBufferPointer { buffer -> Bool in
            guard let base = buffer.baseAddress else { return false }
            return BN_bn2binpad(ECDSA_SIG_get0_r(parsed), base, Int32(scalarLength)) == Int32(scalarLength)
                && BN_bn2binpad(ECDSA_SIG_get0_s(parsed), base + scalarLength, Int32(scalarLength))
                    == Int32(scalarLength)
        }
        guard fits else { throw .library("signature too wide") }
        return raw
    }

    /// Fixed-width R‖S to DER; nil for a wrong length.
    static func derSignature(raw: some Collection<UInt8>) -> [UInt8]? {
        guard raw.count == scalarLength * 2 else { return nil }
        let body = integer(raw.prefix(scalarLength)) + integer(raw.suffix(scalarLength))
        // At most 2 × 35 bytes, so the short length form always suffices.
        return [0x30, UInt8(body.count)] + body
    }

    /// One DER INTEGER: no unnecessary leading zeros, and one zero before a set top bit.
    private static func integer(_ scalar: some Collection<UInt8>) -> [UInt8] {
        var digits = Array(scalar.drop(while: { $0 == 0 }))
        if digits.first.map({ $0 & 0x80 != 0 }) ?? true { digits.insert(0, at: 0) }
        return [0x02, UInt8(digits.count)] + digits
    }
}
