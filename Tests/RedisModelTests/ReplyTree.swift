// SPDX-License-Identifier: Apache-2.0
/// A reply of RESP2 as a tree.
indirect enum ReplyTree: Equatable, CustomStringConvertible {
    /// A status, an error or a number: its whole line with the sign.
    case line([UInt8])
    case bulk([UInt8])
    case null
    case nullArray
    case array([ReplyTree])

    /// Reads a reply that begins at `place`, and moves it behind; nil if bytes are missing.
    init?(_ bytes: [UInt8], _ place: inout Int) {
        guard let end = bytes[place...].firstIndex(of: 13), end + 1 < bytes.count else { return nil }
        let line = Array(bytes[place..<end])
        let number = Int(String(decoding: line.dropFirst(), as: UTF8.self)) ?? 0
        place = end + 2
        switch line.first {
        case UInt8(ascii: "$"):
            guard number >= 0 else {
                self = .null
                return
            }
            guard place + number + 2 <= bytes.count else { return nil }
            self = .bulk(Array(bytes[place..<(place + number)]))
            place += number + 2
        case UInt8(ascii: "*"):
            guard number >= 0 else {
                self = .nullArray
                return
            }
            var elements: [ReplyTree] = []
            for _ in 0..<number {
                guard let element = ReplyTree(bytes, &place) else { return nil }
                elements.append(element)
            }
            self = .array(elements)
        default: self = .line(line)
        }
    }

    var elements: [ReplyTree] { if case .array(let elements) = self { elements } else { [] } }

    var number: Int64? {
        guard case .line(let line) = self, line.first == UInt8(ascii: ":") else { return nil }
        return Int64(String(decoding: line.dropFirst(), as: UTF8.self))
    }

    var isError: Bool { if case .line(let line) = self { line.first == UInt8(ascii: "-") } else { false } }

    var description: String {
        switch self {
        case .line(let line): String(decoding: line, as: UTF8.self)
        case .bulk(let bytes): String(decoding: bytes, as: UTF8.self).debugDescription
        case .null: "null"
        case .nullArray: "null array"
        case .array(let elements): "[" + elements.map(\.description).joined(separator: ", ") + "]"
        }
    }

    /// The elements in an order of their own, `size` of them kept together.
    func sorted(by size: Int = 1) -> ReplyTree {
        guard case .array(let elements) = self else { return self }
        let groups = stride(from: 0, to: elements.count, by: size).map { elements[$0..<min($0 + size, elements.count)] }
        return .array(groups.sorted { "\($0)" < "\($1)" }.flatMap { $0 })
    }
}
