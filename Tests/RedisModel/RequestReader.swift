// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Splits a client's bytes into commands. The bytes may come in any pieces.
struct RequestReader {
    enum Step: Equatable {
        case needsBytes
        case command([Bytes])
        /// The connection ends after this error.
        case broken(RedisError)
    }

    private var pending = Bytes()
    private var place = 0

    mutating func feed(_ bytes: Bytes) {
        if place == pending.count {
            pending.removeAll(keepingCapacity: true)
            place = 0
        }
        pending += bytes
    }

    mutating func next() -> Step {
        let start = place
        guard let line = line(limit: 64 << 10) else {
            let isLong = pending.count - start > 64 << 10
            let what = pending.dropFirst(start).first == 42 ? "too big mbulk count string" : "too big inline request"
            return isLong ? Self.broken(what) : .needsBytes
        }
        guard line.first == 42 else {
            guard let words = Self.words(of: line) else { return Self.broken("unbalanced quotes in request") }
            return words.isEmpty ? next() : .command(words)
        }
        guard let count = Array(line.dropFirst()).integer, count <= 1 << 20 else {
            return Self.broken("invalid multibulk length")
        }
        if count <= 0 { return next() }
        var words: [Bytes] = []
        for _ in 0..<count {
            guard let head = lineRange(limit: 64 << 10) else { return wait(from: start) }
            guard !head.isEmpty, pending[head.lowerBound] == 36 else {
                let sign = head.isEmpty ? "\r" : String(UnicodeScalar(pending[head.lowerBound]))
                return Self.broken("expected '$', got '\(sign)'")
            }
            guard let length = Array(pending[(head.lowerBound + 1)..<head.upperBound]).integer, length >= 0,
                length <= 512 << 20
            else {
                return Self.broken("invalid bulk length")
            }
            guard pending.count - place >= Int(length) + 2 else { return wait(from: start) }
            words.append(Array(pending[place..<(place + Int(length))]))
            place += Int(length) + 2
        }
        return .command(words)
    }

    private mutating func wait(from start: Int) -> Step {
        place = start
        return .needsBytes
    }

    private static func broken(_ what: String) -> Step { .broken(RedisError("ERR Protocol error: \(what)")) }

    /// The next line without its end, or nil if it is not there yet.
    private mutating func line(limit: Int) -> Bytes? { lineRange(limit: limit).map { Array(pending[$0]) } }

    private mutating func lineRange(limit: Int) -> Range<Int>? {
        let from = place
        let length = pending.withUnsafeBytes { bytes -> Int? in
            guard let start = bytes.baseAddress, from < bytes.count else { return nil }
            return memchr(start + from, 10, bytes.count - from).map { UnsafeRawPointer($0) - (start + from) }
        }
        guard let length, length <= limit else { return nil }
        let end = from + length
        place = end + 1
        return from..<(end > from && pending[end - 1] == 13 ? end - 1 : end)
    }

    /// The words of an inline command, which may be in quotes; nil if a quote does not end.
    static func words(of line: Bytes) -> [Bytes]? {
        var words: [Bytes] = []
        var rest = line[...]
        while true {
            rest = rest.drop { $0 == 32 || $0 == 9 }
            guard let first = rest.first else { return words }
            guard first == 34 || first == 39 else {
                words.append(Array(rest.prefix { $0 != 32 && $0 != 9 }))
                rest = rest.drop { $0 != 32 && $0 != 9 }
                continue
            }
            rest = rest.dropFirst()
            var word = Bytes()
            while let byte = rest.first, byte != first {
                rest = rest.dropFirst()
                if byte == 92, let next = rest.first {
                    rest = rest.dropFirst()
                    word.append(first == 34 ? escaped(next) : next)
                } else {
                    word.append(byte)
                }
            }
            guard rest.first == first else { return nil }
            rest = rest.dropFirst()
            guard rest.first.map({ $0 == 32 || $0 == 9 }) ?? true else { return nil }
            words.append(word)
        }
    }

    private static func escaped(_ byte: UInt8) -> UInt8 {
        switch byte {
        case 110: 10
        case 114: 13
        case 116: 9
        case 98: 8
        case 97: 7
        default: byte
        }
    }
}
