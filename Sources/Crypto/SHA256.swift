// SPDX-License-Identifier: Apache-2.0
import COpenSSL
import Digits

/// SHA-256 (FIPS 180-4).
public enum SHA256 {
    /// Bytes in a digest.
    public static let digestLength = 32

    /// The 32-byte digest of `bytes`. Any thread.
    public static func hash(_ bytes: [UInt8]) -> [UInt8] {
        bytes.withUnsafeBytes { hash($0) }
    }

    /// The 32-byte digest of memory that is valid during the call.
    public static func hash(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: digestLength) { digest, count in
            carillon_sha256(bytes.baseAddress, bytes.count, digest.baseAddress)
            count = digestLength
        }
    }

    /// The digest as 64 lower-case hexadecimal digits.
    public static func hex(_ bytes: [UInt8]) -> String {
        Hex.string(hash(bytes))
    }
}
