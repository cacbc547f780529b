import CRdkafka

/// A record borrowed for one call.
///
/// It refers to librdkafka's buffer without a copy. Copy any data that must outlive the call. It cannot be stored.
public struct KafkaRecord: ~Copyable {
    private let message: UnsafeMutablePointer<rd_kafka_message_t>
    /// Its topic in the consumer's list, and its partition.
    public let partition: TopicPartition

    init(_ message: UnsafeMutablePointer<rd_kafka_message_t>, partition: TopicPartition) {
        self.message = message
        self.partition = partition
    }

    public var offset: Int64 { message.pointee.offset }

    /// Unix ms, of creation or append depending on the topic; nil if the broker keeps none.
    public var timestampMs: Int64? { timestamp?.ms }

    /// The same, and whether it is the broker's time of appending.
    public var timestamp: (ms: Int64, isAppendTime: Bool)? {
        var kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
        let time = rd_kafka_message_timestamp(message, &kind)
        if kind == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE || time < 0 { return nil }
        return (time, kind == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME)
    }

    /// Nil for a record without a key. An empty key is an empty buffer.
    public var key: UnsafeRawBufferPointer? {
        message.pointee.key.map { UnsafeRawBufferPointer(start: $0, count: message.pointee.key_len) }
    }

    /// Nil for a null payload (a tombstone), which is legal.
    public var value: UnsafeRawBufferPointer? {
        message.pointee.payload.map { UnsafeRawBufferPointer(start: $0, count: message.pointee.len) }
    }

    /// Bytes of key and value, as the ledger counts them.
    public var byteCount: Int { message.pointee.key_len &+ message.pointee.len }

    /// Visits the headers in order. The buffers are valid during each call. A nil value is a null header.
    public func forEachHeader(_ visit: (_ name: String, _ value: UnsafeRawBufferPointer?) -> Void) {
        KafkaHeader.forEach(of: message, visit)
    }

    /// The last header of that name as text, with invalid UTF-8 repaired; nil if absent or null.
    public func header(_ name: String) -> String? {
        var headers: OpaquePointer?
        guard rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR, let headers else { return nil }
        var value: UnsafeRawPointer?
        var size = 0
        guard rd_kafka_header_get_last(headers, name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        return value.map { String(decoding: UnsafeRawBufferPointer(start: $0, count: size), as: UTF8.self) }
    }
}
