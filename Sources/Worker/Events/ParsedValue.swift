// SPDX-License-Identifier: Apache-2.0
import JSON
import PushCore

extension JSONValue {
    /// A part that exceeds the limits of contract section 0, and its position.
    enum Unbounded: Error {
        case key(byte: Int)
        case list(byte: Int)
    }

    /// Copies a value from a record: numbers as written, of a repeated key the last value. The parser's depth limit
    /// bounds the recursion.
    init(_ cursor: JSONCursor) throws(Unbounded) {
        switch cursor.kind {
        case .null: self = .null
        case .yes: self = .bool(true)
        case .no: self = .bool(false)
        case .integer, .unsigned, .fraction: self = .number(cursor.numberText ?? "0")
        case .string: self = .string(cursor.string ?? "")
        case .array: self = .array(try Self.elements(of: cursor))
        case .object: self = .object(try Self.members(of: cursor))
        }
    }

    private static func elements(of array: JSONCursor) throws(Unbounded) -> [JSONValue] {
        guard array.count <= InputLimit.elements else { throw .list(byte: array.offset) }
        var elements: [JSONValue] = []
        elements.reserveCapacity(array.count)
        for element in array.elements { elements.append(try JSONValue(element)) }
        return elements
    }

    private static func members(of object: JSONCursor) throws(Unbounded) -> [Member] {
        guard object.count <= InputLimit.elements else { throw .list(byte: object.offset) }
        for (key, _) in object.members where (key.utf8?.count ?? 0) > InputLimit.name {
            throw .key(byte: key.offset)
        }
        let named = object.members.lastOfEachKey()
        var members: [Member] = []
        members.reserveCapacity(named.count)
        for (name, value) in named { members.append(Member(name, try JSONValue(value))) }
        return members
    }
}
