// SPDX-License-Identifier: Apache-2.0
/// Finds the byte at which a text stops being the beginning of any JSON document (RFC 8259).
///
/// simdjson reports a fault without its place. This scan runs only after a refusal, once over the bytes and without
/// recursion.
struct JSONBreak {
    private let bytes: UnsafeRawBufferPointer
    private let maxDepth: Int
    private var at = 0
    /// The open objects and arrays.
    private var open: [Container] = []

    private enum Container { case object, array }

    private enum Expected {
        case value
        case valueOrEnd
        case keyOrEnd
        case key
        case colon
        case commaOrEnd
    }

    private init(_ bytes: UnsafeRawBufferPointer, maxDepth: Int) {
        self.bytes = bytes
        self.maxDepth = maxDepth
    }

    /// - Returns: The position of the break, from 0; the number of bytes if the text ends too early.
    static func position(in bytes: UnsafeRawBufferPointer, maxDepth: Int) -> Int {
        var scan = JSONBreak(bytes, maxDepth: maxDepth)
        return scan.document()
    }

    /// - Returns: Where the first ill-formed UTF-8 sequence begins; nil if the text is UTF-8.
    static func brokenUTF8(in bytes: UnsafeRawBufferPointer) -> Int? {
        var at = 0
        while at < bytes.count {
            guard let length = sequenceLength(bytes, at: at) else { return at }
            at += length
        }
        return nil
    }

    /// The length of the well-formed UTF-8 sequence that begins at `start`, by table 3-7 of the Unicode Standard.
    private static func sequenceLength(_ bytes: UnsafeRawBufferPointer, at start: Int) -> Int? {
        let length: Int
        var second: ClosedRange<UInt8> = 0x80...0xBF
        switch bytes[start] {
        case 0...0x7F: return 1
        case 0xC2...0xDF: length = 2
        case 0xE0: (length, second) = (3, 0xA0...0xBF)
        case 0xED: (length, second) = (3, 0x80...0x9F)
        case 0xE1...0xEF: length = 3
        case 0xF0: (length, second) = (4, 0x90...0xBF)
        case 0xF1...0xF3: length = 4
        case 0xF4: (length, second) = (4, 0x80...0x8F)
        default: return nil
        }
        guard start + length <= bytes.count, second.contains(bytes[start + 1]) else { return nil }
        for position in (start + 2)..<max(start + 2, start + length) where !(0x80...0xBF).contains(bytes[position]) {
            return nil
        }
        return length
    }

    private mutating func document() -> Int {
        var expected = Expected.value
        while true {
            skipBlanks()
            guard at < bytes.count else { return at }
            let byte = bytes[at]
            switch expected {
            case .commaOrEnd:
                guard let next = afterValue(byte) else { return at }
                expected = next
            case .colon:
                guard byte == UInt8(ascii: ":") else { return at }
                at += 1
                expected = .value
            case .key, .keyOrEnd:
                if byte == UInt8(ascii: "}"), expected == .keyOrEnd {
                    expected = close()
                } else {
                    guard byte == UInt8(ascii: "\""), string() else { return at }
                    expected = .colon
                }
            case .value, .valueOrEnd:
                if byte == UInt8(ascii: "]"), expected == .valueOrEnd {
                    expected = close()
                } else {
                    guard let next = value(byte) else { return at }
                    expected = next
                }
            }
        }
    }

    /// Takes a comma or the end of a container; nil for any other byte, and for anything after the document.
    private mutating func afterValue(_ byte: UInt8) -> Expected? {
        switch (open.last, byte) {
        case (.object, UInt8(ascii: ",")):
            at += 1
            return .key
        case (.array, UInt8(ascii: ",")):
            at += 1
            return .value
        case (.object, UInt8(ascii: "}")), (.array, UInt8(ascii: "]")): return close()
        default: return nil
        }
    }

    private mutating func close() -> Expected {
        open.removeLast()
        at += 1
        return .commaOrEnd
    }

    /// Takes a whole value or the beginning of a container; nil with `at` on the break.
    private mutating func value(_ byte: UInt8) -> Expected? {
        switch byte {
        case UInt8(ascii: "{"): return begin(.object) ? .keyOrEnd : nil
        case UInt8(ascii: "["): return begin(.array) ? .valueOrEnd : nil
        case UInt8(ascii: "\""): return string() ? .commaOrEnd : nil
        case UInt8(ascii: "t"): return literal("true") ? .commaOrEnd : nil
        case UInt8(ascii: "f"): return literal("false") ? .commaOrEnd : nil
        case UInt8(ascii: "n"): return literal("null") ? .commaOrEnd : nil
        default: return number() ? .commaOrEnd : nil
        }
    }

