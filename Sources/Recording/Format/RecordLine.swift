// SPDX-License-Identifier: Apache-2.0
internal import Digits
public import JSON

/// One line of a recording: `{"topic":…,"key":…,"value":…,"timestamp_ms":…,"headers":[[name,value]…]}`.
///
/// A value that is a JSON object or array is embedded as it is. Any other text is a string, null is a null record, and
/// bytes that are not UTF-8 are hexadecimal in `value_hex` (`key_hex`). Headers are pairs in order: a text, null, or
/// `{"hex":…}`. A record without headers has no such member. ``RecordLineWriter`` writes these lines.
public struct RecordLine: Equatable, Sendable {
    /// Longest line that is read, in bytes.
    public static let bytesMax = 16 << 20

    public var topic: String?
    /// Nil for a record without a key.
    public var key: [UInt8]?
    /// Nil for a null record.
    public var value: [UInt8]?
    public var timestampMs: Int64?
    public var headers: [Header]

    /// A record's header. A nil value is Kafka's null, which differs from an empty value.
    public struct Header: Equatable, Sendable {
        public var name: String
        public var value: [UInt8]?

        public init(name: String, value: [UInt8]?) {
            self.name = name
            self.value = value
        }
    }

    /// A record of a megabyte never needs more headers. A line with more is not a recording's.
    public static let headersMax = 10_000

    public init(topic: String?, key: [UInt8]?, value: [UInt8]?, timestampMs: Int64?, headers: [Header] = []) {
        self.topic = topic
        self.key = key
        self.value = value
        self.timestampMs = timestampMs
        self.headers = headers
    }

    /// - Returns: nil if the line is not a JSON object with a `value` of these forms. The line is then an event by
    ///   itself.
    public init?(_ line: [UInt8], _ parser: JSONParser) {
        let parsed = parser.parse(line) { (root) throws(Never) -> RecordLine? in RecordLine(root) }
        guard case .read(let found?) = parsed else { return nil }
        self = found
    }

    private init?(_ root: JSONCursor) {
        guard root.isObject, root["kind"] == nil else { return nil }
        if let value = root["value"] {
            let bytes = value.sourceBytes.map { Array($0) } ?? value.utf8.map { Array($0) }
            // Only an explicit null makes a null record, because it deletes data in compacted topics.
            guard bytes != nil || value.isNull else { return nil }
            self.value = bytes
        } else if let hex = root["value_hex"]?.utf8, let bytes = Hex.bytes(hex) {
            value = bytes
        } else {
            return nil
        }
        key = root["key"]?.utf8.map { Array($0) } ?? root["key_hex"]?.utf8.flatMap { Hex.bytes($0) }
        topic = root["topic"]?.string
        timestampMs = root["timestamp_ms"]?.int
        guard let headers = Self.headers(root["headers"]) else { return nil }
        self.headers = headers
    }

    /// - Returns: nil for any other form, so that no header is dropped silently. Old recordings have no headers.
    private static func headers(_ list: JSONCursor?) -> [Header]? {
        guard let list, !list.isNull else { return [] }
        guard list.isArray, list.count <= headersMax else { return nil }
        var headers: [Header] = []
        for pair in list.elements {
            var parts = pair.elements
            guard pair.count == 2, let name = parts.next()?.string, let value = parts.next() else { return nil }
            if let text = value.utf8 {
                headers.append(Header(name: name, value: Array(text)))
            } else if let hex = value["hex"]?.utf8, let bytes = Hex.bytes(hex) {
                headers.append(Header(name: name, value: bytes))
            } else if value.isNull {
                headers.append(Header(name: name, value: nil))
            } else {
                return nil
            }
        }
        return headers
    }

    /// - Returns: whether a line looks like a recording's line but cannot be read as one. As an event it would only be
    ///   a bad event.
    public static func isBroken(_ line: [UInt8], _ parser: JSONParser) -> Bool {
        let parsed = parser.parse(line) { (root) throws(Never) in
            root.isObject && root["kind"] == nil && (root["value"] != nil || root["value_hex"] != nil)
                && RecordLine(root) == nil
        }
        guard case .read(let isBroken) = parsed else { return false }
        return isBroken
    }

    /// The record's own bytes, whether the line is a recording's line or the record itself.
    public static func value(in line: [UInt8]) -> [UInt8] {
        guard let record = RecordLine(line, JSONParser(maxBytes: bytesMax)) else { return line }
        return record.value ?? []
    }
}
