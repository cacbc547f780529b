// SPDX-License-Identifier: Apache-2.0
/// Writes to one topic from a command: waits while the queue is full, and counts failures.
///
/// For generators. Blocks its thread, so never on a loop. Not Sendable.
public final class KafkaTopicWriter {
    /// Records that the broker confirmed.
    public private(set) var written: UInt64 = 0
    /// Failed records by librdkafka's code.
    public private(set) var failures: [Int32: UInt64] = [:]

    private let producer: KafkaProducer
    private let topic: KafkaTopic
    /// Reports are taken at this interval of writes, or at once if the queue is full.
    private var sinceReports = 0

    public init(_ configuration: KafkaConfiguration, topic: String) throws(KafkaFault) {
        producer = try KafkaProducer(configuration)
        guard let handle = producer.topic(topic) else {
            throw .configuration([KafkaConfigurationProblem(key: "topic", why: "\"\(topic)\" is not a topic name")])
        }
        self.topic = handle
    }

    /// Copies the record; waits up to `timeoutMs` for room. Returns nil if accepted; its result appears in the counts.
    public func write(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, headers: [KafkaHeader] = [],
        partition: Int32? = nil, timestampMs: Int64? = nil, timeoutMs: Int = 30_000
    ) -> KafkaError? {
        let deadline = monotonicMs() + Int64(timeoutMs)
        while true {
            let outcome = producer.produce(
                to: topic, key: key, value: value, headers: headers, partition: partition, timestampMs: timestampMs)
            switch outcome {
            case .queued:
                sinceReports += 1
                if sinceReports >= 256 { takeReports() }
                return nil
            case .refused(let error): return error
            case .queueFull:
                if monotonicMs() >= deadline { return .queueFull }
                producer.wait(milliseconds: 50)
                takeReports()
            }
        }
    }

    /// Waits until every accepted record is written or failed. Returns false if `timeoutMs` passed first.
    public func finish(timeoutMs: Int = 30_000) -> Bool {
        producer.flush(timeoutMs: timeoutMs) { self.note($0) }
    }

    private func takeReports() {
        sinceReports = 0
        while producer.pollReports(max: 1000, { self.note($0) }) > 0 {}
    }

    private func note(_ report: DeliveryReport) {
        if let error = report.error { failures[error.code, default: 0] += 1 } else { written += 1 }
    }
}
