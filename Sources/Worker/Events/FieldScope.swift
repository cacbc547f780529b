import JSON
import PushCore

/// One object of a record with the path to it: reads its fields by the rules of contract section 0.
///
/// A field that is absent or null gives nil (or the default); one of another type than its own is a bad record.
struct FieldScope<Key: JSONKey> {
    let fields: JSONFields<Key>
    let path: StaticString

    @inline(__always)
    init(_ fields: JSONFields<Key>, path: StaticString) {
        self.fields = fields
        self.path = path
    }

    // Faults are made off the fast path: the byte offset costs a pass over the document.

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

    func string(_ key: Key) throws(BadRecord) -> String? {
        guard let value = fields[key] else { return nil }
        guard let text = value.string else { throw fault(.wrongType, "must be a string", key, value) }
        return text
    }

    func requiredString(_ key: Key) throws(BadRecord) -> String {
        guard let text = try string(key) else { throw missing(key) }
        return text
    }

    /// A string of at most `limit` characters, not empty: an identifier that were cut would be another one.
    func identifier(_ key: Key, limit: Int) throws(BadRecord) -> String? {
        guard let value = fields[key] else { return nil }
        return try identifier(value, key, limit: limit, item: nil)
    }

    func requiredIdentifier(_ key: Key, limit: Int) throws(BadRecord) -> String {
        let value = try required(key)
        return try identifier(value, key, limit: limit, item: nil)
    }

    private func identifier(
        _ value: JSONCursor, _ key: Key, limit: Int, item: Int?
    ) throws(BadRecord) -> String {
        guard let utf8 = value.utf8 else { throw fault(.wrongType, "must be a string", key, value, item: item) }
        guard !utf8.isEmpty else { throw fault(.missing, "required field is empty", key, value, item: item) }
        let text = String(decoding: utf8, as: UTF8.self)
        // No text has more characters than bytes.
        guard utf8.count <= limit || text.count <= limit else {
            throw fault(.longIdentifier, "longer than \(limit) characters", key, value, item: item)
        }
        return text
    }

    /// A word of at most `bytes` bytes; empty it clears what was there.
    func clearable(_ key: Key, bytes: Int) throws(BadRecord) -> String? {
        guard let value = fields[key] else { return nil }
        guard let utf8 = value.utf8 else { throw fault(.wrongType, "must be a string", key, value) }
        guard utf8.count <= bytes else { throw fault(.longIdentifier, "longer than \(bytes) bytes", key, value) }
        return String(decoding: utf8, as: UTF8.self)
    }

    /// An identifier that is counted in bytes; empty is the same as absent.
    func identifier(_ key: Key, bytes: Int) throws(BadRecord) -> String? {
        try clearable(key, bytes: bytes).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// A string for people, cut to `limit` characters.
    func text(_ key: Key, limit: Int) throws(BadRecord) -> String? {
        guard let value = fields[key] else { return nil }
        guard let utf8 = value.utf8 else { throw fault(.wrongType, "must be a string", key, value) }
        let text = String(decoding: utf8, as: UTF8.self)
        return utf8.count <= limit ? text : text.cut(toCharacters: limit)
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

    /// Unix milliseconds. Bounded to the years 1970-9999, so that sums and differences of times never overflow.
    func time(_ key: Key) throws(BadRecord) -> Int64? {
        guard let number = try int(key) else { return nil }
        guard number >= 0, number <= 253_402_300_799_999 else {
            throw outOfRange(key, "must be a Unix time in milliseconds")
        }
        return number
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

    /// A list of strings. Elements have no default, so null is no string there.
    func strings(_ key: Key, limit: Int = .max) throws(BadRecord) -> [String]? {
        guard let value = fields[key] else { return nil }
        guard value.isArray else { throw fault(.wrongType, "must be a list of strings", key, value) }
        var list: [String] = []
        list.reserveCapacity(min(value.count, limit))
        for element in value.elements {
            guard let text = element.string else {
                throw fault(.wrongType, "must be a string", key, element, item: list.count)
            }
            guard list.count < limit else { throw fault(.longList, "more than \(limit) items", key, value) }
            list.append(text)
        }
        return list
    }

    func identifiers(_ key: Key, limit: Int) throws(BadRecord) -> [String]? {
        guard let value = fields[key] else { return nil }
        guard value.isArray else { throw fault(.wrongType, "must be a list of strings", key, value) }
        var list: [String] = []
        list.reserveCapacity(value.count)
        for element in value.elements {
            list.append(try identifier(element, key, limit: limit, item: list.count))
        }
        return list
    }

    /// An object that travels through unread.
    func value(_ key: Key) throws(BadRecord) -> JSONValue? {
        try object(key).map { JSONValue($0) }
    }
}

extension String {
    /// At most `limit` characters, the last of them `…` where something was cut off.
    func cut(toCharacters limit: Int) -> String {
        guard let end = index(startIndex, offsetBy: limit, limitedBy: endIndex), end < endIndex else { return self }
        return self[..<index(before: end)] + "…"
    }
}
