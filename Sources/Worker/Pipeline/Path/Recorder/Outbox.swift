// SPDX-License-Identifier: Apache-2.0
import EventLoop
import JSON
import Kafka
import Telemetry

/// Output records. Each reaches the broker finally, or its loss is logged by name.
///
/// A full queue and a refused record are tried again after a doubling, jittered pause (up to 5 s). A record above the
/// topic's limit is sent alone, then in fewer words, then to the dead-letter topic, at last there without its bytes. A failed
/// producer is replaced, and its unacknowledged records are sent again: the broker may then have a record twice. Loop-bound.
/// Waiting records keep their events unsettled, so the intake bounds their number.
final class Outbox {
    /// Called once per record that the broker has (or that was given up), with the record's tag.
    private var didSettle: (UInt64) -> Void = { _ in }
    /// Asked about a record that its topic will never accept. False: it goes to the dead-letter topic.
    private var keepsWork: (UInt64) -> Bool = { _ in false }
    private var topics: OutTopics?
    /// Called after reports were taken, once per turn of a producer.
    private var didTakeReports: () -> Void = {}
    /// Called once if a failed producer cannot be replaced: this shard can write nothing any more.
    private var didFail: () -> Void = {}
    private let producers: OutProducers
    private let loop: Loop
    private let log: Log
    private let metrics: OutboxMetrics
    private var watchers: [OutProducers.Role: FDWatcher] = [:]
    /// Failed producers with outstanding reports.
    private var retired: [Retired] = []
    /// Consecutive replacements without a written record, by role.
    private var deaths: [OutProducers.Role: Int] = [:]
    private var hasFailed = false
    private var waiting: [Waiting] = []
    private var retry: LoopTimer?
    private let pauses = Backoff(baseNanos: 500_000_000, capNanos: 5_000_000_000)
    /// Consecutive pauses without an accepted record.
    private var failures = 0
    private var random: SmallRandom
    private var warnings = LogLimiter<Warning>()
    /// When the broker last accepted a record, or the first was sent after it had all; monotonic.
    private var progressNanos: UInt64 = 0

    private struct Waiting {
        var topic: OutTopic
        var key: [UInt8]?
        var value: [UInt8]?
        var headers: [KafkaHeader]
        var tag: UInt64
    }

    private struct Retired {
        let role: OutProducers.Role
        let producer: KafkaProducer
        let watcher: FDWatcher?
    }

    /// Topics of which a broker or the client refused a record, with its last reason and when (monotonic).
    private var refusals: [String: (why: String, atNanos: UInt64)] = [:]
    /// A refused record is sent again within five seconds, and renews the entry if it is refused again.
    private static let refusalNanos: UInt64 = 15_000_000_000
    private static let refusalsMax = 32
    private var oversized = OversizedRecords()
    /// The brokers let the producers write nothing, and when (monotonic) they last said so.
    private var lastDenial: (error: KafkaError, atNanos: UInt64)?

    private enum Warning: Hashable {
        case refused(code: Int32)
        case oversized(OversizedRecords.End)
    }

    private static let reportsPerTurn = 1024
    /// A cluster that makes each new producer fail before it writes anything needs an operator: about 8 s of attempts.
    private static let deathsMax = 5
    private static let behindNanos: UInt64 = 300_000_000

    init(producers: OutProducers, loop: Loop, log: Log, metrics: OutboxMetrics) {
        self.producers = producers
        self.loop = loop
        self.log = log
        self.metrics = metrics
        random = SmallRandom(seed: loop.makeSeed())
        retry = LoopTimer(loop: loop) { [unowned self] in resend() }
    }

    /// Begins to take the broker's answers.
    ///
    /// - Parameters:
    ///   - topics: where the records go.
    ///   - didSettle: the broker has a record, or it was given up; its tag.
    ///   - didTakeReports: reports were taken, so there may be room for more.
    ///   - keepsWork: a record exceeds the topic's limit, and its tag says whose work it is: true if that stays in memory.
    ///   - didFail: a failed producer could not be replaced; the process should exit with 70.
    func start(
        _ topics: OutTopics, didSettle: @escaping (UInt64) -> Void, didTakeReports: @escaping () -> Void = {},
        keepsWork: @escaping (UInt64) -> Bool = { _ in false }, didFail: @escaping () -> Void = {}
    ) throws(LoopFault) {
        self.topics = topics
        self.didSettle = didSettle
        self.keepsWork = keepsWork
        self.didTakeReports = didTakeReports
        self.didFail = didFail
        for role in OutProducers.Role.allCases { try watch(role) }
    }

    /// Takes no more answers and sends nothing again. No callback follows.
    func cancel() {
        retry?.cancel()
        for watcher in watchers.values { watcher.cancel() }
        watchers = [:]
        for one in retired { one.watcher?.cancel() }
        retired = []
    }

    /// Records without an acknowledgement.
    var pendingCount: Int {
        let live = OutProducers.Role.allCases.reduce(waiting.count) { $0 + (producers[$1]?.pendingCount ?? 0) }
        return retired.reduce(live) { $0 + $1.producer.pendingCount }
    }

