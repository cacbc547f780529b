// SPDX-License-Identifier: Apache-2.0
import COpenSSL

/// ECDSA over P-256 with the nonce of RFC 6979: the same key and message always give the same signature.
///
/// So every process of a team makes the same provider token in the same time slot without communication, and APNs sees
/// one token instead of one per process. OpenSSL supports this from 3.2 on, but Debian 12 has 3.0. So this type
/// implements the few steps with OpenSSL's big numbers and curve.
struct DeterministicSigner {
    private let key: OpaquePointer

    init(key: OpaquePointer) {
        self.key = key
    }

    /// - Returns: R‖S over a SHA-256 digest.
    func sign(digest: [UInt8]) throws(CryptoFault) -> [UInt8] {
        let numbers = try Numbers(key)
        var nonces = NonceSequence(secret: try numbers.octets(numbers.secret), digest: try numbers.reduced(digest))
        // All candidates except one in 2^32 are valid. The bound only prevents an endless loop with a broken library.
        for _ in 0..<64 {
            guard let nonce = BN_bin2bn(nonces.next(), 32, nil) else { throw .library("no memory to sign") }
            defer { BN_clear_free(nonce) }
            BN_set_flags(nonce, BN_FLG_CONSTTIME)
            guard BN_is_zero(nonce) == 0, BN_cmp(nonce, numbers.order) < 0 else { continue }
            if let signature = try numbers.signature(nonce: nonce, digest: digest) { return signature }
        }
        throw .library("no usable nonce")
    }

    /// The curve, its order and the secret scalar, which are freed together.
    private final class Numbers {
        let group: OpaquePointer
        let order: OpaquePointer
        let secret: OpaquePointer
        private let context: OpaquePointer

        init(_ key: OpaquePointer) throws(CryptoFault) {
            var scalar: OpaquePointer?
            guard EVP_PKEY_get_bn_param(key, "priv", &scalar) == 1, let scalar else {
                throw .library("no secret scalar")
            }
            guard let group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1), let order = BN_new(),
                let context = BN_CTX_secure_new(), EC_GROUP_get_order(group, order, context) == 1
            else {
                BN_clear_free(scalar)
                throw .library("no P-256")
            }
            BN_set_flags(scalar, BN_FLG_CONSTTIME)
            (self.group, self.order, self.secret, self.context) = (group, order, scalar, context)
        }

        deinit {
            EC_GROUP_free(group)
            BN_free(order)
            BN_clear_free(secret)
            BN_CTX_free(context)
        }

        func octets(_ number: OpaquePointer) throws(CryptoFault) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: P256.scalarLength)
            guard BN_bn2binpad(number, &bytes, Int32(bytes.count)) == Int32(bytes.count) else {
                throw .library("a scalar is too wide")
            }
            return bytes
        }

        /// The digest as a number below the order (RFC 6979 section 2.3.4).
        func reduced(_ digest: [UInt8]) throws(CryptoFault) -> [UInt8] {
            guard let number = BN_bin2bn(digest, Int32(digest.count), nil) else { throw .library("no memory to sign") }
            defer { BN_free(number) }
            guard BN_nnmod(number, number, order, context) == 1 else { throw .library("cannot reduce") }
            return try octets(number)
        }

        /// `s = k⁻¹ (e + r d) mod n`, with `r` the x-coordinate of `k G`; nil if either is zero.
        func signature(nonce: OpaquePointer, digest: [UInt8]) throws(CryptoFault) -> [UInt8]? {
            guard let point = EC_POINT_new(group), let r = BN_new(), let s = BN_new(), let inverse = BN_new(),
                let e = BN_bin2bn(digest, Int32(digest.count), nil)
            else { throw .library("no memory to sign") }
            defer {
                EC_POINT_clear_free(point)
                for number in [r, s, inverse, e] { BN_clear_free(number) }
            }
            BN_set_flags(inverse, BN_FLG_CONSTTIME)
            guard EC_POINT_mul(group, point, nonce, nil, nil, context) == 1,
                EC_POINT_get_affine_coordinates(group, point, r, nil, context) == 1,
                BN_nnmod(r, r, order, context) == 1, BN_mod_inverse(inverse, nonce, order, context) != nil,
                BN_mod_mul(s, r, secret, order, context) == 1, BN_mod_add(s, s, e, order, context) == 1,
                BN_mod_mul(s, s, inverse, order, context) == 1
            else { throw .library("cannot sign") }
            guard BN_is_zero(r) == 0, BN_is_zero(s) == 0 else { return nil }
            return try octets(r) + octets(s)
        }
    }

    /// The nonce candidates of RFC 6979 section 3.2 for SHA-256 and a 256-bit order.
    private struct NonceSequence {
        private var key = [UInt8](repeating: 0, count: 32)
        private var value = [UInt8](repeating: 1, count: 32)
        private var isFirst = true

        init(secret: [UInt8], digest: [UInt8]) {
            for step in [UInt8(0), 1] {
                key = Self.hmac(key, value + [step] + secret + digest)
                value = Self.hmac(key, value)
            }
        }

        mutating func next() -> [UInt8] {
            if !isFirst {
                key = Self.hmac(key, value + [0])
                value = Self.hmac(key, value)
            }
            isFirst = false
            value = Self.hmac(key, value)
            return value
        }

        private static func hmac(_ key: [UInt8], _ message: [UInt8]) -> [UInt8] {
            var digest = [UInt8](repeating: 0, count: 32)
            var length: UInt32 = 0
            HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, &digest, &length)
            return digest
        }
    }
}
