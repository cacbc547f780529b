// SPDX-License-Identifier: Apache-2.0
import Console
import Foundation
import Processes
import Testing
import Zstd

/// Lines of files from anywhere.
@Suite struct LineReaderTests {
    private static func lines(_ bytes: [UInt8], bytesMax: Int = LineReader.bytesMax) throws -> [String] {
        let folder = try TemporaryFolder()
        let reader = try LineReader(path: try folder.write(bytes, to: "f"), bytesMax: bytesMax)
        var lines: [String] = []
        while let line = try reader.next() { lines.append(String(decoding: line, as: UTF8.self)) }
        return lines
    }

    private static func packed(_ bytes: [UInt8]) throws -> [UInt8] {
        let compressor = try ZstdCompressor()
        return try compressor.compress(bytes) + compressor.finish()
    }

    @Test(
        arguments: [
            ("", []), ("\n\n", []), ("a", ["a"]), ("a\n", ["a"]), ("a\r\nb", ["a", "b"]), (" \t\na \n", ["a "]),
            ("(\u{b5}/", ["(\u{b5}/"]), ("(", ["("]),
        ] as [(String, [String])])
    func blankLinesAreLeftOutAndEndsTakenOff(text: String, lines: [String]) throws {
        #expect(try Self.lines(Array(text.utf8)) == lines)
        #expect(try Self.lines(Self.packed(Array(text.utf8))) == lines)
    }

    @Test func `a file can be read again, a pipe cannot`() throws {
        let folder = try TemporaryFolder()
        #expect(try LineReader(path: folder.write([0x61], to: "f")).isRepeatable)
        let pipe = folder.file("pipe")
        #expect(mkfifo(pipe, 0o600) == 0)
        // A reader opens a pipe only if a writer is there.
        let writer = open(pipe, O_RDWR | O_CLOEXEC)
        defer { close(writer) }
        #expect(try !LineReader(path: pipe).isRepeatable)
        #expect(try !LineReader(path: "-").isRepeatable)
    }

    @Test func longFilesComeWholePlainAndCompressedInSeveralFrames() throws {
        let wanted = (0..<20_000).map { "line \($0) " + String(repeating: "x", count: $0 % 300) }
        let text = Array(wanted.joined(separator: "\n").utf8)
        #expect(try Self.lines(text) == wanted)
        let half = text.count / 2
        #expect(try Self.lines(Self.packed(Array(text[..<half])) + Self.packed(Array(text[half...]))) == wanted)
    }

    @Test func theNumberCountsBlankLinesToo() throws {
        let folder = try TemporaryFolder()
        let reader = try LineReader(path: try folder.write(Array("\n\na\n\nb".utf8), to: "f"))
        #expect(try reader.next() == Array("a".utf8) && reader.number == 3)
        #expect(try reader.next() == Array("b".utf8) && reader.number == 5)
    }

    /// What a file holds is bounded before it is held, however small it is.
    @Test func aLineWithoutEndIsAFaultWithItsPlace() throws {
        let bytesMax = 1 << 20
        let endless = [UInt8](repeating: UInt8(ascii: "a"), count: bytesMax + 1)
        for bytes in [Array("first\n".utf8) + endless, try Self.packed(Array("first\n".utf8) + endless + endless)] {
            do {
                _ = try Self.lines(bytes, bytesMax: bytesMax)
                Issue.record("it was read")
            } catch let fault as LineReader.Fault {
                #expect(fault.message.contains("line 2 is longer than \(bytesMax) bytes"))
            }
        }
    }

    @Test func aBrokenFrameIsAFaultWithItsPlace() throws {
        let whole = try Self.packed(Array("first\nsecond\n".utf8))
        let random = (0..<100_000).map { _ in UInt8.random(in: 0...255) }
        let large = try Self.packed(random)
        var flipped = large
        flipped[flipped.count - 1] ^= 0xFF
        for (bytes, words) in [
            (Array(whole.dropLast(2)), "ends within a zstd frame, at byte \(whole.count - 2)"),
            (whole + [1, 2, 3, 4, 5], "zstd, before byte \(whole.count + 5), after line"),
            (flipped, "zstd, before byte"), (ZstdDecompressor.magic, "ends within a zstd frame, at byte 4"),
        ] {
            do {
                _ = try Self.lines(bytes)
                Issue.record("it was read: \(words)")
            } catch let fault as LineReader.Fault {
                #expect(fault.message.contains(words), "\(fault.message)")
            }
        }
    }

    /// A window that would take gigabytes is refused, not allocated.
    @Test func aFrameThatAsksForTooMuchMemoryIsRefused() throws {
        // Frame header: no single segment, window log 31 (RFC 8878 section 3.1.1.1.2).
        #expect(throws: LineReader.Fault.self) { try Self.lines(ZstdDecompressor.magic + [0x00, 21 << 3, 0x01, 0, 0]) }
    }
}
