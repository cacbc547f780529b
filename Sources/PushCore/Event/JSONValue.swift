// SPDX-License-Identifier: Apache-2.0
public import Digits

/// A JSON value that passes through unread: custom keys, `apsField`, Live Activity states.
///
/// Numbers keep their text and objects the order of their keys, so that the device gets exactly the sender's JSON. The
/// reader keeps the last of repeated keys.
public enum JSONValue: Sendable, Equatable {
    case null
    case bool(Bool)
    /// The text of the number.
    case number(String)
    case string(String)
    case array([JSONValue])
    case object([Member])

    public struct Member: Sendable, Equatable {
        public var key: String
        public var value: JSONValue

        public init(_ key: String, _ value: JSONValue) {
            self.key = key
            self.value = value
        }

        /// - Returns: whether its key has these bytes.
        @inlinable public func isNamed(_ name: String) -> Bool { key.isSame(as: name) }
    }

    /// The value of an object's key; nil for every other kind of value.
    public subscript(key: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.isNamed(key) }?.value
    }

    public var isNull: Bool {
        if case .null = self { true } else { false }
    }

    public var string: String? {
        guard case .string(let text) = self else { return nil }
        return text
    }
}
