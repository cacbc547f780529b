// SPDX-License-Identifier: Apache-2.0
import CRdkafka

/// A record borrowed for one call.
///
/// It refers to the client's buffer without a copy. Copy any data that must outlive the call. It cannot be stored.
public struct KafkaRecord: ~Copyable {
    /// Its topic in the consumer's list, and its partition.
    public let partition: TopicPartition
    public let offset: Int64
    /// Unix ms, and whether it is the broker's time of appending; nil if the record has none.
    public let timestamp: (ms: Int64, isAppendTime: Bool)?
    /// Whether the record has a time that is not in milliseconds. Such a time counts as absent.
    public let hasOddTime: Bool
    /// Nil for a record without a key. An empty key is an empty buffer.
    public let key: UnsafeRawBufferPointer?
    /// Nil for a null payload (a tombstone), which is legal.
    public let value: UnsafeRawBufferPointer?
    /// librdkafka parses the headers when they are asked for. Nil for a record of a model.
    private let message: UnsafeMutablePointer<rd_kafka_message_t>?

    init(_ message: UnsafeMutablePointer<rd_kafka_message_t>, partition: TopicPartition) {
        self.message = message
        self.partition = partition
        let fields = message.pointee
        offset = fields.offset
        key = fields.key.map { UnsafeRawBufferPointer(start: $0, count: fields.key_len) }
        value = fields.payload.map { UnsafeRawBufferPointer(start: $0, count: fields.len) }
        let time = Self.time(of: message)
        timestamp = Self.usable(time)
        hasOddTime = time != nil && timestamp == nil
    }

    /// Times below it are not Unix milliseconds: the same number of milliseconds is a day of 1973, and the same number of seconds
    /// a day of the year 5138.
    static let earliestMs: Int64 = 100_000_000_000

    /// As the broker gives it.
    private static func time(
        of message: UnsafeMutablePointer<rd_kafka_message_t>
    ) -> (ms: Int64, isAppendTime: Bool)? {
        var kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
        let time = rd_kafka_message_timestamp(message, &kind)
        let hasTime = kind != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE && time >= 0
        return hasTime ? (time, kind == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME) : nil
    }

    @inline(__always)
    private static func usable(_ time: (ms: Int64, isAppendTime: Bool)?) -> (ms: Int64, isAppendTime: Bool)? {
        guard let time, time.ms >= earliestMs else { return nil }
        return time
    }

    /// The time of a record that is not borrowed.
    static func timeMs(of message: UnsafeMutablePointer<rd_kafka_message_t>) -> Int64? { usable(time(of: message))?.ms }

    /// A record of a model, without headers.
    package init(
        partition: TopicPartition, offset: Int64, timestamp: (ms: Int64, isAppendTime: Bool)?,
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?
    ) {
        self.partition = partition
        self.offset = offset
        self.timestamp = Self.usable(timestamp)
        hasOddTime = timestamp != nil && self.timestamp == nil
        self.key = key
        self.value = value
        message = nil
    }

    /// Unix ms, of creation or append depending on the topic; nil if the record has none.
    public var timestampMs: Int64? { timestamp?.ms }

    /// Bytes of key and value, as the ledger counts them.
    public var byteCount: Int { (key?.count ?? 0) &+ (value?.count ?? 0) }

    /// Visits the headers in order. The buffers are valid during each call. A nil value is a null header.
    public func forEachHeader(_ visit: (_ name: String, _ value: UnsafeRawBufferPointer?) -> Void) {
        if let message { KafkaHeader.forEach(of: message, visit) }
    }

    /// The last header of that name as text, with invalid UTF-8 repaired; nil if absent or null.
    public func header(_ name: String) -> String? {
        var headers: OpaquePointer?
        guard let message, rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR, let headers else {
            return nil
        }
        var value: UnsafeRawPointer?
        var size = 0
        guard rd_kafka_header_get_last(headers, name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        return value.map { String(decoding: UnsafeRawBufferPointer(start: $0, count: size), as: UTF8.self) }
    }
}
