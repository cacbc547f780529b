import EventLoop
import JSON
import Kafka
import Telemetry

/// Records on their way out. Each gets to the broker in the end, or the loss is told by name.
///
/// A full queue and a refused record are both tried again after a pause; only what can never be taken (a record over
/// the broker's size) is given up, logged and counted. Loop-bound. What waits here keeps its event unsettled, so the
/// amount is bounded by the intake.
final class Outbox {
    private let producers: [KafkaProducer]
    private let log: Log
    private let failures: Counter
    private var waiting: [Waiting] = []
    private var retry: LoopTimer?
    /// Called once per record that the broker has (or that was given up), with the record's tag.
    private var didSettle: (UInt64) -> Void = { _ in }

    private struct Waiting {
        var topic: OutTopic
        var key: [UInt8]?
        var value: [UInt8]?
        var headers: [KafkaHeader]
        var tag: UInt64
    }

    private static let retryNanos: UInt64 = 250_000_000

    private var watchers: [FDWatcher] = []
    private let loop: Loop
    init(producers: [KafkaProducer], loop: Loop, log: Log, failures: Counter) {
        self.loop = loop
        self.producers = producers
        self.log = log
        self.failures = failures
        retry = LoopTimer(loop: loop) { [unowned self] in resend() }
    }

    func start(
        didSettle: @escaping (UInt64) -> Void, didTakeReports: @escaping () -> Void, didFail: @escaping () -> Void
    ) throws(LoopFault) {
        self.didSettle = didSettle
        for producer in producers {
            watchers.append(
                try FDWatcher(loop: loop, fd: producer.wakeFD) { [unowned self] in
                    takeReports(of: producer, max: 1024)
                    didTakeReports()
                })
        }
    }

    func cancel() { for watcher in watchers { watcher.cancel() } }

    /// Records whose acknowledgement is still to come.
    var pendingCount: Int { producers.reduce(waiting.count) { $0 + $1.pendingCount } }

    func send(
        _ topic: OutTopic, key: String, value: borrowing JSONWriter, tag: UInt64
    ) {
        var key = key
        let outcome = key.withUTF8 { key in
            value.withBytes { value in
                topic.producer.produce(
                    to: topic.handle, key: UnsafeRawBufferPointer(key), value: value, opaque: tag)
            }
        }
        if outcome == .queued { return }
        hold(Waiting(topic: topic, key: Array(key.utf8), value: value.bytes, headers: [], tag: tag), after: outcome)
    }

    /// A record with its original key, which may be none.
    func sendRaw(
        _ topic: OutTopic, key: [UInt8]?, value: [UInt8]?, headers: [KafkaHeader], tag: UInt64
    ) {
        let record = Waiting(topic: topic, key: key, value: value, headers: headers, tag: tag)
        let outcome = produce(record)
        if outcome != .queued { hold(record, after: outcome) }
    }

    /// Takes the broker's answers; called when that producer's descriptor is readable.
    func takeReports(of producer: KafkaProducer, max: Int) {
        producer.pollReports(max: max) { report in
            guard let error = report.error else { return didSettle(report.opaque) }
            failures.add()
            guard let record = report.failedRecord, let handle = producer.topic(record.topic) else {
                log.error(
                    "a record was given up: the broker can never take it",
                    ["topic": .string(report.failedRecord?.topic ?? ""), "error": .string(error.name)])
                return didSettle(report.opaque)
            }
            if error.isTooLarge {
                let topic = OutTopic(handle: handle, producer: producer)
                return tooLarge(
                    Waiting(
                        topic: topic, key: record.key, value: record.value, headers: record.headers,
                        tag: report.opaque))
            }
            log.warning(
                "a record was refused and is sent again",
                ["topic": .string(record.topic), "error": .string(error.name)])
            waiting.append(
                Waiting(
                    topic: OutTopic(handle: handle, producer: producer), key: record.key, value: record.value,
                    headers: record.headers, tag: report.opaque))
            retry?.arm(afterNanos: Self.retryNanos)
        }
    }

    /// Waits for the broker's answers at the end of the process's life. Blocks.
    func flush(timeoutMs: Int) -> Bool {
        resend()
        var isFlushed = true
        for producer in producers {
            let isDone = producer.flush(timeoutMs: timeoutMs) { [didSettle] report in
                if report.error == nil { didSettle(report.opaque) }
            }
            isFlushed = isFlushed && isDone
        }
        return isFlushed
    }

    private func hold(_ record: Waiting, after outcome: ProduceOutcome) {
        if case .refused(let error) = outcome {
            failures.add()
            if error.isTooLarge { return tooLarge(record) }
        }
        waiting.append(record)
        retry?.arm(afterNanos: Self.retryNanos)
    }

    /// Over the topic's limit. A dead letter goes without its bytes then, since its headers say where they lie; another
    /// record is given up.
    private func tooLarge(_ record: Waiting) {
        let isCut = !record.headers.isEmpty && record.value != nil
        log.error(
            isCut
                ? "a dead letter goes without its bytes: they are over the topic's max.message.bytes"
                : "a record was given up: it is over the topic's max.message.bytes",
            ["topic": .string(record.topic.handle.name), "bytes": .int(record.value?.count ?? 0)])
        guard isCut else { return didSettle(record.tag) }
        var record = record
        record.value = nil
        let outcome = produce(record)
        if outcome != .queued { hold(record, after: outcome) }
    }

    private func produce(_ record: Waiting) -> ProduceOutcome {
        record.topic.producer.produce(
            to: record.topic.handle, keyBytes: record.key, valueBytes: record.value, headers: record.headers,
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

/// A topic and the producer that writes it.
struct OutTopic {
    let handle: KafkaTopic
    let producer: KafkaProducer
}

/// The topics that are written.
struct OutTopics {
    var deliveries: OutTopic
    var results: OutTopic
    var feedback: OutTopic
    var sms: OutTopic
    var deadLetter: OutTopic
    var parked: OutTopic

    init(_ names: Configuration.Topics, producers: OutProducers) throws(StartFault) {
        func topic(_ name: String, _ producer: KafkaProducer) throws(StartFault) -> OutTopic {
            guard let handle = producer.topic(name) else { throw StartFault("\"\(name)\" is no name for a topic") }
            return OutTopic(handle: handle, producer: producer)
        }
        deliveries = try topic(names.deliveries, producers.prompt)
        results = try topic(names.results, producers.records)
        feedback = try topic(names.feedback, producers.records)
        sms = try topic(names.sms, producers.prompt)
        deadLetter = try topic(names.deadLetter, producers.records)
        parked = try topic(names.parked, producers.prompt)
    }
}

/// Two producers: for what somebody waits for, and for what is only read afterwards.
///
/// librdkafka sends one request per partition, and its thread looks at every partition whenever it wakes. Results come
/// one per push: lingering as long as deliveries do, each would be a request of its own. A mark waits for them, so after
/// a crash the pushes of so many milliseconds may be made again.
struct OutProducers {
    let prompt: KafkaProducer
    let records: KafkaProducer

    private static let recordsLingerMs = "100"

    /// A `linger.ms` of the configuration holds for both.
    init(_ client: KafkaConfiguration) throws(KafkaFault) {
        prompt = try KafkaProducer(client)
        var lazy = client
        lazy.clientID += "-records"
        if lazy.options["linger.ms"] == nil, lazy.options["queue.buffering.max.ms"] == nil {
            lazy.options["linger.ms"] = Self.recordsLingerMs
        }
        records = try KafkaProducer(lazy)
    }

    var all: [KafkaProducer] { [prompt, records] }
}
