// SPDX-License-Identifier: Apache-2.0
/// One value of a YAML document with its position.
public struct YAMLNode: Sendable {
    public var value: Value
    public var mark: Mark

    public indirect enum Value: Sendable {
        /// `quoted` distinguishes `"true"` from `true`: only a plain scalar may be something other than text.
        case scalar(String, quoted: Bool)
        case sequence([YAMLNode])
        case mapping([Entry])
    }

    /// A key with its value. A repeated key is kept once, with its last value.
    public struct Entry: Sendable {
        public var key: String
        public var keyMark: Mark
        public var value: YAMLNode

        public init(key: String, keyMark: Mark, value: YAMLNode) {
            self.key = key
            self.keyMark = keyMark
            self.value = value
        }
    }

    /// A position. Line and column count from 1; line 0 if the source has no lines.
    public struct Mark: Sendable, Equatable {
        public var source: String
        public var line: Int
        public var column: Int

        public init(source: String, line: Int = 0, column: Int = 0) {
            self.source = source
            self.line = line
            self.column = column
        }
    }

    public init(_ value: Value, mark: Mark) {
        self.value = value
        self.mark = mark
    }

    /// YAML's null: empty, `~` or `null`, unquoted.
    public var isNull: Bool {
        guard case .scalar(let text, quoted: false) = value, text.utf8.count <= 4 else { return false }
        return text.isEmpty || text == "~" || text == "null" || text == "Null" || text == "NULL"
    }

    public subscript(key: String) -> YAMLNode? {
        guard case .mapping(let entries) = value else { return nil }
        return entries.first { $0.key == key }?.value
    }
}
