import CZstd

/// Reads zstd frames, one behind another, as their bytes come. One thread's.
///
/// Its memory is bounded by the window that a frame may ask for; what a frame grows to is the caller's to bound, since it
/// comes in blocks.
public final class ZstdDecompressor {
    /// The first bytes of every frame (RFC 8878 section 3.1.1).
    public static let magic: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD]
    /// The largest window that is taken, as a power of two: 128 MB, what the `zstd` tool takes unless told otherwise.
    private static let windowLogMax: Int32 = 27

    /// Whether the bytes end between two frames.
    public private(set) var isComplete = true
    private let stream: OpaquePointer
    /// The last block was full, and its frame not at its end.
    private var wasFull = false
    private var block = [UInt8](repeating: 0, count: ZSTD_DStreamOutSize())

    public init() throws(ZstdFault) {
        guard let stream = ZSTD_createDCtx() else { throw ZstdFault("out of memory") }
        self.stream = stream
        ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, Self.windowLogMax)
    }

    deinit { ZSTD_freeDCtx(stream) }

    /// The next block of at most 128 KB; empty: more input is wanted. Moves `position` over what was taken of `input`.
    ///
    /// A full block may have more behind it, so ask until it is empty.
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