    /// The broker has not accepted any sent record for a while.
    var isBehind: Bool { loop.nowNanos &- progressNanos > Self.behindNanos && pendingCount > 0 }

    /// Topics that refuse records now, and why.
    var refused: [(topic: String, why: String)] {
        refusals.filter { loop.nowNanos &- $0.value.atNanos < Self.refusalNanos }
            .map { (topic: $0.key, why: $0.value.why) }.sorted { $0.topic < $1.topic }
    }

    /// Why the brokers let this worker write no record at all; nil if they do.
    var denial: KafkaError? {
        lastDenial.flatMap { loop.nowNanos &- $0.atNanos < Self.refusalNanos ? $0.error : nil }
    }

    /// What an operator is to know of records that were too large, in words.
    var noteTexts: [String] { oversized.texts(nowNanos: loop.nowNanos) }

    private func refused(_ topic: String, _ error: KafkaError) {
        if refusals.count < Self.refusalsMax || refusals[topic] != nil {
            refusals[topic] = (error.name, loop.nowNanos)
        }
        warn(.refused(code: error.code), "the broker refused a record; it is sent again", topic, error: error.name)
    }

    private func noteSending() {
        let now = loop.nowNanos
        if now &- progressNanos > Self.behindNanos, pendingCount == 0 { progressNanos = now }
    }

    func send(_ topic: OutTopic, key: String, value: borrowing JSONWriter, tag: UInt64) {
        noteSending()
        var key = key
        let outcome = key.withUTF8 { key in
            value.withBytes { value in
                producers.produce(to: topic, key: UnsafeRawBufferPointer(key), value: value, tag: tag)
            }
        }
        if outcome == .queued { return }
        hold(Waiting(topic: topic, key: Array(key.utf8), value: value.bytes, headers: [], tag: tag), after: outcome)
    }

    /// A record with its original key, which may be absent.
    func sendRaw(
        _ topic: OutTopic, key: [UInt8]?, value: [UInt8]?, headers: [KafkaHeader], tag: UInt64
    ) {
        noteSending()
        submit(Waiting(topic: topic, key: key, value: value, headers: headers, tag: tag))
    }

    /// No record waits for the broker, or none of them can be sent any more.
    var isFlushed: Bool { pendingCount == 0 || hasFailed }

    /// Sends records that wait for another try, at once. For the end of the process.
    func sendWaiting() {
        if !waiting.isEmpty, !hasFailed { resend() }
    }

    // MARK: - Reports

    private func watch(_ role: OutProducers.Role) throws(LoopFault) {
        guard let producer = producers[role] else { return }
        watchers[role] = try FDWatcher(loop: loop, fd: producer.wakeFD) { [unowned self, unowned producer] in
            takeReports(of: producer, role)
        }
    }

    private func takeReports(of producer: KafkaProducer, _ role: OutProducers.Role) {
        loop.stageClock?.enter(.record)
        withExtendedLifetime(producer) {
            producer.pollReports(max: Self.reportsPerTurn) { take($0, role) }
            if producer === producers[role], let fault = producer.fatalError { mend(role, fault) }
            releaseRetired()
            didTakeReports()
        }
    }

    private func take(_ report: DeliveryReport, _ role: OutProducers.Role) {
        guard let error = report.error else {
            failures = 0
            progressNanos = loop.nowNanos
            if !deaths.isEmpty { deaths[role] = nil }
            return didSettle(report.opaque)
        }
        metrics.failures.add()
        guard let record = report.failedRecord, let topic = producers.known(record.topic, by: role) else {
            log.error(
                "gave up a record that the broker will never accept",
                ["topic": .string(report.failedRecord?.topic ?? ""), "error": .string(error.name)])
            return didSettle(report.opaque)
        }
        let held = Waiting(
            topic: topic, key: record.key, value: record.value, headers: record.headers, tag: report.opaque)
        if error.isTooLarge { return tooLarge(held) }
        refused(record.topic, error)
        keep(held)
    }

    // MARK: - A producer's death

    /// The first failure is repaired at once. A producer that fails again before it wrote anything waits for the next
    /// attempt.
    private func mend(_ role: OutProducers.Role, _ fault: KafkaError) {
        if fault.isDenied {
            lastDenial = (fault, loop.nowNanos)
            warn(
                .refused(code: fault.code),
                "the brokers let this worker write nothing: grant Write on the output topics",
                "", error: fault.name)
        } else if deaths[role] == nil {
            replace(role)
        }
        scheduleRetry()
    }

