// SPDX-License-Identifier: Apache-2.0
/// The compact form of a recipient in a record of `carillon.parked`.
///
/// An entry is its length and then parts: a letter, a length, and bytes. Lengths and numbers are LEB128, signed ones in zigzag form.
struct Parts {
    var bytes: [UInt8] = []

    /// The bytes with their length before them.
    var entry: [UInt8] {
        var length = Parts()
        length.number(UInt64(bytes.count))
        return length.bytes + bytes
    }

    mutating func add(_ letter: UInt8, _ text: String) { add(letter) { $0.bytes.append(contentsOf: text.utf8) } }

    mutating func add(_ letter: UInt8, _ write: (inout Parts) -> Void) {
        var content = Parts()
        write(&content)
        bytes.append(letter)
        bytes += content.entry
    }

    mutating func number(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// With its length before it.
    mutating func text(_ text: String) {
        number(UInt64(text.utf8.count))
        bytes.append(contentsOf: text.utf8)
    }

    mutating func signed(_ value: Int64) { number(UInt64(bitPattern: value << 1 ^ value >> 63)) }
}

/// Reads entries and their parts from the front. Outside input: each step is checked.
struct PartReader {
    var rest: Slice<UnsafeRawBufferPointer>

    struct Part {
        let letter: UInt8
        let content: Slice<UnsafeRawBufferPointer>
        /// With its letter and its length.
        let whole: Slice<UnsafeRawBufferPointer>

        var reader: PartReader { PartReader(rest: content) }

        /// - Returns: nil if it is longer, or no UTF-8.
        func text(atMost bytes: Int) -> String? {
            content.count <= bytes ? String(validating: content, as: UTF8.self) : nil
        }
    }

    mutating func entry() -> PartReader? { number().flatMap { take($0) }.map(PartReader.init(rest:)) }

    mutating func part() -> Part? {
        let start = rest
        guard let letter = byte(), let size = number(), let content = take(size) else { return nil }
        return Part(letter: letter, content: content, whole: start.prefix(start.count - rest.count))
    }

    mutating func byte() -> UInt8? { rest.popFirst() }

    mutating func word() -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            guard let byte = byte() else { return nil }
            value |= UInt64(byte & 0x7F) &<< min(shift, 63)
            if byte < 0x80 { return value }
        }
        return nil
    }

    mutating func number() -> Int? { word().map { Int(clamping: $0) } }

    mutating func signed() -> Int64? { word().map { Int64(bitPattern: $0 >> 1) ^ -Int64(bitPattern: $0 & 1) } }

    /// A text behind its length; nil if it is no UTF-8.
    mutating func text() -> String? {
        number().flatMap { take($0) }.flatMap { String(validating: $0, as: UTF8.self) }
    }

    mutating func take(_ count: Int) -> Slice<UnsafeRawBufferPointer>? {
        guard count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }
}
