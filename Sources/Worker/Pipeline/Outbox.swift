import EventLoop
import Kafka
import Telemetry

/// Records on their way out. Each gets to the broker in the end, or the loss is told by name.
///
/// A full queue and a refused record are both tried again after a pause; only what can never be taken (a record over
/// the broker's size) is given up, logged and counted. Loop-bound. What waits here keeps its event unsettled, so the
/// amount is bounded by the intake.
final class Outbox {
    private let producer: KafkaProducer
    private let topics: OutTopics
    private let log: Log
    private let failures: Counter
    private var waiting: [Waiting] = []
    private var retry: LoopTimer?
    /// Called once per record that the broker has (or that was given up), with the record's tag.
    private let didSettle: (UInt64) -> Void

    private struct Waiting {
        var topic: KafkaTopic
        var key: [UInt8]?
        var value: [UInt8]?
        var headers: [KafkaHeader]
        var tag: UInt64
    }

    private static let retryNanos: UInt64 = 250_000_000

    init(
        producer: KafkaProducer, topics: OutTopics, loop: Loop, log: Log, failures: Counter,
        didSettle: @escaping (UInt64) -> Void
    ) {
        self.producer = producer
        self.topics = topics
        self.log = log
        self.failures = failures
        self.didSettle = didSettle
        retry = LoopTimer(loop: loop) { [unowned self] in resend() }
    }

    /// Records whose acknowledgement is still to come.
    var pendingCount: Int { producer.pendingCount + waiting.count }

    func send(
        _ topic: KeyPath<OutTopics, KafkaTopic>, key: String, value: [UInt8], headers: [KafkaHeader] = [], tag: UInt64
    ) {
        var key = key
        let outcome = key.withUTF8 { key in
            value.withUnsafeBytes { value in
                producer.produce(
                    to: topics[keyPath: topic], key: UnsafeRawBufferPointer(key), value: value, headers: headers,
                    opaque: tag)
            }
        }
        if outcome == .queued { return }
        hold(
            Waiting(
                topic: topics[keyPath: topic], key: Array(key.utf8), value: value, headers: headers, tag: tag),
            after: outcome)
    }

    /// A record with its original key, which may be none.
    func sendRaw(
        _ topic: KeyPath<OutTopics, KafkaTopic>, key: [UInt8]?, value: [UInt8]?, headers: [KafkaHeader], tag: UInt64
    ) {
        let record = Waiting(
            topic: topics[keyPath: topic], key: key, value: value, headers: headers, tag: tag)
        let outcome = produce(record)
        if outcome != .queued { hold(record, after: outcome) }
    }

    /// Takes the broker's answers; called when the producer's descriptor is readable.
    func takeReports(max: Int) {
        producer.pollReports(max: max) { report in
            guard let error = report.error else { return didSettle(report.opaque) }
            failures.add()
            guard let record = report.failedRecord, !error.isTooLarge, let topic = producer.topic(record.topic) else {
                log.error(
                    "a record was given up: the broker can never take it",
                    ["topic": .string(report.failedRecord?.topic ?? ""), "error": .string(error.name)])
                return didSettle(report.opaque)
            }
            log.warning(
                "a record was refused and is sent again",
                ["topic": .string(record.topic), "error": .string(error.name)])
            waiting.append(
                Waiting(
                    topic: topic, key: record.key, value: record.value, headers: record.headers, tag: report.opaque))
            retry?.arm(afterNanos: Self.retryNanos)
        }
    }

    /// Waits for the broker's answers at the end of the process's life. Blocks.
    func flush(timeoutMs: Int) -> Bool {
        resend()
        return producer.flush(timeoutMs: timeoutMs) { [didSettle] report in
            if report.error == nil { didSettle(report.opaque) }
        }
    }

    private func hold(_ record: Waiting, after outcome: ProduceOutcome) {
        if case .refused(let error) = outcome {
            failures.add()
            guard !error.isTooLarge else {
                log.error(
                    "a record was given up: it is over message.max.bytes",
                    ["topic": .string(record.topic.name), "bytes": .int(record.value?.count ?? 0)])
                return didSettle(record.tag)
            }
        }
        waiting.append(record)
        retry?.arm(afterNanos: Self.retryNanos)
    }

    private func produce(_ record: Waiting) -> ProduceOutcome {
        producer.produce(
            to: record.topic, keyBytes: record.key, valueBytes: record.value, headers: record.headers,
            opaque: record.tag)
    }

    private func resend() {
        let records = waiting
        waiting = []
        for record in records {
            let outcome = produce(record)
            if outcome != .queued { hold(record, after: outcome) }
        }
    }
}

/// The handles of the topics that are written.
struct OutTopics {
    var deliveries: KafkaTopic
    var results: KafkaTopic
    var feedback: KafkaTopic
    var sms: KafkaTopic
    var deadLetter: KafkaTopic
}
