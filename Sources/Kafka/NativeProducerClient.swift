// SPDX-License-Identifier: Apache-2.0
import CRdkafka
import Telemetry

/// librdkafka's producer.
///
/// Unchecked Sendable: librdkafka's producer is thread-safe, and only the one polling thread that `pollReports` requires uses
/// the report cursor.
final class NativeProducerClient: ProducerClient, @unchecked Sendable {
    let handle: ClientHandle
    private let queue: OpaquePointer
    /// A report batch that the last poll did not finish.
    private var openBatch: OpaquePointer?
    private(set) var errorCounts: [Int32: UInt64] = [:]

    /// No broker needs to be reachable yet.
    init(_ configuration: KafkaConfiguration) throws(KafkaFault) {
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
        rd_kafka_queue_destroy(queue)
    }

    var steadyMs: Int64 { monotonicMs() }

    func makeTopic(_ name: String) -> KafkaTopic? {
        rd_kafka_topic_new(handle.raw, name, nil).map { KafkaTopic(name: name, raw: $0, owner: handle) }
    }

    func produce(
        to topic: KafkaTopic, key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, headers: [KafkaHeader],
        partition: Int32?, timestampMs: Int64?, opaque: UInt64
    ) -> ProduceOutcome {
        guard let raw = topic.raw else { return .refused(KafkaError(RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC)) }
        if headers.isEmpty, timestampMs == nil, let value, !value.isEmpty, key.map({ !$0.isEmpty }) ?? true {
            return producePlain(to: raw, key: key, value: value, partition: partition, opaque: opaque)
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
            add(RD_KAFKA_VTYPE_RKT) { $0.u.rkt = raw }
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
        to topic: OpaquePointer, key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer, partition: Int32?,
        opaque: UInt64
    ) -> ProduceOutcome {
        let code = rd_kafka_produce(
            topic, partition ?? RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY,
            UnsafeMutableRawPointer(mutating: value.baseAddress), value.count, key?.baseAddress, key?.count ?? 0,
            UnsafeMutableRawPointer(bitPattern: UInt(opaque)))
        if code == 0 { return .queued }
        // The error of this thread; nothing was called in between.
        let error = rd_kafka_last_error()
        return error == RD_KAFKA_RESP_ERR__QUEUE_FULL ? .queueFull : .refused(KafkaError(error))
    }

    var wakeFD: Int32 { handle.wake.descriptor }

    var pendingCount: Int { Int(rd_kafka_outq_len(handle.raw)) }

    var fatalError: KafkaError? { handle.fatalError }

    func purge() {
        rd_kafka_purge(
            handle.raw, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING)
    }

    func pollReports(max: Int, _ visit: (DeliveryReport) -> Void) -> Int {
        handle.wake.drain()
        var served = 0
        while served < max {
            guard let event = openBatch ?? rd_kafka_queue_poll(queue, 0) else { return served }
            openBatch = nil
            if rd_kafka_event_type(event) != RD_KAFKA_EVENT_DR {
                if rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR {
                    errorCounts[rd_kafka_event_error(event).rawValue, default: 0] &+= 1
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

    func endLinger() { rd_kafka_flush(handle.raw, 0) }

    func wait(milliseconds: Int32) { handle.wake.wait(milliseconds: milliseconds) }
}
