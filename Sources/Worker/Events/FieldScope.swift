// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import JSON
import Payload
import PushCore

/// One object of a record with its path: reads its fields by the rules of contract section 0.
///
/// An absent or null field gives nil (or the default); one of the wrong type is a bad record.
struct FieldScope<Key: JSONKey> {
    let fields: JSONFields<Key>
    let path: StaticString

    @inline(__always)
    init(_ fields: JSONFields<Key>, path: StaticString) {
        self.fields = fields
        self.path = path
    }

    // Faults are created off the fast path: the byte offset costs a pass over the document.

    @inline(never)
    func fault(_ rule: BadRecord.Rule, _ why: String, _ key: Key, _ value: JSONCursor, item: Int? = nil) -> BadRecord {
        let place = item.map { "[\($0)]" } ?? ""
        return BadRecord(rule, why, at: "\(path).\(key.name)\(place)", byte: value.offset)
    }

    @inline(never)
    func missing(_ key: Key) -> BadRecord {
        BadRecord(.missing, "required field is missing", at: "\(path).\(key.name)", byte: fields.object.offset)
    }

    @inline(__always)
    func required(_ key: Key) throws(BadRecord) -> JSONCursor {
        guard let value = fields[key] else { throw missing(key) }
        return value
    }

    func object(_ key: Key) throws(BadRecord) -> JSONCursor? {
        guard let value = fields[key] else { return nil }
        guard value.isObject else { throw fault(.wrongType, "must be an object", key, value) }
        return value
    }

    /// A name or a word of at most `bytes` bytes, possibly empty.
    func string(_ key: Key, bytes: Int = InputLimit.name) throws(BadRecord) -> String? {
        guard let value = fields[key] else { return nil }
        return try string(value, key, bytes: bytes, item: nil)
    }

    func requiredString(_ key: Key, bytes: Int = InputLimit.name) throws(BadRecord) -> String {
        try string(try required(key), key, bytes: bytes, item: nil)
    }

