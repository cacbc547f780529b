// SPDX-License-Identifier: Apache-2.0
import Console
import Glibc
import Zstd

/// An output file, written from start to end, plain or compressed. By default only its owner can read it. `-` is
/// standard output.
final class OutputFile {
    private let path: String
    private var fd: Int32
    private var buffer: [UInt8] = []
    /// Nil writes plain bytes.
    private let compressor: ZstdCompressor?

    /// - Parameter isPublic: other users may read it too, as far as the process's umask allows.
    init(path: String, isCompressed: Bool = false, isPublic: Bool = false) throws(FileFault) {
        self.path = path
        do throws(ZstdFault) {
            compressor = isCompressed ? try ZstdCompressor() : nil
        } catch {
            throw FileFault("\(path): zstd: \(error)")
        }
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC
        fd = path == "-" ? dup(STDOUT_FILENO) : open(path, flags, isPublic ? 0o666 : 0o600)
        if fd < 0 { throw FileFault("\(path): \(String(cString: strerror(errno)))") }
    }

    deinit { if fd >= 0 { Glibc.close(fd) } }

    func write(_ bytes: [UInt8]) throws(FileFault) {
        buffer += bytes
        if buffer.count >= 1 << 16 { try flush() }
    }

    /// Writes the remaining bytes. Reports a full disk at the latest here.
    func close() throws(FileFault) {
        try flush()
        if let compressor { try put(packed { () throws(ZstdFault) in try compressor.finish() }) }
        Glibc.close(fd)
        fd = -1
    }

    private func flush() throws(FileFault) {
        let bytes = buffer
        buffer.removeAll(keepingCapacity: true)
        guard let compressor else { return try put(bytes) }
        try put(packed { () throws(ZstdFault) in try compressor.compress(bytes) })
    }

    private func packed(_ body: () throws(ZstdFault) -> [UInt8]) throws(FileFault) -> [UInt8] {
        do throws(ZstdFault) {
            return try body()
        } catch {
            throw FileFault("\(path): zstd: \(error)")
        }
    }

    private func put(_ bytes: [UInt8]) throws(FileFault) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(fd, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw FileFault("\(path): \(String(cString: strerror(errno)))") }
            rest = rest.dropFirst(count)
        }
    }
}
