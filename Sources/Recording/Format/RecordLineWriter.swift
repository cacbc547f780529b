// SPDX-License-Identifier: Apache-2.0
internal import Digits
internal import JSON

/// Writes records as lines that ``RecordLine`` reads. For one thread only.
public final class RecordLineWriter {
    /// The line is an object around the value, so the value may have one level less.
    private let parser = JSONParser(maxBytes: RecordLine.bytesMax, maxDepth: 31)

    public init() {}

    /// The line of one record, with its line end.
    public func bytes(of record: RecordLine) -> [UInt8] {
        var writer = JSONWriter(reservingCapacity: (record.key?.count ?? 0) + (record.value?.count ?? 0) + 96)
        writer.beginObject()
        if let topic = record.topic { writer.member("topic", topic) }
        if let key = record.key { put("key", "key_hex", key, &writer) }
        if let value = record.value {
            if isContainer(value) {
                writer.key("value")
                writer.raw(value)
            } else {
                put("value", "value_hex", value, &writer)
            }
        } else {
            writer.key("value")
            writer.null()
        }
        if let timestampMs = record.timestampMs { writer.member("timestamp_ms", timestampMs) }
        if !record.headers.isEmpty { put(record.headers, &writer) }
        writer.endObject()
        return writer.bytes + [0x0A]
    }

    private func put(_ headers: [RecordLine.Header], _ writer: inout JSONWriter) {
        writer.key("headers")
        writer.beginArray()
        for header in headers {
            writer.beginArray()
            writer.string(header.name)
            if let value = header.value {
                if let text = String(validating: value, as: UTF8.self) {
                    writer.string(text)
                } else {
                    writer.beginObject()
                    writer.member("hex", Hex.string(value))
                    writer.endObject()
                }
            } else {
                writer.null()
            }
            writer.endArray()
        }
        writer.endArray()
    }

    private func put(_ name: StaticString, _ hexName: StaticString, _ bytes: [UInt8], _ writer: inout JSONWriter) {
        if let text = String(validating: bytes, as: UTF8.self) {
            writer.member(name, text)
        } else {
            writer.member(hexName, Hex.string(bytes))
        }
    }

    /// - Returns: whether the value can be embedded as it is. A line break in it would end the line, and surrounding
    ///   white space would be lost.
    private func isContainer(_ bytes: [UInt8]) -> Bool {
        switch (bytes.first, bytes.last) {
        case (UInt8(ascii: "{"), UInt8(ascii: "}")), (UInt8(ascii: "["), UInt8(ascii: "]")): break
        default: return false
        }
        if bytes.contains(0x0A) || bytes.contains(0x0D) { return false }
        guard case .read(true) = parser.parse(bytes, { (root) throws(Never) in root.isObject || root.isArray }) else {
            return false
        }
        return true
    }
}
