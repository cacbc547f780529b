import Digits

/// A JSON value that travels through unread: custom keys, `apsField`, Live Activity states.
///
/// Numbers keep their text and objects keep the order of their keys, so that what the sender wrote is what the device
/// reads. Of a repeated key the last counts; the reader sees to that.
public enum JSONValue: Sendable, Equatable {
    case null
    case bool(Bool)
    /// The number as it was written.
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

        /// Whether its key has these bytes.
        public func isNamed(_ name: String) -> Bool { key.isSame(as: name) }
    }

    /// The value of a key of an object; nil for every other kind of value.
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
