// SPDX-License-Identifier: Apache-2.0
internal import Digits

/// One value of the document that a ``JSONParser`` is reading: two words, cheap to copy, valid only inside `parse`.
///
/// Reading a value as another kind gives nil, never a conversion: `1.0` is not an integer.
@frozen
public struct JSONCursor {
    @usableFromInline let view: UnsafePointer<JSONView>
    @usableFromInline let index: Int

    @inlinable
    init(view: UnsafePointer<JSONView>, index: Int) {
        self.view = view
        self.index = index
    }

    @frozen
    public enum Kind: UInt8, Sendable {
        case object = 0x7B  // {
        case array = 0x5B  // [
        case string = 0x22  // "
        /// An integer within Int64.
        case integer = 0x6C  // l
        /// An integer above Int64, within UInt64.
        case unsigned = 0x75  // u
        case fraction = 0x64  // d
        case yes = 0x74  // t
        case no = 0x66  // f
        case null = 0x6E  // n
    }

    @inlinable var word: UInt64 { view.pointee.tape[index] }
    @inlinable var rawKind: UInt8 { UInt8(truncatingIfNeeded: word &>> 56) }
    @inlinable var payload: Int { Int(truncatingIfNeeded: word & 0x00FF_FFFF_FFFF_FFFF) }

    /// The tape index after this value.
    @inlinable var next: Int {
        switch rawKind {
        case Kind.object.rawValue, Kind.array.rawValue: Int(truncatingIfNeeded: word & 0xFFFF_FFFF)
        case Kind.integer.rawValue, Kind.unsigned.rawValue, Kind.fraction.rawValue: index &+ 2
        default: index &+ 1
        }
    }

    @inlinable public var kind: Kind { Kind(rawValue: rawKind) ?? .null }
    @inlinable public var isNull: Bool { rawKind == Kind.null.rawValue }
    @inlinable public var isObject: Bool { rawKind == Kind.object.rawValue }
    @inlinable public var isArray: Bool { rawKind == Kind.array.rawValue }

    @inlinable public var bool: Bool? {
        switch rawKind {
        case Kind.yes.rawValue: true
        case Kind.no.rawValue: false
        default: nil
        }
    }

    /// An integer written without point and exponent, within Int64.
    @inlinable public var int: Int64? {
        guard rawKind == Kind.integer.rawValue else { return nil }
        return Int64(bitPattern: view.pointee.tape[index &+ 1])
    }

    /// Any number within Double's range.
    public var double: Double? {
        let bits = view.pointee.tape[index &+ 1]
        return switch kind {
        case .integer: Double(Int64(bitPattern: bits))
        case .unsigned: Double(bits)
        case .fraction: Double(numberText ?? "")
        default: nil
        }
    }

    /// A string's bytes, unescaped UTF-8.
    @inlinable public var utf8: UnsafeBufferPointer<UInt8>? {
        guard rawKind == Kind.string.rawValue else { return nil }
        let start = view.pointee.strings + payload
        let count = Int(start.loadUnaligned(as: UInt32.self))
        return UnsafeBufferPointer(start: (start + 4).assumingMemoryBound(to: UInt8.self), count: count)
    }

    @inlinable public var string: String? { utf8.map(Self.text) }

    /// A text of bytes of the document, which the parser has checked to be UTF-8.
    @inlinable public static func text(_ utf8: UnsafeBufferPointer<UInt8>) -> String {
        String(copying: UTF8Span(unchecked: utf8.span))
    }

    /// Returns whether this is the string `text`.
    @inlinable public func isString(_ text: StaticString) -> Bool {
        guard let utf8, utf8.count == text.utf8CodeUnitCount else { return false }
        return text.withUTF8Buffer { $0.elementsEqual(utf8) }
    }

    /// Returns whether this is the string `text`.
    public func isString(_ text: String) -> Bool {
        guard let utf8 else { return false }
        return text.withUTF8Bytes { $0.elementsEqual(utf8) }
    }

    /// The position of the value in the parsed bytes, from 0.
    public var offset: Int { view.pointee.offset(at: index) }

