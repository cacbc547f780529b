import CRdkafka
import Telemetry

/// Writes records without blocking. Each accepted record gets exactly one delivery report.
///
/// Any thread may call `produce`. One thread at a time takes reports, usually a loop that watches `wakeFD`. Idempotent
/// with `acks=all`: inside librdkafka a retry neither duplicates nor reorders. Bounded by
/// `queue.buffering.max.messages` and `.kbytes`; when full, `queueFull` is returned and the caller backs off. Release
/// it after `flush`; unsent records are lost then, without reports.
///
/// Unchecked Sendable: librdkafka's producer is thread-safe, the topic cache has a mutex, and only the one polling
/// thread that `pollReports` requires uses the report cursor.
public final class KafkaProducer: @unchecked Sendable {
    let handle: ClientHandle
    private let queue: OpaquePointer
    private let known = Guarded<[String: KafkaTopic]>([:])
    /// A report batch that the last poll did not finish.
    private var openBatch: OpaquePointer?
    private var counts: [Int32: UInt64] = [:]

    /// Creates a producer. No broker needs to be reachable yet.
    public init(_ configuration: KafkaConfiguration) throws(KafkaFault) {
        handle = try ClientHandle(configuration, role: .producer) { conf in
            rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR)
        }
        guard let queue = rd_kafka_queue_get_main(handle.raw) else { throw .creation("no event queue") }
        self.queue = queue
        handle.wake.attach(to: queue)
    }

    deinit {
        WakeFD.detach(from: queue)
        if let openBatch { rd_kafka_event_destroy(openBatch) }
        known.withLock { $0 = [:] }
        rd_kafka_queue_destroy(queue)
    }

    /// The handle of a topic, created once per name; nil for an invalid name.
    ///
    /// Get it at start: the topic's first lookup takes up to a second, and the first record would wait for it.
    public func topic(_ name: String) -> KafkaTopic? {
        if name.isEmpty || name.utf8.count > 249 || name.contains("\0") { return nil }
        return known.withLock { known in
            if let topic = known[name] { return topic }
            guard let raw = rd_kafka_topic_new(handle.raw, name, nil) else { return nil }
            let topic = KafkaTopic(name: name, raw: raw, owner: handle)
            known[name] = topic
            return topic
        }
    }

    /// Copies the record into librdkafka's queue and returns at once.
    ///
    /// - Parameters:
    /// - key: nil for none. Equal keys go to the same partition, as with the Java client.
    /// - value: nil writes a null payload.
    /// - partition: nil selects it by the key.
    /// - timestampMs: Unix ms; nil for now.
    /// - opaque: returned in the delivery report.
    public func produce(
        to topic: KafkaTopic, key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?,
        headers: [KafkaHeader] = [], partition: Int32? = nil, timestampMs: Int64? = nil, opaque: UInt64 = 0
    ) -> ProduceOutcome {
        if headers.isEmpty, timestampMs == nil, let value, !value.isEmpty, key.map({ !$0.isEmpty }) ?? true {
            return producePlain(to: topic, key: key, value: value, partition: partition, opaque: opaque)
        }
        let nativeHeaders = headers.isEmpty ? nil : KafkaHeader.native(headers)
        let error = withUnsafeTemporaryAllocation(of: rd_kafka_vu_t.self, capacity: 8) { fields -> OpaquePointer? in
            var count = 0
            // An empty buffer may have no address, but a null pointer would mean a null key or value.
            let nonNull = UnsafeMutableRawPointer(mutating: UnsafeRawPointer(fields.baseAddress))
            func add(_ kind: rd_kafka_vtype_t, _ fill: (inout rd_kafka_vu_t) -> Void) {
                var field = rd_kafka_vu_t()
                field.vtype = kind
                fill(&field)
                fields.initializeElement(at: count, to: field)
                count += 1
            }
            add(RD_KAFKA_VTYPE_RKT) { $0.u.rkt = topic.raw }
            add(RD_KAFKA_VTYPE_MSGFLAGS) { $0.u.i = RD_KAFKA_MSG_F_COPY }
            add(RD_KAFKA_VTYPE_VALUE) {
                $0.u.mem.ptr = value.flatMap { UnsafeMutableRawPointer(mutating: $0.baseAddress) ?? nonNull }
                $0.u.mem.size = value?.count ?? 0
            }
            if let key {
                add(RD_KAFKA_VTYPE_KEY) {
                    $0.u.mem.ptr = UnsafeMutableRawPointer(mutating: key.baseAddress) ?? nonNull
                    $0.u.mem.size = key.count
                }
            }
            add(RD_KAFKA_VTYPE_OPAQUE) { $0.u.ptr = UnsafeMutableRawPointer(bitPattern: UInt(opaque)) }
            if let partition { add(RD_KAFKA_VTYPE_PARTITION) { $0.u.i32 = partition } }
            if let timestampMs { add(RD_KAFKA_VTYPE_TIMESTAMP) { $0.u.i64 = timestampMs } }
            if let nativeHeaders { add(RD_KAFKA_VTYPE_HEADERS) { $0.u.headers = nativeHeaders } }
            return rd_kafka_produceva(handle.raw, fields.baseAddress, count)
        }
        guard let error else { return .queued }
        defer { rd_kafka_error_destroy(error) }
        // The library owns the headers only after success.
        if let nativeHeaders { rd_kafka_headers_destroy(nativeHeaders) }
        let code = rd_kafka_error_code(error)
        if code == RD_KAFKA_RESP_ERR__QUEUE_FULL { return .queueFull }
        return .refused(KafkaError(code, text: String(cString: rd_kafka_error_string(error))))
    }

    /// The common case at half the cost: no headers, no own time, nothing empty.
    private func producePlain(
        to topic: KafkaTopic, key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer, partition: Int32?,
        opaque: UInt64
    ) -> ProduceOutcome {
        let code = rd_kafka_produce(
            topic.raw, partition ?? RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY,
            UnsafeMutableRawPointer(mutating: value.baseAddress), value.count, key?.baseAddress, key?.count ?? 0,
            UnsafeMutableRawPointer(bitPattern: UInt(opaque)))
        if code == 0 { return .queued }
        // The error of this thread; nothing was called in between.
        let error = rd_kafka_last_error()
        return error == RD_KAFKA_RESP_ERR__QUEUE_FULL ? .queueFull : .refused(KafkaError(error))
    }

    /// The same for Swift's own bytes.
    public func produce(
        to topic: KafkaTopic, keyBytes: [UInt8]?, valueBytes: [UInt8]?, headers: [KafkaHeader] = [],
        partition: Int32? = nil, timestampMs: Int64? = nil, opaque: UInt64 = 0
    ) -> ProduceOutcome {
        (keyBytes ?? []).withUnsafeBytes { key in
            (valueBytes ?? []).withUnsafeBytes { value in
                produce(
                    to: topic, key: keyBytes == nil ? nil : key, value: valueBytes == nil ? nil : value,
                    headers: headers, partition: partition, timestampMs: timestampMs, opaque: opaque)
            }
        }
    }

    /// Readable whenever `pollReports` has work. It belongs to the producer: watch it, never read or close it, and stop
    /// watching before the producer is released.
    public var wakeFD: Int32 { handle.wake.descriptor }

    /// Accepted records without a taken report, and other waiting events; 0 is exact. Any thread.
    public var pendingCount: Int { Int(rd_kafka_outq_len(handle.raw)) }

    /// Set once the producer has failed permanently. Create a new one (or exit 70). Any thread.
    public var fatalError: KafkaError? { handle.fatalError }

    /// Ends every accepted record without an acknowledgement: each is reported with an error and its contents.
    ///
    /// For a producer that has failed, before it is replaced. The broker may have some of the records. Does not block.
    /// Any thread.
    public func purge() {
        rd_kafka_purge(
            handle.raw, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING)
    }

    /// Errors other than failed deliveries by librdkafka's code; on the polling thread.
    public var errorCounts: [Int32: UInt64] { counts }

    /// Passes up to `max` delivery reports to `visit` and returns their number. One thread at a time, never blocks.
    ///
    /// If more is available, `wakeFD` becomes readable again. `visit` may produce, but must not poll.
    @discardableResult
    public func pollReports(max: Int, _ visit: (DeliveryReport) -> Void) -> Int {
        handle.wake.drain()
        var served = 0
        while served < max {
            guard let event = openBatch ?? rd_kafka_queue_poll(queue, 0) else { return served }
            openBatch = nil
            if rd_kafka_event_type(event) != RD_KAFKA_EVENT_DR {
                if rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR {
                    counts[rd_kafka_event_error(event).rawValue, default: 0] &+= 1
                }
                rd_kafka_event_destroy(event)
                continue
            }
            while served < max, let message = rd_kafka_event_message_next(event) {
                served += 1
                visit(DeliveryReport(message))
            }
            if served < max { rd_kafka_event_destroy(event) } else { openBatch = event }
        }
        handle.wake.signal()
        return served
    }

    /// Blocks until every accepted record was reported or `timeoutMs` passed. Returns true if nothing is pending.
    ///
    /// For shutdown and commands. Calls `visit` on this thread, which must be the polling one.
    public func flush(timeoutMs: Int, _ visit: (DeliveryReport) -> Void) -> Bool {
        let deadline = monotonicMs() + Int64(timeoutMs)
        while true {
            while pollReports(max: 1000, visit) > 0 {}
            if rd_kafka_outq_len(handle.raw) == 0 { return true }
            let left = deadline - monotonicMs()
            if left <= 0 { return false }
            // Ends the linger. The wait itself is ours, because reports are taken as events.
            rd_kafka_flush(handle.raw, 0)
            handle.wake.wait(milliseconds: Int32(clamping: min(left, 50)))
        }
    }
}
