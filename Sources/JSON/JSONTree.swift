// SPDX-License-Identifier: Apache-2.0
internal import Digits

/// A JSON document as an independent value, for reading that need not be fast: scenarios, ledgers, tests.
///
/// Numbers keep their text, objects the order of their keys. Of a repeated key the last value counts.
public indirect enum JSONTree: Sendable, Equatable {
    case null
    case bool(Bool)
    case number(String)
    case string(String)
    case array([JSONTree])
    case object([Member])

    public struct Member: Sendable, Equatable {
        public var key: String
        public var value: JSONTree

        public init(_ key: String, _ value: JSONTree) {
            self.key = key
            self.value = value
        }
    }

    /// Reads one document.
    public init(
        parsing bytes: UnsafeRawBufferPointer, maxBytes: Int = 16 << 20, maxDepth: Int = 32
    ) throws(JSONFault) {
        let parser = JSONParser(maxBytes: maxBytes, maxDepth: maxDepth)
        let parsed = parser.parse(bytes) { (root) throws(Never) in JSONTree(root) }
        switch parsed {
        case .read(let tree): self = tree
        case .refused(let fault): throw fault
        }
    }

    public init(parsing bytes: [UInt8], maxBytes: Int = 16 << 20, maxDepth: Int = 32) throws(JSONFault) {
        let parser = JSONParser(maxBytes: maxBytes, maxDepth: maxDepth)
        switch parser.parse(bytes, { (root) throws(Never) in JSONTree(root) }) {
        case .read(let tree): self = tree
        case .refused(let fault): throw fault
        }
    }

    /// Copies a value from the current document. The parser's depth limit bounds the recursion.
    public init(_ cursor: JSONCursor) {
        switch cursor.kind {
        case .null: self = .null
        case .yes: self = .bool(true)
        case .no: self = .bool(false)
        case .integer, .unsigned, .fraction: self = .number(cursor.numberText ?? "0")
        case .string: self = .string(cursor.string ?? "")
        case .array: self = .array(cursor.elements.map { JSONTree($0) })
        case .object:
            let members = cursor.members.lastOfEachKey().map { Member($0.name, JSONTree($0.value)) }
            self = .object(members)
        }
    }

    public subscript(key: String) -> JSONTree? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.key.isSame(as: key) }?.value
    }

    public subscript(index: Int) -> JSONTree? {
        guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
        return elements[index]
    }

    public var string: String? {
        guard case .string(let text) = self else { return nil }
        return text
    }

    public var int: Int64? {
        guard case .number(let text) = self else { return nil }
        return Int64(text)
    }

    public var double: Double? {
        guard case .number(let text) = self else { return nil }
        return Double(text)
    }

    public var bool: Bool? {
        guard case .bool(let value) = self else { return nil }
        return value
    }

    public var array: [JSONTree]? {
        guard case .array(let elements) = self else { return nil }
        return elements
    }

    public var members: [Member]? {
        guard case .object(let members) = self else { return nil }
        return members
    }

    /// Compact JSON text.
    public var bytes: [UInt8] {
        var writer = JSONWriter()
        writer.tree(self)
        return writer.bytes
    }
}

extension JSONCursor.Members {
    private static var searchedMax: Int { 16 }

    /// Names with their values. Of a repeated name, the last value in the place of the first.
    public func lastOfEachKey() -> [(name: String, value: JSONCursor)] {
        // Few members are searched linearly. For many, a table avoids quadratic time on hostile objects.
        var result: [(name: String, value: JSONCursor)] = []
        result.reserveCapacity(Swift.min(4, (end &- index) / 2))
        var places: [UTF8Key: Int] = [:]
        for (key, value) in self {
            let name = key.string ?? ""
            let known = places.isEmpty ? result.firstIndex { $0.name.isSame(as: name) } : places[UTF8Key(name)]
            if let known {
                result[known].value = value
                continue
            }
            result.append((name, value))
            if !places.isEmpty {
                places[UTF8Key(name)] = result.count - 1
            } else if result.count == Self.searchedMax {
                for (place, entry) in result.enumerated() { places[UTF8Key(entry.name)] = place }
            }
        }
        return result
    }
}

extension JSONWriter {
    public mutating func tree(_ tree: JSONTree) {
        switch tree {
        case .null: null()
        case .bool(let value): bool(value)
        case .number(let text): number(text)
        case .string(let text): string(text)
        case .array(let elements):
            beginArray()
            for element in elements { self.tree(element) }
            endArray()
        case .object(let members):
            beginObject()
            for member in members {
                key(escaping: member.key)
                self.tree(member.value)
            }
            endObject()
        }
    }
}
