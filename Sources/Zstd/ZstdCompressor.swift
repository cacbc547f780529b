// SPDX-License-Identifier: Apache-2.0
import CZstd

/// Compresses bytes in pieces into one zstd frame (RFC 8878) with a checksum. For one thread only.
public final class ZstdCompressor {
    private let stream: OpaquePointer

    /// - Parameter level: 1 is fastest; 3 is the library's default.
    public init(level: Int32 = 3) throws(ZstdFault) {
        guard let stream = ZSTD_createCCtx() else { throw ZstdFault("out of memory") }
        self.stream = stream
        ZSTD_CCtx_setParameter(stream, ZSTD_c_compressionLevel, level)
        ZSTD_CCtx_setParameter(stream, ZSTD_c_checksumFlag, 1)
    }

    deinit { ZSTD_freeCCtx(stream) }

    /// Adds `bytes`. Returns the finished part of the frame, which may be empty.
    public func compress(_ bytes: [UInt8]) throws(ZstdFault) -> [UInt8] { try run(bytes, ZSTD_e_continue) }

    /// Ends the frame and returns its rest. The next call begins a new frame.
    public func finish() throws(ZstdFault) -> [UInt8] { try run([], ZSTD_e_end) }

    private func run(_ bytes: [UInt8], _ mode: ZSTD_EndDirective) throws(ZstdFault) -> [UInt8] {
        var out: [UInt8] = []
        var block = [UInt8](repeating: 0, count: ZSTD_CStreamOutSize())
        var taken = 0
        while true {
            var left = 0
            var made = 0
            bytes.withUnsafeBytes { source in
                block.withUnsafeMutableBytes { target in
                    var input = ZSTD_inBuffer(src: source.baseAddress, size: source.count, pos: taken)
                    var output = ZSTD_outBuffer(dst: target.baseAddress, size: target.count, pos: 0)
                    left = ZSTD_compressStream2(stream, &output, &input, mode)
                    (taken, made) = (input.pos, output.pos)
                }
            }
            if ZSTD_isError(left) != 0 { throw ZstdFault(String(cString: ZSTD_getErrorName(left))) }
            out += block[..<made]
            // While the frame continues, the remaining data is in the library's own buffer.
            if mode == ZSTD_e_end ? left == 0 : taken == bytes.count { return out }
        }
    }
}
