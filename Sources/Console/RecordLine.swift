internal import Digits
public import JSON

/// One line of a recording: `{"topic":…,"key":…,"value":…,"timestamp_ms":…}`.
///
/// A value that is a JSON object or array stands as it is; any other text is a string, null a null record, and bytes
/// that are no UTF-8 stand in hexadecimal as `value_hex` (`key_hex`). Written by ``RecordLineWriter``.
public struct RecordLine: Equatable {
    /// Longest line that is read, in bytes.
    public static let bytesMax = 16 << 20

    public var topic: String?
    /// Nil: a record without key.
    public var key: [UInt8]?
    /// Nil: a null record.
    public var value: [UInt8]?
    public var timestampMs: Int64?

    public init(topic: String?, key: [UInt8]?, value: [UInt8]?, timestampMs: Int64?) {
        self.topic = topic
        self.key = key
        self.value = value
        self.timestampMs = timestampMs
    }

    /// Nil: no JSON object with a `value` of those forms, so the line is an event by itself.
    public init?(_ line: [UInt8], _ parser: JSONParser) {
        let parsed = parser.parse(line) { (root) throws(Never) -> RecordLine? in RecordLine(root) }
        guard case .read(let found?) = parsed else { return nil }
        self = found
    }

    private init?(_ root: JSONCursor) {
        guard root.isObject, root["kind"] == nil else { return nil }
        if let value = root["value"] {
            let bytes = value.sourceBytes.map { Array($0) } ?? value.utf8.map { Array($0) }
            // A null record is one by its word only: it deletes where topics are compacted.
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
    }

    /// The record's own bytes, whether the line is a recording's or the record itself.
    public static func value(in line: [UInt8]) -> [UInt8] {
        guard let record = RecordLine(line, JSONParser(maxBytes: bytesMax)) else { return line }
        return record.value ?? []
    }
}
