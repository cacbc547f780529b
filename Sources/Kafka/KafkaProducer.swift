// SPDX-License-Identifier: Apache-2.0
import Telemetry

/// Writes records without blocking. Each accepted record gets exactly one delivery report.
///
/// Any thread may call `produce`. One thread at a time takes reports, usually a loop that watches `wakeFD`. Idempotent
/// with `acks=all`: inside librdkafka a retry neither duplicates nor reorders. Bounded by
/// `queue.buffering.max.messages` and `.kbytes`; when full, `queueFull` is returned and the caller backs off. Release
/// it after `flush`; unsent records are lost then, without reports.
public final class KafkaProducer: Sendable {
    let client: any ProducerClient
    private let known = Guarded<[String: KafkaTopic]>([:])

    /// Creates a producer. No broker needs to be reachable yet.
    public convenience init(_ configuration: KafkaConfiguration) throws(KafkaFault) {
        self.init(try NativeProducerClient(configuration))
    }

    package init(_ client: any ProducerClient) { self.client = client }

    /// The handle of a topic, created once per name; nil for an invalid name.
    ///
    /// Get it at start: the topic's first lookup takes up to a second, and the first record would wait for it.
    public func topic(_ name: String) -> KafkaTopic? {
        if name.isEmpty || name.utf8.count > 249 || name.contains("\0") { return nil }
        return known.withLock { known in
            if let topic = known[name] { return topic }
            guard let topic = client.makeTopic(name) else { return nil }
            known[name] = topic
            return topic
        }
    }

    /// Copies the record into librdkafka's queue and returns at once.
    ///
    /// - Parameters:
    ///   - key: nil for none. Equal keys go to the same partition, as with the Java client.
    ///   - value: nil writes a null payload.
    ///   - partition: nil selects it by the key.
    ///   - timestampMs: Unix ms; nil for now.
    ///   - opaque: returned in the delivery report.
    public func produce(
        to topic: KafkaTopic, key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?,
        headers: [KafkaHeader] = [], partition: Int32? = nil, timestampMs: Int64? = nil, opaque: UInt64 = 0
    ) -> ProduceOutcome {
        client.produce(
            to: topic, key: key, value: value, headers: headers, partition: partition, timestampMs: timestampMs,
            opaque: opaque)
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
    public var wakeFD: Int32 { client.wakeFD }

    /// Accepted records without a taken report, and other waiting events; 0 is exact. Any thread.
    public var pendingCount: Int { client.pendingCount }

    /// Set once the producer has failed permanently. Create a new one (or exit 70). Any thread.
    public var fatalError: KafkaError? { client.fatalError }

    /// Ends every accepted record without an acknowledgement: each is reported with an error and its contents.
    ///
    /// For a producer that has failed, before it is replaced. The broker may have some of the records. Does not block.
    /// Any thread.
    public func purge() { client.purge() }

    /// Errors other than failed deliveries by librdkafka's code; on the polling thread.
    public var errorCounts: [Int32: UInt64] { client.errorCounts }

    /// Passes up to `max` delivery reports to `visit` and returns their number. One thread at a time, never blocks.
    ///
    /// If more is available, `wakeFD` becomes readable again. `visit` may produce, but must not poll.
    @discardableResult
    public func pollReports(max: Int, _ visit: (DeliveryReport) -> Void) -> Int {
        client.pollReports(max: max, visit)
    }

    /// Blocks until every accepted record was reported or `timeoutMs` passed. Returns true if nothing is pending.
    ///
    /// For shutdown and commands. Calls `visit` on this thread, which must be the polling one.
    public func flush(timeoutMs: Int, _ visit: (DeliveryReport) -> Void) -> Bool {
        let deadline = client.steadyMs + Int64(timeoutMs)
        while true {
            while pollReports(max: 1000, visit) > 0 {}
            if client.pendingCount == 0 { return true }
            let left = deadline - client.steadyMs
            if left <= 0 { return false }
            // Ends the linger. The wait itself is ours, because reports are taken as events.
            client.endLinger()
            client.wait(milliseconds: Int32(clamping: min(left, 50)))
        }
    }

    /// Blocks until there is a report or the time has passed.
    func wait(milliseconds: Int32) { client.wait(milliseconds: milliseconds) }
}
