// SPDX-License-Identifier: Apache-2.0
import CZstd

/// Reads consecutive zstd frames in pieces. For one thread only.
///
/// The largest allowed window bounds its memory. The caller bounds the total output, which comes in blocks.
public final class ZstdDecompressor {
    /// The first bytes of every frame (RFC 8878 section 3.1.1).
    public static let magic: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD]
    /// The largest accepted window as a power of two: 128 MB, the default of the `zstd` tool.
    private static let windowLogMax: Int32 = 27

    /// Whether the bytes so far end between two frames.
    public private(set) var isComplete = true
    private let stream: OpaquePointer
    /// The last block was full, and its frame is not complete.
    private var wasFull = false
    private var block = [UInt8](repeating: 0, count: ZSTD_DStreamOutSize())

    public init() throws(ZstdFault) {
        guard let stream = ZSTD_createDCtx() else { throw ZstdFault("out of memory") }
        self.stream = stream
        ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, Self.windowLogMax)
    }

    deinit { ZSTD_freeDCtx(stream) }

    /// The next block of at most 128 KB; empty if more input is needed. Advances `position` past the consumed input.
    ///
    /// After a full block there may be more output, so call until the result is empty.
    public func decompress(_ input: [UInt8], from position: inout Int) throws(ZstdFault) -> ArraySlice<UInt8> {
        guard position < input.count || wasFull else { return [] }
        var made = 0
        let at = position
        let (left, taken) = input.withUnsafeBytes { source in
            block.withUnsafeMutableBytes { target in
                var from = ZSTD_inBuffer(src: source.baseAddress, size: source.count, pos: at)
                var output = ZSTD_outBuffer(dst: target.baseAddress, size: target.count, pos: 0)
                let left = ZSTD_decompressStream(stream, &output, &from)
                made = output.pos
                return (left, from.pos)
            }
        }
        if ZSTD_isError(left) != 0 { throw ZstdFault(String(cString: ZSTD_getErrorName(left))) }
        position = taken
        isComplete = left == 0
        wasFull = made == block.count && left != 0
        return block[..<made]
    }
}