    /// Replaces the failed producer. Its records return as reports and wait. A right may be granted at any time, so a producer
    /// that lacks one is replaced as often as needed.
    private func replace(_ role: OutProducers.Role) {
        guard !hasFailed, let old = producers[role] else { return }
        let cause = old.fatalError
        let count = deaths[role, default: 0] + (cause?.isDenied ?? false ? 0 : 1)
        guard count <= Self.deathsMax else { return fail(role, "no producer lived long enough to write a record") }
        deaths[role] = count
        do {
            try producers.replace(role)
            retired.append(Retired(role: role, producer: old, watcher: watchers[role]))
            try watch(role)
        } catch {
            return fail(role, "\(error)")
        }
        metrics.replacements.add()
        log.error(
            "replaced a failed Kafka producer; its unacknowledged records are sent again",
            [
                "producer": .string(role.rawValue), "error": .string(cause?.name ?? ""),
                "text": .string(cause?.text ?? ""), "records": .int(old.pendingCount),
            ])
        old.purge()
    }

    private func fail(_ role: OutProducers.Role, _ why: String) {
        hasFailed = true
        log.error(
            "cannot replace the failed Kafka producer", ["producer": .string(role.rawValue), "why": .string(why)])
        didFail()
    }

    private func releaseRetired() {
        if retired.isEmpty { return }
        retired.removeAll { one in
            guard one.producer.pendingCount == 0 else { return false }
            one.watcher?.cancel()
            return true
        }
    }

    // MARK: - Another try

    private func submit(_ record: Waiting) {
        let outcome = producers.produce(
            to: record.topic, key: record.key, value: record.value, headers: record.headers, tag: record.tag)
        if outcome != .queued { hold(record, after: outcome) }
    }

    private func hold(_ record: Waiting, after outcome: ProduceOutcome) {
        if case .refused(let error) = outcome {
            metrics.failures.add()
            if error.isTooLarge { return tooLarge(record) }
            refused(producers.name(of: record.topic), error)
        }
        keep(record)
    }

    private func keep(_ record: Waiting) {
        waiting.append(record)
        scheduleRetry()
    }

    private func scheduleRetry() {
        guard let retry, !retry.isArmed, !hasFailed else { return }
        failures += 1
        retry.arm(afterNanos: pauses.delayNanos(failures: failures, random: &random))
    }

    private func resend() {
        for role in OutProducers.Role.allCases where producers[role]?.fatalError != nil { replace(role) }
        let records = waiting
        waiting = []
        for record in records { submit(record) }
    }

    // MARK: - Records above their topic's limit

    private func tooLarge(_ record: Waiting) {
        var record = record
        let topic = producers.name(of: record.topic)
        if !producers.isAlone(record.topic), let alone = alone(record.topic) {
            record.topic = alone
            return submit(record)
        }
        let bytes = record.value?.count ?? 0
        let deadLetter = topics?.deadLetter
        let isLetter = topic == deadLetter.map(producers.name)
        if !isLetter, keepsWork(record.tag) { return }
        if isLetter, record.value != nil {
            // Its headers say whose it is.
            record.value = nil
            note(.cut, topic, bytes)
        } else if !isLetter, let value = record.value, let shorter = shorter(value, topic) {
            record.value = shorter
            note(.shortened, topic, bytes)
        } else if !isLetter, let deadLetter, let alone = alone(deadLetter) {
            record.topic = alone
            record.headers += DeadLetter.headers(tooLargeFor: topic)
            note(.deadLetter, topic, bytes)
        } else {
            note(.givenUp, topic, bytes)
            return didSettle(record.tag)
        }
        submit(record)
    }

    /// Only a result says the same in fewer words.
    private func shorter(_ value: [UInt8], _ topic: String) -> [UInt8]? {
        guard let topics, [topics.results, topics.stateResults].map(producers.name).contains(topic) else { return nil }
        return ShortRecord.shorter(than: value)
    }

    /// - Returns: nil where no producer can be had; the log says why.
    private func alone(_ topic: OutTopic) -> OutTopic? {
        do {
            let found = try producers.alone(topic)
            if watchers[.alone] == nil { try watch(.alone) }
            return found
        } catch {
            log.error("no producer for records above the topic's limit", ["why": .string("\(error)")])
            return nil
        }
    }

    private func note(_ end: OversizedRecords.End, _ topic: String, _ bytes: Int) {
        oversized.note(end, topic, nowNanos: loop.nowNanos)
        warn(.oversized(end), end.words, topic, bytes: bytes)
    }

    /// One line per cause and ten seconds.
    private func warn(
        _ cause: Warning, _ message: StaticString, _ topic: String, error: String = "", bytes: Int = 0
    ) {
        guard let suppressed = warnings.admit(cause, nowNanos: loop.nowNanos) else { return }
        let count = LogValue.int(Int(clamping: suppressed))
        if case .refused = cause {
            log.warning(message, ["topic": .string(topic), "error": .string(error), "suppressed": count])
        } else {
            log.error(message, ["topic": .string(topic), "bytes": .int(bytes), "suppressed": count])
        }
    }
}

/// The metrics of an outbox.
struct OutboxMetrics {
    let failures: Counter
    let replacements: Counter

    init(_ registry: MetricsRegistry) {
        failures = registry.counter(
            "carillon_record_failures_total", help: "Records that a broker refused; all but oversized are resent.")
        replacements = registry.counter(
            "carillon_kafka_producer_replacements_total",
            help: "Failed producers that were replaced; their records were sent again.")
    }
}
