// SPDX-License-Identifier: Apache-2.0
/// Fuzzed bytes read as decisions: past their end every one is zero, so that any input is a whole script.
struct Script {
    private let bytes: UnsafeRawBufferPointer
    private var at = 0

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    var isOver: Bool { at >= bytes.count }

    mutating func byte() -> UInt8 {
        guard at < bytes.count else { return 0 }
        defer { at += 1 }
        return bytes[at]
    }

    mutating func number(below bound: Int) -> Int { bound > 0 ? Int(byte()) % bound : 0 }

    /// Four bytes, the high ones first.
    mutating func word() -> UInt32 { (0..<4).reduce(0) { value, _ in value << 8 | UInt32(byte()) } }

    /// At most so many bytes; fewer at the end.
    mutating func take(_ count: Int) -> [UInt8] {
        let end = min(bytes.count, at + count)
        defer { at = end }
        return Array(bytes[at..<end])
    }
}
