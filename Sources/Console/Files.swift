// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Reads and writes whole files for commands.
public enum Files {
    public static func exists(_ path: String) -> Bool { access(path, R_OK) == 0 }

    /// The absolute path without links; nil if there is no such file.
    public static func absolute(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }

    /// - Parameter path: `-` is standard input.
    public static func read(_ path: String) throws(FileFault) -> [UInt8] {
        let fd = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard fd >= 0 else { throw FileFault("\(path): \(String(cString: strerror(errno)))") }
        defer { if fd != STDIN_FILENO { close(fd) } }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = Glibc.read(fd, &block, block.count)
            if count < 0 { throw FileFault("\(path): \(String(cString: strerror(errno)))") }
            if count == 0 { return bytes }
            bytes.append(contentsOf: block[..<count])
        }
    }

    /// - Parameter bytes: replaces the present content.
    public static func write(_ bytes: [UInt8], to path: String) throws(FileFault) {
        let fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard fd >= 0 else { throw FileFault("\(path): \(String(cString: strerror(errno)))") }
        defer { close(fd) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(fd, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw FileFault("\(path): \(String(cString: strerror(errno)))") }
            rest = rest.dropFirst(count)
        }
    }

    /// The non-empty lines of a file.
    public static func lines(_ path: String) throws(FileFault) -> [[UInt8]] {
        try read(path).split(separator: UInt8(ascii: "\n")).map { Array($0) }
    }
}

/// A file that cannot be read or written, with name and reason.
public struct FileFault: Error, CustomStringConvertible {
    public let description: String

    public init(_ description: String) {
        self.description = description
    }
}
