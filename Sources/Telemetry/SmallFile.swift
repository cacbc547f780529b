internal import Glibc

/// Reads files whole, as long as they are small. Blocks: for starting, reloading and scraping, never per record.
public enum SmallFile {
    public enum Content: Equatable, Sendable {
        case bytes([UInt8])
        /// Why it could not be read, for people.
        case unreadable(String)
    }

    /// - Parameter limit: the largest size in bytes; more is `unreadable`, never a part.
    public static func read(_ path: String, limit: Int = 1 << 20) -> Content {
        let fd = open(path, O_RDONLY | O_CLOEXEC)
        guard fd >= 0 else { return .unreadable(reason()) }
        defer { close(fd) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = chunk.withUnsafeMutableBytes { Glibc.read(fd, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return .unreadable(reason()) }
            if count == 0 { return .bytes(bytes) }
            bytes.append(contentsOf: chunk[..<count])
            guard bytes.count <= limit else { return .unreadable("longer than \(limit) bytes") }
        }
    }

    /// A password or token that stands alone in a file; the newline that editors add is not part of it.
    public static func readSecret(_ path: String) -> Content {
        let content = read(path, limit: 1 << 16)
        guard case .bytes(var bytes) = content else { return content }
        while let last = bytes.last, last == 0x0A || last == 0x0D { bytes.removeLast() }
        if bytes.isEmpty { return .unreadable("empty") }
        return bytes.contains(0) ? .unreadable("holds a NUL byte") : .bytes(bytes)
    }

    private static func reason() -> String {
        strerror(errno).map { String(cString: $0) } ?? "cannot be read"
    }
}
