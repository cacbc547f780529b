// SPDX-License-Identifier: Apache-2.0
internal import Glibc

/// Reads small files whole. Regular files only: a pipe or a device might never give its bytes.
///
/// Blocks as long as the disk does: for start, reload and scrapes, never on the loop of a shard.
public enum SmallFile {
    public enum Content: Equatable, Sendable {
        case bytes([UInt8])
        /// The reason why it could not be read, for people.
        case unreadable(String)
    }

    /// - Parameter limit: the largest size in bytes. A larger file is `unreadable`, never cut.
    public static func read(_ path: String, limit: Int = 1 << 20) -> Content {
        switch load(path, limit: limit, { .success(Array($0)) }) {
        case .success(let bytes): .bytes(bytes)
        case .failure(let fault): .unreadable(fault.why)
        }
    }

    /// The reason why a file contains no secret, for people.
    public struct SecretFault: Error, Equatable, Sendable {
        public let why: String

        public init(why: String) { self.why = why }

        public static let empty = SecretFault(why: "empty")
    }

    /// A password or token alone in a file. A final newline, as editors add it, is not part of it.
    public static func readSecret(_ path: String) -> Result<Secret, SecretFault> {
        load(path, limit: 1 << 16) { bytes in
            var count = bytes.count
            while count > 0, bytes[count - 1] == 0x0A || bytes[count - 1] == 0x0D { count -= 1 }
            if count == 0 { return .failure(.empty) }
            let line = UnsafeRawBufferPointer(rebasing: bytes[..<count])
            return line.contains(0)
                ? .failure(SecretFault(why: "holds a NUL byte")) : .success(Secret(copying: line))
        }
    }

    /// The content of a key file.
    public static func readKey(_ path: String, limit: Int) -> Result<Secret, SecretFault> {
        load(path, limit: limit) { .success(Secret(copying: $0)) }
    }

    /// Reads into one block and wipes it before it is freed, so that no copy remains in memory.
    private static func load<Value>(
        _ path: String, limit: Int, _ body: (UnsafeRawBufferPointer) -> Result<Value, SecretFault>
    ) -> Result<Value, SecretFault> {
        // A pipe without a writer would hold up `open` itself.
        let fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard fd >= 0 else { return .failure(SecretFault(why: reason(path))) }
        defer { close(fd) }
        var facts = stat()
        guard fstat(fd, &facts) == 0 else { return .failure(SecretFault(why: reason(path))) }
        guard facts.st_mode & S_IFMT == S_IFREG else {
            return .failure(
                SecretFault(why: facts.st_mode & S_IFMT == S_IFDIR ? "Is a directory" : "is not a regular file"))
        }
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: limit + 1, alignment: 1)
        var filled = 0
        defer {
            if let base = block.baseAddress { explicit_bzero(base, filled) }
            block.deallocate()
        }
        while filled < block.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: block[filled...])
            let count = Glibc.read(fd, rest.baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return .failure(SecretFault(why: reason(path))) }
            if count == 0 { return body(UnsafeRawBufferPointer(rebasing: block[..<filled])) }
            filled += count
        }
        return .failure(SecretFault(why: "longer than \(limit) bytes"))
    }

    /// The system's reason. Names the user who lacks the right, or the folder where a relative path begins.
    private static func reason(_ path: String) -> String {
        let code = errno
        let text = strerror(code).map { String(cString: $0) } ?? "cannot be read"
        if code == EACCES { return "\(text): the user with uid \(geteuid()) must be able to read it" }
        guard code == ENOENT, !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return text }
        defer { free(folder) }
        return "\(text) in \(String(cString: folder))"
    }
}
