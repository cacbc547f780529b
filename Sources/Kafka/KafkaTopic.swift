// SPDX-License-Identifier: Apache-2.0
import CRdkafka

/// A producer's handle of one topic. Keep it, so that producing needs no lookup.
///
/// Unchecked Sendable: immutable, and librdkafka's topic handles are thread-safe.
public final class KafkaTopic: @unchecked Sendable {
    public let name: String
    /// Nil for a topic of a model.
    let raw: OpaquePointer?
    /// A topic handle must not outlive its client.
    private let owner: ClientHandle?

    init(name: String, raw: OpaquePointer, owner: ClientHandle) {
        self.name = name
        self.raw = raw
        self.owner = owner
    }

    /// A topic of a model.
    package init(name: String) {
        self.name = name
        raw = nil
        owner = nil
    }

    deinit {
        if let raw { rd_kafka_topic_destroy(raw) }
    }
}

/// A record's header. A nil value is Kafka's null, which differs from an empty value.
public struct KafkaHeader: Equatable, Sendable {
    public let name: String
    public let value: [UInt8]?

    public init(name: String, value: [UInt8]?) {
        self.name = name
        self.value = value
    }

    public init(name: String, text: String) {
        self.init(name: name, value: Array(text.utf8))
    }

    /// Visits the headers of a message in order. The buffers are valid during each call.
    static func forEach(
        of message: UnsafePointer<rd_kafka_message_t>,
        _ visit: (_ name: String, _ value: UnsafeRawBufferPointer?) -> Void
    ) {
        var headers: OpaquePointer?
        guard rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR, let headers else { return }
        forEach(in: headers, visit)
    }

    /// The same for one of librdkafka's lists.
    static func forEach(in headers: OpaquePointer, _ visit: (_ name: String, _ value: UnsafeRawBufferPointer?) -> Void)
    {
        var index = 0
        var name: UnsafePointer<CChar>?
        var value: UnsafeRawPointer?
        var size = 0
        while rd_kafka_header_get_all(headers, index, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR {
            index += 1
            guard let name else { continue }
            visit(String(cString: name), value.map { UnsafeRawBufferPointer(start: $0, count: size) })
        }
    }

    /// One of librdkafka's lists with copies of these, which the caller destroys or passes to the library. A name ends
    /// at its first NUL.
    static func native(_ headers: [KafkaHeader]) -> OpaquePointer? {
        guard let native = rd_kafka_headers_new(headers.count) else { return nil }
        for header in headers {
            let code = header.name.withCString { name in
                (header.value ?? []).withUnsafeBytes { bytes in
                    rd_kafka_header_add(
                        native, name, -1,
                        header.value == nil ? nil : bytes.baseAddress ?? UnsafeRawPointer(name), bytes.count)
                }
            }
            if code != RD_KAFKA_RESP_ERR_NO_ERROR { break }
        }
        return native
    }

    static func all(of message: UnsafePointer<rd_kafka_message_t>) -> [KafkaHeader] {
        var all: [KafkaHeader] = []
        forEach(of: message) { name, value in all.append(KafkaHeader(name: name, value: value.map { Array($0) })) }
        return all
    }
}

/// The result of a call to `produce`.
public enum ProduceOutcome: Equatable, Sendable {
    /// Accepted. A delivery report will come.
    case queued
    /// The bounded queue is full; nothing was taken. Try again after reports arrived.
    case queueFull
    /// Can never be written in this form (too large, unknown partition, failed client); nothing was taken.
    case refused(KafkaError)
}

/// The end of one accepted record.
public struct DeliveryReport: Sendable {
    /// The value given to `produce`.
    public let opaque: UInt64
    public let partition: Int32
    /// The offset; nil if it failed, or if unknown after an idempotent retry.
    public let offset: Int64?
    /// Nil for success: stored as `acks=all` guarantees.
    public let error: KafkaError?
    /// The record that could not be written, for another attempt; nil after success.
    public let failedRecord: FailedRecord?

    /// A copy of a record that the broker did not accept.
    public struct FailedRecord: Sendable {
        public let topic: String
        public let key: [UInt8]?
        public let value: [UInt8]?
        public let headers: [KafkaHeader]

        package init(topic: String, key: [UInt8]?, value: [UInt8]?, headers: [KafkaHeader]) {
            self.topic = topic
            self.key = key
            self.value = value
            self.headers = headers
        }

        init(_ message: UnsafePointer<rd_kafka_message_t>) {
            let record = message.pointee
            topic = record.rkt.flatMap { rd_kafka_topic_name($0) }.map { String(cString: $0) } ?? ""
            key = record.key.map { Array(UnsafeRawBufferPointer(start: $0, count: record.key_len)) }
            value = record.payload.map { Array(UnsafeRawBufferPointer(start: $0, count: record.len)) }
            headers = KafkaHeader.all(of: message)
        }
    }

    package init(
        opaque: UInt64, partition: Int32, offset: Int64?, error: KafkaError? = nil, failedRecord: FailedRecord? = nil
    ) {
        self.opaque = opaque
        self.partition = partition
        self.offset = offset
        self.error = error
        self.failedRecord = failedRecord
    }

    init(_ message: UnsafePointer<rd_kafka_message_t>) {
        opaque = UInt64(UInt(bitPattern: message.pointee._private))
        partition = message.pointee.partition
        let code = message.pointee.err
        error = code == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : KafkaError(code)
        offset = error == nil && message.pointee.offset >= 0 ? message.pointee.offset : nil
        failedRecord = error == nil ? nil : FailedRecord(message)
    }
}
