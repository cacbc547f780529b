import Digits
import JSON
import Kafka

/// One line of a recording: `{"topic":…,"key":…,"value":…,"timestamp_ms":…}`.
///
/// A value that is a JSON object or array stands as it is; any other text is a string, null a null record, and bytes
/// that are no UTF-8 stand in hexadecimal as `value_hex` (`key_hex`).
struct RecordLine {
    var topic: String?
    var key: [UInt8]?
    var value: [UInt8]?
    var timestampMs: Int64?

    // MARK: - Writing

    /// The line of one record, with its end.
    static func bytes(of record: borrowing KafkaRecord, topic: String, _ parser: JSONParser) -> [UInt8] {
        var writer = JSONWriter(reservingCapacity: record.byteCount + 96)
        writer.beginObject()
        writer.member("topic", topic)
        if let key = record.key { put("key", "key_hex", Array(key), nil, &writer) }
        if let value = record.value {
            put("value", "value_hex", Array(value), parser, &writer)
        } else {
            writer.key("value")
            writer.null()
        }
        if let timestampMs = record.timestampMs { writer.member("timestamp_ms", timestampMs) }
        writer.endObject()
        return writer.bytes + [0x0A]
    }

    private static func put(
        _ name: StaticString, _ hexName: StaticString, _ bytes: [UInt8], _ parser: JSONParser?,
        _ writer: inout JSONWriter
    ) {
        if let parser, isContainer(bytes, parser) {
            writer.key(name)
            writer.raw(bytes)
        } else if let text = String(validating: bytes, as: UTF8.self) {
            writer.member(name, text)
        } else {
            writer.member(hexName, Hex.string(bytes))
        }
    }

    /// A line break within the object would end the line: such a value goes as a string.
    private static func isContainer(_ bytes: [UInt8], _ parser: JSONParser) -> Bool {
        guard let first = bytes.first, first == UInt8(ascii: "{") || first == UInt8(ascii: "["),
            !bytes.contains(0x0A), !bytes.contains(0x0D)
        else { return false }
        guard case .read(true) = parser.parse(bytes, { (root) throws(Never) in root.isObject || root.isArray }) else {
            return false
        }
        return true
    }

    // MARK: - Reading

    /// Nil: no JSON object with a `value`, so the line is an event by itself.
    init?(_ line: [UInt8], _ parser: JSONParser) {
        let parsed = parser.parse(line) { (root) throws(Never) -> RecordLine? in RecordLine(root) }
        guard case .read(let found?) = parsed else { return nil }
        self = found
    }

    private init?(_ root: JSONCursor) {
        guard root.isObject, root["kind"] == nil else { return nil }
        if let value = root["value"] {
            self.value = value.isNull ? nil : value.sourceBytes.map { Array($0) } ?? value.utf8.map { Array($0) }
        } else if let hex = root["value_hex"]?.string {
            value = Hex.bytes(hex.utf8)
        } else {
            return nil
        }
        key = root["key"]?.utf8.map { Array($0) } ?? root["key_hex"]?.string.flatMap { Hex.bytes($0.utf8) }
        topic = root["topic"]?.string
        timestampMs = root["timestamp_ms"]?.int
    }

    /// The record's own bytes, whether the line is a recording's or the record itself.
    static func value(in line: [UInt8]) -> [UInt8] {
        guard let record = RecordLine(line, JSONParser(maxBytes: 4 << 20)) else { return line }
        return record.value ?? []
    }
}