    /// - Returns: false beyond the greatest depth, where only an empty container is let pass.
    private mutating func begin(_ container: Container) -> Bool {
        let start = at
        at += 1
        if open.count >= maxDepth {
            skipBlanks()
            let end = container == .object ? UInt8(ascii: "}") : UInt8(ascii: "]")
            guard at < bytes.count, bytes[at] == end else {
                at = start
                return false
            }
        }
        open.append(container)
        return true
    }

    private mutating func literal(_ text: StaticString) -> Bool {
        for index in 0..<text.utf8CodeUnitCount {
            guard at < bytes.count, bytes[at] == text.utf8Start[index] else { return false }
            at += 1
        }
        return true
    }

    private mutating func skipBlanks() {
        while at < bytes.count {
            switch bytes[at] {
            case 0x20, 0x09, 0x0A, 0x0D: at += 1
            default: return
            }
        }
    }
}

// MARK: Strings and numbers

extension JSONBreak {
    private mutating func string() -> Bool {
        at += 1
        while at < bytes.count {
            switch bytes[at] {
            case UInt8(ascii: "\""):
                at += 1
                return true
            case UInt8(ascii: "\\"): guard escape() else { return false }
            case 0..<0x20: return false
            default: at += 1
            }
        }
        return false
    }

    /// Takes an escape; of a surrogate pair both. A lone surrogate breaks where its escape begins, but a second escape that is
    /// broken or cut off breaks there.
    private mutating func escape() -> Bool {
        guard at + 1 < bytes.count else {
            at = bytes.count
            return false
        }
        guard bytes[at + 1] == UInt8(ascii: "u") else {
            let isKnown = #""\/bfnrt"#.utf8.contains(bytes[at + 1])
            if isKnown { at += 2 } else { at += 1 }
            return isKnown
        }
        guard let unit = codeUnit(at: at) else { return false }
        switch unit {
        case 0xDC00...0xDFFF: return false
        case 0xD800...0xDBFF:
            let start = at
            at += 6
            if at >= bytes.count { return false }
            if bytes[at] == UInt8(ascii: "\\"), at + 1 >= bytes.count {
                at = bytes.count
                return false
            }
            guard bytes[at] == UInt8(ascii: "\\"), bytes[at + 1] == UInt8(ascii: "u") else {
                at = start
                return false
            }
            guard let low = codeUnit(at: at) else { return false }
            guard (0xDC00...0xDFFF).contains(low) else {
                at = start
                return false
            }
            at += 6
        default: at += 6
        }
        return true
    }

    /// The code unit of the `\uXXXX` that begins at `start`; nil with `at` on the first byte that is no digit.
    private mutating func codeUnit(at start: Int) -> UInt16? {
        var unit: UInt16 = 0
        for position in (start + 2)..<(start + 6) {
            guard position < bytes.count, let digit = Character(UnicodeScalar(bytes[position])).hexDigitValue,
                bytes[position] < 0x80
            else {
                at = min(position, bytes.count)
                return nil
            }
            unit = unit &<< 4 | UInt16(digit)
        }
        return unit
    }

    /// Takes a number of any size.
    private mutating func number() -> Bool {
        if at < bytes.count, bytes[at] == UInt8(ascii: "-") { at += 1 }
        if at < bytes.count, bytes[at] == UInt8(ascii: "0") {
            at += 1
        } else {
            guard digits() else { return false }
        }
        if at < bytes.count, bytes[at] == UInt8(ascii: ".") {
            at += 1
            guard digits() else { return false }
        }
        if at < bytes.count, bytes[at] | 0x20 == UInt8(ascii: "e") {
            at += 1
            if at < bytes.count, bytes[at] == UInt8(ascii: "+") || bytes[at] == UInt8(ascii: "-") { at += 1 }
            guard digits() else { return false }
        }
        return true
    }

    /// Takes one digit or more.
    private mutating func digits() -> Bool {
        let start = at
        while at < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[at]) { at += 1 }
        return at > start
    }
}
