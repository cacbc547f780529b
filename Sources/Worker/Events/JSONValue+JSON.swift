import JSON
import PushCore

extension JSONValue {
    /// Copies a value out of a record: numbers as written, of a repeated key the last value. Recursion is bounded by
    /// the parser's depth.
    init(_ cursor: JSONCursor) {
        switch cursor.kind {
        case .null: self = .null
        case .yes: self = .bool(true)
        case .no: self = .bool(false)
        case .integer, .unsigned, .fraction: self = .number(cursor.numberText ?? "0")
        case .string: self = .string(cursor.string ?? "")
        case .array: self = .array(cursor.elements.map { JSONValue($0) })
        case .object: self = .object(cursor.members.lastOfEachKey().map { Member($0.name, JSONValue($0.value)) })
        }
    }
}
