// SPDX-License-Identifier: Apache-2.0
import Glibc
internal import Zstd

/// Reads a file of any size line by line, plain or zstd-compressed. `-` is standard input. For one thread only.
public final class LineReader {
    /// Maximum length of a line in bytes.
    public static let bytesMax = 16 << 20
    private static let readSize = 1 << 16

    private let path: String
    private let bytesMax: Int
    private let fd: Int32
    /// Lines read, blank ones included.
    public private(set) var number = 0
    /// Text that was read but not returned yet, from `start`. There is no line end before `scanned`.
    private var text: [UInt8] = []
    private var start = 0
    private var scanned = 0
    private var isAtEnd = false
    /// Nil for a plain file.
    private var decompressor: ZstdDecompressor?
    private var isOpened = false
    private var packed: [UInt8] = []
    private var packedPosition = 0
    private var packedBytes = 0

    /// The text names the file, the position and the reason.
    public struct Fault: Error {
        public var message: String
    }

    /// - Parameter bytesMax: maximum length of a line.
    public init(path: String, bytesMax: Int = LineReader.bytesMax) throws(Fault) {
        self.path = path
        self.bytesMax = bytesMax
        fd = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
        guard fd >= 0 else { throw Fault(message: "\(path): \(String(cString: strerror(errno)))") }
    }

    deinit { if fd >= 0 { close(fd) } }

    /// Whether another reader of the path begins at the first line again: a file, and no pipe or device.
    public var isRepeatable: Bool {
        var status = stat()
        return path != "-" && fstat(fd, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// The next line that is not blank, without its line end; nil at the end of the file.
    public func next() throws(Fault) -> [UInt8]? {
        while let line = try nextOfAll() {
            let isBlank = line.allSatisfy { $0 == 0x20 || $0 == 0x09 }
            if !isBlank { return Array(line) }
        }
        return nil
    }

    private func nextOfAll() throws(Fault) -> ArraySlice<UInt8>? {
        while true {
            if let end = text[scanned...].firstIndex(of: 0x0A) {
                defer { (start, scanned) = (end + 1, end + 1) }
                return line(upTo: end)
            }
            scanned = text.count
            if text.count - start > bytesMax {
                throw Fault(message: "\(path): line \(number + 1) is longer than \(bytesMax) bytes")
            }
            if isAtEnd {
                if start == text.count { return nil }
                defer { start = text.count }
                return line(upTo: text.count)
            }
            text.removeSubrange(..<start)
            (start, scanned) = (0, text.count)
            try fill()
        }
    }

    private func line(upTo end: Int) -> ArraySlice<UInt8> {
        number += 1
        var line = text[start..<end]
        while line.last == 0x0D { line.removeLast() }
        return line
    }

    /// Adds more text, or notes the end of the file.
    private func fill() throws(Fault) {
        if !isOpened { try lookAtStart() }
        guard let decompressor else {
            let block = try read()
            text += block
            isAtEnd = block.isEmpty
            return
        }
        do throws(ZstdFault) {
            let block = try decompressor.decompress(packed, from: &packedPosition)
            text += block
            if !block.isEmpty || packedPosition < packed.count { return }
        } catch {
            throw Fault(
                message: "\(path): zstd, before byte \(packedBytes), after line \(number): \(error.description)")
        }
        packed = try read()
        (packedPosition, packedBytes) = (0, packedBytes + packed.count)
        guard packed.isEmpty else { return }
        isAtEnd = true
        if !decompressor.isComplete {
            throw Fault(message: "\(path): ends within a zstd frame, at byte \(packedBytes), after line \(number)")
        }
    }

    /// Checks whether the file begins with a zstd frame.
    private func lookAtStart() throws(Fault) {
        isOpened = true
        var first: [UInt8] = []
        while first.count < ZstdDecompressor.magic.count {
            let block = try read()
            if block.isEmpty { break }
            first += block
        }
        guard first.starts(with: ZstdDecompressor.magic) else {
            text += first
            return
        }
        do throws(ZstdFault) {
            decompressor = try ZstdDecompressor()
        } catch {
            throw Fault(message: "\(path): zstd: \(error.description)")
        }
        (packed, packedBytes) = (first, first.count)
    }

    /// Empty at the end of the file.
    private func read() throws(Fault) -> [UInt8] {
        var block = [UInt8](repeating: 0, count: Self.readSize)
        while true {
            let count = Glibc.read(fd, &block, block.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Fault(message: "\(path): \(String(cString: strerror(errno)))") }
            block.removeLast(block.count - count)
            return block
        }
    }
}