    /// The text of a number, unchanged.
    public var numberText: String? {
        switch kind {
        case .integer:
            // These digits have one spelling only, except for a minus before a zero.
            if let int, int != 0 { return String(int) }
        case .unsigned, .fraction: break
        default: return nil
        }
        let source = view.pointee.source
        let start = min(offset, source.count)
        let rest = source[start...]
        let end = rest.firstIndex { !Self.isPartOfNumber($0) } ?? rest.endIndex
        return String(decoding: rest[start..<end], as: UTF8.self)
    }

    /// The place of a value below this one: `.push.force`, `.dnd.windows[1]`; nil if it is not below. A search, for errors only.
    public func path(to value: JSONCursor) -> String? {
        if value.index == index { return "" }
        guard value.index > index, value.index < next else { return nil }
        var members = members
        while let member = members.next() {
            if let rest = member.value.path(to: value) { return ".\(member.key.string ?? "")\(rest)" }
        }
        for (place, element) in elements.enumerated() {
            if let rest = element.path(to: value) { return "[\(place)]\(rest)" }
        }
        return nil
    }

    /// Size of the whole text in bytes.
    public var documentCount: Int { view.pointee.source.count }

    /// The original bytes of an object or array; nil for other kinds.
    ///
    /// Values that pass through unchanged are copied from here.
    public var sourceBytes: UnsafeRawBufferPointer? {
        guard isObject || isArray else { return nil }
        let source = view.pointee.source
        let start = offset
        let last = view.pointee.offset(at: next &- 1)
        guard start <= last, last < source.count else { return nil }
        return UnsafeRawBufferPointer(rebasing: source[start...last])
    }

    /// The value of an object's key; of a repeated key the last. A linear search: for one or two keys of a small
    /// object.
    public subscript(key: String) -> JSONCursor? {
        var found: JSONCursor?
        var members = members
        while let member = members.next() {
            if member.key.utf8?.elementsEqual(key.utf8) == true { found = member.value }
        }
        return found
    }

    /// The members of an object in order, repeated keys included; empty for other kinds.
    @inlinable public var members: Members {
        guard isObject else { return Members(view: view, index: 0, end: 0) }
        return Members(view: view, index: index &+ 1, end: next &- 1)
    }

    /// The elements of an array in order; empty for other kinds.
    @inlinable public var elements: Elements {
        guard isArray else { return Elements(view: view, index: 0, end: 0) }
        return Elements(view: view, index: index &+ 1, end: next &- 1)
    }

    /// The number of elements or members. simdjson counts up to 16,777,215.
    @inlinable public var count: Int {
        guard isObject || isArray else { return 0 }
        return Int(truncatingIfNeeded: (word &>> 32) & 0xFF_FFFF)
    }

    @frozen
    public struct Members: Sequence, IteratorProtocol {
        @usableFromInline let view: UnsafePointer<JSONView>
        @usableFromInline var index: Int
        @usableFromInline let end: Int

        @inlinable
        init(view: UnsafePointer<JSONView>, index: Int, end: Int) {
            self.view = view
            self.index = index
            self.end = end
        }

        @inlinable
        public mutating func next() -> (key: JSONCursor, value: JSONCursor)? {
            guard index < end else { return nil }
            let key = JSONCursor(view: view, index: index)
            let value = JSONCursor(view: view, index: index &+ 1)
            index = value.next
            return (key, value)
        }
    }

    @frozen
    public struct Elements: Sequence, IteratorProtocol {
        @usableFromInline let view: UnsafePointer<JSONView>
        @usableFromInline var index: Int
        @usableFromInline let end: Int

        @inlinable
        init(view: UnsafePointer<JSONView>, index: Int, end: Int) {
            self.view = view
            self.index = index
            self.end = end
        }

        @inlinable
        public mutating func next() -> JSONCursor? {
            guard index < end else { return nil }
            let value = JSONCursor(view: view, index: index)
            index = value.next
            return value
        }
    }

    private static func isPartOfNumber(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."),
            UInt8(ascii: "e"), UInt8(ascii: "E"):
            true
        default: false
        }
    }
}