    /// Like `string`; an empty one counts as absent.
    func filled(_ key: Key, bytes: Int = InputLimit.name) throws(BadRecord) -> String? {
        try string(key, bytes: bytes).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// A non-empty string of at most `bytes` bytes, because a cut identifier would be another one. `filled` reads an
    /// optional one.
    func requiredIdentifier(_ key: Key, bytes: Int = InputLimit.name) throws(BadRecord) -> String {
        let value = try required(key)
        let text = try string(value, key, bytes: bytes, item: nil)
        guard !text.isEmpty else { throw fault(.missing, "required field is empty", key, value) }
        return text
    }

    /// The limit comes first: no oversized text is compared, hashed or cut.
    @inline(__always)
    private func string(
        _ value: JSONCursor, _ key: Key, bytes: Int, item: Int?
    ) throws(BadRecord) -> String {
        guard let utf8 = value.utf8 else { throw fault(.wrongType, "must be a string", key, value, item: item) }
        guard utf8.count <= bytes else {
            throw fault(.longIdentifier, "longer than \(bytes) bytes", key, value, item: item)
        }
        return JSONCursor.text(utf8)
    }

    /// A string for people, cut to `limit` characters and the bytes that they may take (`TextCut`). A text that shows nothing
    /// is treated as absent. A record has many of them, and each copy of this code is fetched for each record.
    @inline(never)
    func text(_ key: Key, limit: Int) throws(BadRecord) -> String? {
        guard let value = fields[key] else { return nil }
        guard let utf8 = value.utf8 else { throw fault(.wrongType, "must be a string", key, value) }
        let text = JSONCursor.text(utf8)
        if BlankText.showsNothing(text) { return nil }
        return utf8.count <= limit ? text : TextCut.characters(text, limit: limit)
    }

    /// An object of texts for people, each cut as `text` cuts it. A null is absent.
    func texts(_ key: Key, limit: Int) throws(BadRecord) -> [UTF8Key: String] {
        guard let object = try object(key), case .object(let members)? = try value(key) else { return [:] }
        var texts: [UTF8Key: String] = [:]
        for member in members where !member.value.isNull {
            guard let text = member.value.string else {
                throw fault(.wrongType, "must hold strings only", key, object)
            }
            texts[UTF8Key(member.key)] = text.utf8.count <= limit ? text : TextCut.characters(text, limit: limit)
        }
        return texts
    }

    func bool(_ key: Key) throws(BadRecord) -> Bool? {
        guard let value = fields[key] else { return nil }
        guard let flag = value.bool else { throw fault(.wrongType, "must be true or false", key, value) }
        return flag
    }

    func int(_ key: Key) throws(BadRecord) -> Int64? {
        guard let value = fields[key] else { return nil }
        guard let number = value.int else { throw fault(.wrongType, "must be a 64-bit integer", key, value) }
        return number
    }

    func requiredInt(_ key: Key) throws(BadRecord) -> Int64 {
        guard let number = try int(key) else { throw missing(key) }
        return number
    }

    func int(_ key: Key, in range: ClosedRange<Int64>) throws(BadRecord) -> Int? {
        guard let number = try int(key) else { return nil }
        guard range.contains(number) else {
            throw outOfRange(key, "must be from \(range.lowerBound) to \(range.upperBound)")
        }
        return Int(number)
    }

    /// Unix milliseconds. A number before 1973 is in seconds. A later one than the year 9999 counts as its end, so that sums
    /// and differences of times never overflow.
    ///
    /// - Parameter mayBeZero: 0 has a meaning of its own.
    func time(_ key: Key, mayBeZero: Bool = false) throws(BadRecord) -> Int64? {
        guard let number = try int(key) else { return nil }
        guard number >= 0 else {
            throw outOfRange(key, "must be a Unix time in milliseconds")
        }
        guard number >= 100_000_000_000 || (mayBeZero && number == 0) else {
            throw fault(
                .seconds, "must be a Unix time in milliseconds, this one is in seconds", key,
                fields[key] ?? fields.object)
        }
        return min(number, 253_402_300_799_999)
    }

    func requiredTime(_ key: Key) throws(BadRecord) -> Int64 {
        guard let number = try time(key) else { throw missing(key) }
        return number
    }

    @inline(never)
    func outOfRange(_ key: Key, _ why: String) -> BadRecord {
        fault(.outOfRange, why, key, fields[key] ?? fields.object)
    }

    /// One word of a closed set; `words` names them all.
    func word<Word: RawRepresentable<String>>(
        _ key: Key, _ type: Word.Type, _ words: StaticString
    ) throws(BadRecord) -> Word? {
        guard let text = try string(key) else { return nil }
        guard let word = Word(rawValue: text) else { throw outOfRange(key, "must be one of \(words)") }
        return word
    }

    func requiredWord<Word: RawRepresentable<String>>(
        _ key: Key, _ type: Word.Type, _ words: StaticString
    ) throws(BadRecord) -> Word {
        guard let word = try word(key, type, words) else { throw missing(key) }
        return word
    }

    /// A list of users. Elements have no default, so null is no string there.
    func uids(
        _ key: Key, atMost most: Int = InputLimit.elements, mayBeEmpty: Bool = false
    ) throws(BadRecord) -> [String]? {
        try identifiers(key, bytes: InputLimit.user, atMost: most, mayBeEmpty: mayBeEmpty)
    }

    /// A list of identifiers, none of them empty.
    func identifiers(
        _ key: Key, bytes: Int, atMost most: Int, mayBeEmpty: Bool = false
    ) throws(BadRecord) -> [String]? {
        guard let value = try list(key, of: "strings", atMost: most, mayBeEmpty: mayBeEmpty) else { return nil }
        var list: [String] = []
        list.reserveCapacity(value.count)
        for element in value.elements {
            let text = try string(element, key, bytes: bytes, item: list.count)
            guard !text.isEmpty else { throw fault(.emptyList, "is empty", key, element, item: list.count) }
            list.append(text)
        }
        return list
    }

    func list(
        _ key: Key, of what: StaticString, atMost most: Int, mayBeEmpty: Bool = false
    ) throws(BadRecord) -> JSONCursor? {
        guard let value = fields[key] else { return nil }
        guard value.isArray else { throw fault(.wrongType, "must be a list of \(what)", key, value) }
        guard value.count <= most else { throw fault(.longList, "more than \(most) items", key, value) }
        guard mayBeEmpty || value.count > 0 else { throw fault(.emptyList, "is an empty list", key, value) }
        return value
    }

    /// An object that passes through unread.
    func value(_ key: Key) throws(BadRecord) -> JSONValue? {
        guard let object = try object(key) else { return nil }
        return try value(key, object)
    }

    /// A value that passes through unread: its keys and lists have the common limits.
    func value(_ key: Key, _ cursor: JSONCursor) throws(BadRecord) -> JSONValue {
        do throws(JSONValue.Unbounded) {
            return try JSONValue(cursor)
        } catch {
            let place = "\(path).\(key.name)"
            switch error {
            case .key(let byte):
                throw BadRecord(
                    .longIdentifier, "holds a key longer than \(InputLimit.name) bytes", at: place, byte: byte)
            case .list(let byte):
                throw BadRecord(
                    .longList, "holds more than \(InputLimit.elements) items", at: place, byte: byte)
            }
        }
    }

    // MARK: Tokens
    // Device tokens: whole bytes in hexadecimal, lower-cased, so that one token has one spelling.

    func hexToken(_ key: Key) throws(BadRecord) -> String { try hexToken(try required(key), key) }

    /// - Returns: nil if the field is absent.
    func hexTokens(_ key: Key, atMost most: Int) throws(BadRecord) -> [String]? {
        guard let value = try list(key, of: "strings", atMost: most) else { return nil }
        var list: [String] = []
        list.reserveCapacity(value.count)
        for element in value.elements { list.append(try hexToken(element, key, item: list.count)) }
        return list
    }

    private func hexToken(_ value: JSONCursor, _ key: Key, item: Int? = nil) throws(BadRecord) -> String {
        guard let utf8 = value.utf8 else { throw fault(.wrongType, "must be a string", key, value, item: item) }
        guard utf8.count <= DeviceToken.digitsMax else {
            throw fault(.longIdentifier, "longer than \(DeviceToken.digitsMax) bytes", key, value, item: item)
        }
        guard !utf8.isEmpty, utf8.count.isMultiple(of: 2), utf8.allSatisfy(Self.isHexDigit) else {
            throw fault(.outOfRange, "must be bytes in hexadecimal", key, value, item: item)
        }
        return String(unsafeUninitializedCapacity: utf8.count) { buffer in
            for (index, byte) in utf8.enumerated() {
                // Bit 5 turns A-F into a-f and leaves digits alone.
                buffer[index] = byte | 0x20
            }
            return utf8.count
        }
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }
}
