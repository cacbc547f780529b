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

    /// Why a secret's file gave none, for people.
    public struct SecretFault: Error, Equatable, Sendable {
        public let why: String

        public init(why: String) { self.why = why }

        public static let empty = SecretFault(why: "empty")
    }

    /// A password or token that stands alone in a file; the newline that editors add is not part of it.
    public static func readSecret(_ path: String) -> Result<Secret, SecretFault> {
        readWiped(path, limit: 1 << 16) { bytes in
            var count = bytes.count
            while count > 0, bytes[count - 1] == 0x0A || bytes[count - 1] == 0x0D { count -= 1 }
            if count == 0 { return .failure(.empty) }
            let line = UnsafeRawBufferPointer(rebasing: bytes[..<count])
            return line.contains(0)
                ? .failure(SecretFault(why: "holds a NUL byte")) : .success(Secret(copying: line))
        }
    }

    /// A key's file as it stands.
    public static func readKey(_ path: String, limit: Int) -> Result<Secret, SecretFault> {
        readWiped(path, limit: limit) { .success(Secret(copying: $0)) }
    }

    /// Reads into one block that is wiped before it is given back: no copy stays in freed memory.
    private static func readWiped(
        _ path: String, limit: Int, _ body: (UnsafeRawBufferPointer) -> Result<Secret, SecretFault>
    ) -> Result<Secret, SecretFault> {
        let fd = open(path, O_RDONLY | O_CLOEXEC)
        guard fd >= 0 else { return .failure(SecretFault(why: reason())) }
        defer { close(fd) }
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: limit + 1, alignment: 1)
        defer {
            if let base = block.baseAddress { explicit_bzero(base, block.count) }
            block.deallocate()
        }
        var filled = 0
        while filled < block.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: block[filled...])
            let count = Glibc.read(fd, rest.baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return .failure(SecretFault(why: reason())) }
            if count == 0 { return body(UnsafeRawBufferPointer(rebasing: block[..<filled])) }
            filled += count
        }
        return .failure(SecretFault(why: "longer than \(limit) bytes"))
    }

    private static func reason() -> String {
        strerror(errno).map { String(cString: $0) } ?? "cannot be read"
    }
}
