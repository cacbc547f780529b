import Glibc

/// Reads a file line by line, whatever its size; `-` is standard input. One thread's.
public final class LineReader {
    private let stream: UnsafeMutablePointer<FILE>
    private var buffer: UnsafeMutablePointer<CChar>?
    private var capacity = 0
    /// Lines read, blank ones included.
    public private(set) var number = 0

    /// The text says which file and why.
    public struct Fault: Error {
        public var message: String
    }

    public init(path: String) throws(Fault) {
        guard let opened = path == "-" ? fdopen(dup(STDIN_FILENO), "r") : fopen(path, "re") else {
            throw Fault(message: "\(path): \(String(cString: strerror(errno)))")
        }
        stream = opened
    }

    deinit {
        free(buffer)
        fclose(stream)
    }

    /// The next line that is not blank, without its end; nil at the end of the file.
    public func next() -> [UInt8]? {
        while true {
            let count = getline(&buffer, &capacity, stream)
            guard count >= 0, let buffer else { return nil }
            number += 1
            let bytes = UnsafeRawBufferPointer(start: buffer, count: count)
            var end = bytes.count
            while end > 0, bytes[end - 1] == 0x0A || bytes[end - 1] == 0x0D { end -= 1 }
            let isBlank = bytes[..<end].allSatisfy { $0 == 0x20 || $0 == 0x09 }
            if !isBlank { return Array(bytes[..<end]) }
        }
    }
}
