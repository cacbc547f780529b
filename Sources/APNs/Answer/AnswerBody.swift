// SPDX-License-Identifier: Apache-2.0
/// The body of an error answer, `{"reason":"…","timestamp":n}`, parsed by a bounded scanner.
///
/// The bytes come from the network: whatever they are, the result is a reason (perhaps none) and a time (perhaps none).
struct AnswerBody: Equatable {
    /// Maximum kept bytes of an answer's body; the rest is dropped on arrival.
    static var bytesMax: Int { 4096 }

    private(set) var reason: APNsReason = .absent
    private(set) var time: AnswerTime = .absent

    init(_ bytes: some Collection<UInt8>) {
        var scanner = Scanner(bytes: Array(bytes.prefix(Self.bytesMax)))
        guard scanner.take(UInt8(ascii: "{")) else { return }
        while let key = scanner.string(), scanner.take(UInt8(ascii: ":")) {
            if key.elementsEqual("reason".utf8), let text = scanner.string() {
                reason = APNsReason(bytes: text)
            } else if key.elementsEqual("timestamp".utf8) {
                let read = scanner.time()
                time = read ?? .unreadable
                if read == nil { return }
            } else {
                guard scanner.skipValue() else { return }
            }
            guard scanner.take(UInt8(ascii: ",")) else { return }
        }
    }

    /// Walks over the bytes of one flat JSON object, never past their end.
    private struct Scanner {
        let bytes: [UInt8]
        var at = 0

        init(bytes: [UInt8]) {
            self.bytes = bytes
        }

        mutating func peek() -> UInt8? {
            while at < bytes.count {
                switch bytes[at] {
                case 0x20, 0x09, 0x0A, 0x0D: at += 1
                default: return bytes[at]
                }
            }
            return nil
        }

        mutating func take(_ byte: UInt8) -> Bool {
            guard peek() == byte else { return false }
            at += 1
            return true
        }

        /// The raw content of a string. Escapes remain, because none of Apple's reasons has any.
        mutating func string() -> ArraySlice<UInt8>? {
            guard peek() == UInt8(ascii: "\"") else { return nil }
            let start = at + 1
            var end = start
            while end < bytes.count {
                if bytes[end] == UInt8(ascii: "\"") {
                    at = end + 1
                    return bytes[start..<end]
                }
                end += bytes[end] == UInt8(ascii: "\\") ? 2 : 1
            }
            return nil
        }

        /// An integer of at most eighteen digits. Any other number is ignored.
        mutating func integer() -> Int64? {
            guard let first = peek(), first >= UInt8(ascii: "0"), first <= UInt8(ascii: "9") else { return nil }
            var value: Int64 = 0
            var end = at
            while end < bytes.count, bytes[end] >= UInt8(ascii: "0"), bytes[end] <= UInt8(ascii: "9") {
                guard end - at < 18 else { return nil }
                value = value * 10 + Int64(bytes[end] - UInt8(ascii: "0"))
                end += 1
            }
            let start = at
            at = end
            guard let next = peek(), next != UInt8(ascii: ","), next != UInt8(ascii: "}") else { return value }
            at = start
            return nil
        }

        /// The value of `timestamp`. Returns nil where the body breaks off in it.
        mutating func time() -> AnswerTime? {
            if let number = integer() { return .ms(number) }
            if peek() == UInt8(ascii: "n"), bytes[at...].starts(with: "null".utf8) {
                return skipValue() ? .absent : nil
            }
            return skipValue() ? .unreadable : nil
        }

        /// Skips a value of any kind. Nested values are skipped by counting brackets outside strings.
        mutating func skipValue() -> Bool {
            var depth = 0
            while let byte = peek() {
                switch byte {
                case UInt8(ascii: "\""):
                    guard string() != nil else { return false }
                case UInt8(ascii: "{"), UInt8(ascii: "["):
                    depth += 1
                    at += 1
                case UInt8(ascii: "}"), UInt8(ascii: "]"):
                    if depth == 0 { return true }
                    depth -= 1
                    at += 1
                case UInt8(ascii: ",") where depth == 0:
                    return true
                default:
                    at += 1
                }
            }
            return false
        }
    }
}
