// SPDX-License-Identifier: Apache-2.0
public import JSON
public import PushCore

extension JSONWriter {
    /// A value that passes through unread. Its depth was bounded when it was read.
    public mutating func value(_ value: JSONValue) {
        switch value {
        case .null: null()
        case .bool(let flag): bool(flag)
        case .number(let text): number(text)
        case .string(let text): string(text)
        case .array(let elements):
            beginArray()
            for element in elements { self.value(element) }
            endArray()
        case .object(let members):
            beginObject()
            for member in members { self.member(member) }
            endObject()
        }
    }

    mutating func member(_ member: JSONValue.Member) {
        key(escaping: member.key)
        value(member.value)
    }

    /// Writes the string of the preceding key. Returns the position of its characters between the quotes.
    mutating func placedString(_ text: String, _ more: String = "") -> Range<Int> {
        let start = count + 1
        string(text, more)
        return start..<count - 1
    }

    /// The number of bytes that `string` writes for one byte of UTF-8.
    static func escapedLength(of byte: UInt8) -> Int {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), 0x09, 0x0a, 0x0d: 2
        case 0..<0x20: 6
        default: 1
        }
    }
}
