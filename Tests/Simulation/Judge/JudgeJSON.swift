// SPDX-License-Identifier: Apache-2.0
/// JSON as the judge reads it. The judge shares no code with the worker, so it has a reader of its own.
indirect enum JudgeJSON: Equatable {
    case null, flag(Bool), number(Int64), other(String), text(String), list([JudgeJSON]), object([String: JudgeJSON])

    init?(_ bytes: [UInt8]) {
        var reader = Reader(bytes: bytes)
        guard let value = reader.value() else { return nil }
        reader.skipSpace()
        guard reader.at == bytes.count else { return nil }
        self = value
    }

    subscript(key: String) -> JudgeJSON? {
        if case .object(let members) = self { members[key] } else { nil }
    }

    var text: String? { if case .text(let text) = self { text } else { nil } }
    var number: Int64? { if case .number(let number) = self { number } else { nil } }
    var flag: Bool? { if case .flag(let flag) = self { flag } else { nil } }
    var list: [JudgeJSON]? { if case .list(let list) = self { list } else { nil } }

    private struct Reader {
        let bytes: [UInt8]
        var at = 0

        mutating func skipSpace() {
            while at < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[at]) { at += 1 }
        }

        mutating func take(_ byte: UInt8) -> Bool {
            skipSpace()
            guard at < bytes.count, bytes[at] == byte else { return false }
            at += 1
            return true
        }

        mutating func word(_ word: String, _ value: JudgeJSON) -> JudgeJSON? {
            guard bytes[at...].starts(with: word.utf8) else { return nil }
            at += word.utf8.count
            return value
        }

        mutating func value() -> JudgeJSON? {
            skipSpace()
            guard at < bytes.count else { return nil }
            switch bytes[at] {
            case UInt8(ascii: "{"): return object()
            case UInt8(ascii: "["): return list()
            case UInt8(ascii: "\""): return string().map { .text($0) }
            case UInt8(ascii: "t"): return word("true", .flag(true))
            case UInt8(ascii: "f"): return word("false", .flag(false))
            case UInt8(ascii: "n"): return word("null", .null)
            default: return number()
            }
        }

        private mutating func number() -> JudgeJSON? {
            let start = at
            while at < bytes.count, "+-.eE0123456789".utf8.contains(bytes[at]) { at += 1 }
            let text = String(decoding: bytes[start..<at], as: UTF8.self)
            return text.isEmpty ? nil : Int64(text).map { .number($0) } ?? .other(text)
        }

        private mutating func object() -> JudgeJSON? {
            at += 1
            var members: [String: JudgeJSON] = [:]
            if take(UInt8(ascii: "}")) { return .object(members) }
            while true {
                skipSpace()
                guard let key = string(), take(UInt8(ascii: ":")), let value = value() else { return nil }
                members[key] = value
                if take(UInt8(ascii: "}")) { return .object(members) }
                guard take(UInt8(ascii: ",")) else { return nil }
            }
        }

        private mutating func list() -> JudgeJSON? {
            at += 1
            var members: [JudgeJSON] = []
            if take(UInt8(ascii: "]")) { return .list(members) }
            while true {
                guard let value = value() else { return nil }
                members.append(value)
                if take(UInt8(ascii: "]")) { return .list(members) }
                guard take(UInt8(ascii: ",")) else { return nil }
            }
        }

        private mutating func string() -> String? {
            guard at < bytes.count, bytes[at] == UInt8(ascii: "\"") else { return nil }
            at += 1
            var text: [UInt8] = []
            while at < bytes.count {
                let byte = bytes[at]
                at += 1
                if byte == UInt8(ascii: "\"") { return String(decoding: text, as: UTF8.self) }
                guard byte == UInt8(ascii: "\\") else {
                    text.append(byte)
                    continue
                }
                guard at < bytes.count else { return nil }
                let escape = bytes[at]
                at += 1
                switch escape {
                case UInt8(ascii: "n"): text.append(0x0A)
                case UInt8(ascii: "t"): text.append(0x09)
                case UInt8(ascii: "u"):
                    guard at + 4 <= bytes.count,
                        let code = UInt32(String(decoding: bytes[at..<at + 4], as: UTF8.self), radix: 16)
                    else { return nil }
                    at += 4
                    // The world writes no characters beyond the first plane.
                    text += Array(String(Unicode.Scalar(code) ?? "?").utf8)
                default: text.append(escape)
                }
            }
            return nil
        }
    }
}

extension JudgeJSON: CustomStringConvertible {
    /// The same text in each run.
    var description: String {
        switch self {
        case .null: "null"
        case .flag(let value): "\(value)"
        case .number(let value): "\(value)"
        case .other(let text): text
        case .text(let text): "\"\(text)\""
        case .list(let members): "[" + members.map(\.description).joined(separator: ", ") + "]"
        case .object(let members):
            "{" + members.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: ", ") + "}"
        }
    }
}
