// SPDX-License-Identifier: Apache-2.0
import Glibc
import Support
import Telemetry
import Testing

/// What stays in memory of a secret that is no longer used: nothing.
struct SecretWipeTests {
    @Test(.disabled(if: Sanitizer.isOn, "there are terabytes to search"), arguments: [true, false])
    func nothingStaysOfASecretThatWasRead(isKey: Bool) throws {
        var generator = SeededGenerator(seed: .random(in: 0 ... .max))
        // Known by its complement, so that the search does not find what it searches by.
        let masked = (0..<64).map { _ in UInt8.random(in: 0x21...0x7E, using: &generator) ^ 0xFF }
        let folder = try TemporaryFolder()
        let path = try Self.write(masked, folder)
        do {
            let secret =
                isKey ? try SmallFile.readKey(path, limit: 65_536).get() : try SmallFile.readSecret(path).get()
            #expect(secret.withBytes { $0.elementsEqual(masked.lazy.map { $0 ^ 0xFF }) })
            secret.withCString { #expect(strlen($0) == 64) }
            #expect(try Self.places(of: masked) >= 1, "the search finds what is there")
        }
        #expect(try Self.places(of: masked) == 0, "seed \(generator.seed)")
    }

    /// Writes the secret byte by byte, so that no buffer of ours ever holds it.
    private static func write(_ masked: [UInt8], _ folder: TemporaryFolder) throws -> String {
        let path = folder.file("secret")
        let fd = open(path, O_WRONLY | O_CREAT, 0o600)
        defer { close(fd) }
        for byte in masked {
            var plain = byte ^ 0xFF
            try #require(Glibc.write(fd, &plain, 1) == 1)
        }
        return path
    }

    /// How often the unmasked second half stands in the writable memory of this process: the first bytes of freed memory are
    /// the allocator's.
    private static func places(of secret: [UInt8]) throws -> Int {
        let masked = Array(secret.suffix(32))
        guard case .bytes(let maps) = SmallFile.read("/proc/self/maps", limit: 16 << 20) else {
            Issue.record("no map of the memory")
            return 0
        }
        let memory = open("/proc/self/mem", O_RDONLY)
        defer { close(memory) }
        var count = 0
        var block = [UInt8](repeating: 0, count: 1 << 20)
        for line in String(decoding: maps, as: UTF8.self).split(separator: "\n") {
            let words = line.split(separator: " ")
            let bounds = words[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
            guard bounds.count == 2, words.count > 1, words[1].hasPrefix("rw") else { continue }
            var start = bounds[0]
            while start < bounds[1] {
                let wanted = Int(min(UInt64(block.count), bounds[1] - start))
                let got = pread(memory, &block, wanted, off_t(truncatingIfNeeded: start))
                guard got > 0 else { break }
                count += matches(in: block[..<got], masked)
                // The next piece overlaps, so that no border hides a match.
                start += UInt64(got == wanted && got > 64 ? got - 64 : got)
                if got == wanted, start + 64 >= bounds[1] { break }
            }
        }
        return count
    }

    private static func matches(in block: ArraySlice<UInt8>, _ masked: [UInt8]) -> Int {
        block.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, bytes.count >= masked.count else { return 0 }
            var count = 0
            var place = 0
            let first = Int32(masked[0] ^ 0xFF)
            while place + masked.count <= bytes.count,
                let found = memchr(base + place, first, bytes.count - masked.count - place + 1)
            {
                place = found - UnsafeMutableRawPointer(mutating: base)
                var index = 0
                while index < masked.count, bytes[place + index] ^ 0xFF == masked[index] { index += 1 }
                if index == masked.count { count += 1 }
                place += 1
            }
            return count
        }
    }
}
