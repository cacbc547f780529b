import Console
import Glibc

/// A file that is written from start to end, readable by its owner only; `-` is standard output.
final class OutputFile {
    private let path: String
    private var fd: Int32
    private var buffer: [UInt8] = []

    init(path: String) throws(FileFault) {
        self.path = path
        fd = path == "-" ? dup(STDOUT_FILENO) : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        if fd < 0 { throw FileFault("\(path): \(String(cString: strerror(errno)))") }
    }

    deinit { if fd >= 0 { Glibc.close(fd) } }

    func write(_ bytes: [UInt8]) throws(FileFault) {
        buffer += bytes
        if buffer.count >= 1 << 16 { try flush() }
    }

    /// Writes what is left; a full disk is told here or before.
    func close() throws(FileFault) {
        try flush()
        Glibc.close(fd)
        fd = -1
    }

    private func flush() throws(FileFault) {
        var rest = buffer[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(fd, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw FileFault("\(path): \(String(cString: strerror(errno)))") }
            rest = rest.dropFirst(count)
        }
        buffer.removeAll(keepingCapacity: true)
    }
}
