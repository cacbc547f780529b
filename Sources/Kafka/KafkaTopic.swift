import CRdkafka

/// A producer's handle of one topic; keep it, so that producing needs no lookup.
///
/// Unchecked Sendable: immutable, and librdkafka's topic handles are thread-safe.
public final class KafkaTopic: @unchecked Sendable {
    public let name: String
    let raw: OpaquePointer
    /// A topic handle must not outlive its client.
    private let owner: ClientHandle

    init(name: String, raw: OpaquePointer, owner: ClientHandle) {
        self.name = name
        self.raw = raw
        self.owner = owner
    }

    deinit { rd_kafka_topic_destroy(raw) }
}

/// A record's header; a nil value is Kafka's null, not an empty one.
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

    /// Visits the headers of a message in their order; the buffers are valid during each call.
    static func forEach(
        of message: UnsafePointer<rd_kafka_message_t>,
        _ visit: (_ name: String, _ value: UnsafeRawBufferPointer?) -> Void
    ) {
        var headers: OpaquePointer?
        guard rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR, let headers else { return }
        forEach(in: headers, visit)
    }

    /// The same for a list of librdkafka's.
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

    /// A list of librdkafka's with copies of these, to be destroyed or given to the library; a name ends at its first NUL.
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

/// What became of a call to `produce`.
public enum ProduceOutcome: Equatable, Sendable {
    /// Accepted; a delivery report will come.
    case queued
    /// The bounded queue is full; nothing was taken. Try again after reports arrived.
    case queueFull
    /// Can never be written like this (too large, unknown partition, fatal client); nothing was taken.
    case refused(KafkaError)
}

/// How one accepted record ended.
public struct DeliveryReport: Sendable {
    /// What `produce` was given.
    public let opaque: UInt64
    public let partition: Int32
    /// Where the broker put it; nil when it failed, or is unknown after an idempotent retry.
    public let offset: Int64?
    /// Nil is success: on disk as far as `acks=all` promises.
    public let error: KafkaError?
    /// What could not be written, for another try; nil after success.
    public let failedRecord: FailedRecord?

    /// A copy of a record that the broker did not take.
    public struct FailedRecord: Sendable {
        public let topic: String
        public let key: [UInt8]?
        public let value: [UInt8]?
        public let headers: [KafkaHeader]

        init(_ message: UnsafePointer<rd_kafka_message_t>) {
            let record = message.pointee
            topic = record.rkt.flatMap { rd_kafka_topic_name($0) }.map { String(cString: $0) } ?? ""
            key = record.key.map { Array(UnsafeRawBufferPointer(start: $0, count: record.key_len)) }
            value = record.payload.map { Array(UnsafeRawBufferPointer(start: $0, count: record.len)) }
            headers = KafkaHeader.all(of: message)
        }
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
