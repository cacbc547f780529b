import CRdkafka
import Telemetry

/// What one look at a cluster by one of its addresses told; control plane, for `check`.
public struct BrokerLook: Sendable {
    /// Nil: nobody answered there.
    public let metadata: ClusterMetadata?
    /// What the client met; also where it was answered after all.
    public let troubles: [KafkaTrouble]

    /// Asks the broker at `address` alone for its cluster, by a client of its own that ends with the look. Blocks up to
    /// `patienceMs` and a second: never call it on a loop. It creates and changes nothing.
    ///
    /// The client is an idempotent producer as the worker's, so that a right which that one lacks is met too.
    ///
    /// - Parameter address: `host:port`.
    public static func look(
        at address: String, _ configuration: KafkaConfiguration, patienceMs: Int = 5_000
    ) throws(KafkaFault) -> BrokerLook {
        let lines = Guarded<[KafkaLogLine]>([])
        var own = configuration
        own.brokers = address
        own.log = { line in if line.facility == CertificateRefusal.facility { lines.withLock { $0.append(line) } } }
        let handle = try ClientHandle(own, role: .producer) { conf in
            rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_ERROR)
            CertificateRefusal.tellWords(conf)
        }
        guard let queue = rd_kafka_queue_get_main(handle.raw) else { throw .creation("no event queue") }
        defer { rd_kafka_queue_destroy(queue) }
        var troubles = TroubleList()
        func takeErrors(waitMs: Int32) {
            while let event = rd_kafka_queue_poll(queue, waitMs) {
                defer { rd_kafka_event_destroy(event) }
                troubles.add(KafkaError(event), lines: lines.withLock { $0 })
            }
        }
        let deadline = monotonicMs() + Int64(patienceMs)
        var metadata: ClusterMetadata?
        // A name may have several addresses, of which the first is refused: a trouble gets one slice more.
        var slicesLeft = 2
        while metadata == nil, slicesLeft > 0, monotonicMs() < deadline {
            metadata = try? ClusterMetadata.fetch(handle, timeoutMs: min(sliceMs, patienceMs))
            takeErrors(waitMs: 0)
            if !troubles.all.isEmpty { slicesLeft -= 1 }
        }
        // The producer's number is asked for as soon as there is a connection.
        if metadata != nil { takeErrors(waitMs: 200) }
        return BrokerLook(metadata: metadata, troubles: troubles.all)
    }

    private static let sliceMs = 1_000
}

extension KafkaError {
    /// Of an event that is an error.
    init(_ event: OpaquePointer) {
        let text = rd_kafka_event_error_string(event).map { String(cString: $0) }
        self.init(rd_kafka_event_error(event), text: text)
    }
}
