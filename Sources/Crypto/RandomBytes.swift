// SPDX-License-Identifier: Apache-2.0
import COpenSSL

/// Bytes from OpenSSL's cryptographic generator.
public enum RandomBytes {
    /// `count` unpredictable bytes. Any thread. Throws only if the system has no entropy.
    public static func make(_ count: Int) throws(CryptoFault) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        guard RAND_bytes(&bytes, Int32(clamping: count)) == 1 else {
            throw .library("the system gave no random bytes")
        }
        return bytes
    }
}
