// SPDX-License-Identifier: Apache-2.0
import COpenSSL

/// Collects OpenSSL's output from a memory BIO.
enum PEM {
    static func text(_ write: (OpaquePointer) -> Int32) throws(CryptoFault) -> [UInt8] {
        guard let bio = BIO_new(BIO_s_mem()) else { throw .library("no memory for PEM text") }
        defer { BIO_free(bio) }
        guard write(bio) == 1 else { throw .library("cannot write PEM text") }
        var bytes: UnsafeMutablePointer<CChar>?
        let count = carillon_bio_memory(bio, &bytes)
        return Array(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
    }
}
