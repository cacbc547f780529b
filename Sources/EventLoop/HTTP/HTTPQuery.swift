// SPDX-License-Identifier: Apache-2.0
import Digits

/// The fields of a query as a form sends them (`application/x-www-form-urlencoded` of the URL standard).
public struct HTTPQuery: Sendable, Equatable {
    private let fields: [(name: String, value: String)]

    private static let fieldsMax = 16

    /// - Returns: nil for more than 16 fields, a `%` without two hex digits, or bytes that are not UTF-8.
    ///
    /// - Parameter query: the text after `?`; nil for none.
    public init?(_ query: String?) {
        var fields: [(String, String)] = []
        for field in (query ?? "").utf8.split(separator: UInt8(ascii: "&")) {
            let parts = field.split(
                separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard fields.count < Self.fieldsMax, let name = parts.first.flatMap(Self.decoded),
                let value = parts.count > 1 ? Self.decoded(parts[1]) : ""
            else { return nil }
            fields.append((name, value))
        }
        self.fields = fields
    }

    /// The value of the first field of that name; nil if there is none.
    public subscript(name: String) -> String? { fields.first { $0.name == name }?.value }

    private static func decoded(_ text: Substring.UTF8View) -> String? {
        var bytes: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(0x20)
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst().flatMap({ Hex.value(of: $0) }),
                    let low = rest.popFirst().flatMap({ Hex.value(of: $0) })
                else {
                    return nil
                }
                bytes.append(high << 4 | low)
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    public static func == (one: HTTPQuery, other: HTTPQuery) -> Bool {
        one.fields.elementsEqual(other.fields) { $0 == $1 }
    }
}
