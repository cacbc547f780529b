// SPDX-License-Identifier: Apache-2.0
import CRdkafka
import Telemetry

/// The result of one query to a cluster by one of its addresses. Control plane, for `check`.
public struct BrokerLook: Sendable {
    /// Nil if nothing answered.
    public let metadata: ClusterMetadata?
    /// Problems that the client met, even if it got an answer in the end.
    public let troubles: [KafkaTrouble]

    /// Asks only the broker at `address` for its cluster, with a client that lives for this query. Blocks up to
    /// `patienceMs` and a second: never call it on a loop. It creates and changes nothing.
    ///
    /// The client is an idempotent producer like the worker's, so that a right missing for that is found too.
    ///
    /// - Parameter address: `host:port`.
    public static func ask(
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
        // A name may have several addresses and the first may refuse: a problem gets one more time slice.
        var slicesLeft = 2
        while metadata == nil, slicesLeft > 0, monotonicMs() < deadline {
            metadata = try? ClusterMetadata.fetch(handle, timeoutMs: min(sliceMs, patienceMs))
            takeErrors(waitMs: 0)
            if !troubles.all.isEmpty { slicesLeft -= 1 }
        }
        // The client requests a producer id as soon as it has a connection.
        if metadata != nil { takeErrors(waitMs: 200) }
        return BrokerLook(metadata: metadata, troubles: troubles.all)
    }

    private static let sliceMs = 1_000
}

extension KafkaError {
    /// Creates it from an error event.
    init(_ event: OpaquePointer) {
        let text = rd_kafka_event_error_string(event).map { String(cString: $0) }
        self.init(rd_kafka_event_error(event), text: text)
    }
}
