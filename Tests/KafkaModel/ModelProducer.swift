// SPDX-License-Identifier: Apache-2.0
import CostCounting
package import Kafka
import Telemetry

/// The model's producer, with librdkafka's behaviour as `KafkaProducer` sees it: batches per partition after a linger, one
/// batch of a partition on its way, attempts until the message timeout.
///
/// Unchecked Sendable: a world has one thread.
package final class ModelProducer: ProducerClient, @unchecked Sendable {
    private struct Entry {
        let topic: String
        let record: ModelRecord
        let opaque: UInt64
        let expiresNanos: UInt64
    }

    private final class Lane {
        let topic: String
        let partition: Int32
        let connection: ModelConnection
        var waiting: [Entry] = []
        var isSending = false
        var batchNumber: UInt64 = 0
        /// The batch on its way.
        var sent: [Entry] = []

        init(_ topic: String, _ partition: Int32, _ connection: ModelConnection) {
            self.topic = topic
            self.partition = partition
            self.connection = connection
        }
    }

    let host: ModelHost
    private let id: UInt64
    private let wake: any KafkaModelWake
    private let lingerNanos: UInt64
    private let timeoutNanos: UInt64
    private let queueMax: Int
    private let bytesMax: Int
    private let isIdempotent: Bool
    /// In the order of their first record.
    private var lanes: [Lane] = []
    private var reports: [DeliveryReport] = []
    /// Accepted records without a report that was taken.
    private var open = 0
    private(set) package var fatalError: KafkaError?
    package let errorCounts: [Int32: UInt64] = [:]
    private var model: KafkaModel { host.model }

    private static let batchMax = 500

    init(_ configuration: KafkaConfiguration, _ host: ModelHost) {
        let options = configuration.options
        func number(_ key: String, _ other: UInt64) -> UInt64 { options[key].flatMap { UInt64($0) } ?? other }
        self.host = host
        wake = host.makeWake()
        id = UInt64(truncatingIfNeeded: host.model.pick(1...(UInt64.max - 1)))
        lingerNanos = number("linger.ms", number("queue.buffering.max.ms", 5)) * 1_000_000
        timeoutNanos = number("message.timeout.ms", number("delivery.timeout.ms", 300_000)) * 1_000_000
        queueMax = Int(number("queue.buffering.max.messages", 100_000))
        bytesMax = Int(number("message.max.bytes", 16 << 20))
        isIdempotent = options["enable.idempotence"] != "false"
        host.model.add(self)
    }

    package var steadyMs: Int64 { Int64(host.steadyNanos() / 1_000_000) }

    package func makeTopic(_ name: String) -> KafkaTopic? { KafkaTopic(name: name) }

    package func produce(
        to topic: KafkaTopic, key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, headers: [KafkaHeader],
        partition: Int32?, timestampMs: Int64?, opaque: UInt64
    ) -> ProduceOutcome {
        Counting.outside {
            take(to: topic, key: key, value: value, headers: headers, partition: partition, timestampMs, opaque)
        }
    }

    private func take(
        to topic: KafkaTopic, key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, headers: [KafkaHeader],
        partition: Int32?, _ timestampMs: Int64?, _ opaque: UInt64
    ) -> ProduceOutcome {
        // -150: _FATAL.
        if fatalError != nil { return .refused(KafkaError(code: -150)) }
        if open >= queueMax { return .queueFull }
        let written = value.map { bytes in
            host.translation?.written(Array(bytes), to: topic.name) ?? Array(bytes)
        }
        let record = ModelRecord(
            key: key.map { Array($0) }, value: written, headers: headers, createdMs: timestampMs ?? host.wallMs())
        // 10: MSG_SIZE_TOO_LARGE.
        if record.byteCount > bytesMax { return .refused(KafkaError(code: 10)) }
        let count = model.partitionCount(of: topic.name)
        let place =
            partition ?? record.key.map { Int32(model.partition(of: $0, in: topic.name)) }
            ?? Int32(model.pick(0...max(0, count - 1)))
        // -190: _UNKNOWN_PARTITION.
        if count > 0, place >= count { return .refused(KafkaError(code: -190)) }
        open += 1
        let lane = lane(topic.name, place)
        lane.waiting.append(
            Entry(topic: topic.name, record: record, opaque: opaque, expiresNanos: model.now() &+ timeoutNanos))
        if lane.waiting.count == 1, !lane.isSending { sendLater(lane, lingerNanos) }
        return .queued
    }

    private func lane(_ topic: String, _ partition: Int32) -> Lane {
        if let known = lanes.first(where: { $0.topic == topic && $0.partition == partition }) { return known }
        let lane = Lane(topic, partition, ModelConnection(host))
        lanes.append(lane)
        return lane
    }

    // MARK: - Sending

    private func sendLater(_ lane: Lane, _ nanos: UInt64) {
        lane.isSending = true
        host.after(nanos) { [weak self] in self?.send(lane) }
    }

    private func send(_ lane: Lane) {
        if fatalError != nil { return }
        if lane.sent.isEmpty {
            expire(&lane.waiting)
            guard !lane.waiting.isEmpty else {
                lane.isSending = false
                return
            }
            lane.sent = Array(lane.waiting.prefix(Self.batchMax))
            lane.waiting.removeFirst(lane.sent.count)
            lane.batchNumber += 1
        } else {
            expire(&lane.sent)
            if lane.sent.isEmpty { return sendLater(lane, 0) }
        }
        let batch = lane.sent
        let number = lane.batchNumber
        lane.connection.ask(
            broker: { [self] in
                model.canServe(lane.topic, lane.partition) ? model.leader(lane.topic, lane.partition) : nil
            },
            losing: model.settings.lostWrites
        ) { [self] reply in
            let answer = write(batch, number, lane)
            // A batch that the broker has, and whose producer never hears of it.
            let isAnswerLost = model.chance(model.settings.lostWriteAnswers)
            model.after(model.pick(model.settings.writeNanos)) { reply(isAnswerLost ? nil : answer) }
        } _: { [self] (answer: Answer??) in
            take(answer ?? nil, batch, lane)
        }
    }

    private enum Answer {
        case written(firstOffset: Int64)
        case refused(KafkaError)
    }

    /// At the broker.
    private func write(_ batch: [Entry], _ number: UInt64, _ lane: Lane) -> Answer {
        guard let topic = model.topics[lane.topic], let log = model.log(lane.topic, lane.partition) else {
            return .refused(.unknownTopic)
        }
        if let code = topic.refusal { return .refused(KafkaError(code: code)) }
        if batch.contains(where: { $0.record.byteCount > topic.bytesMax }) { return .refused(KafkaError(code: 10)) }
        if isIdempotent, let known = log.offset(ofBatch: number, of: id) { return .written(firstOffset: known) }
        let first = log.end
        for entry in batch { log.append(entry.record, wallMs: model.settings.wallMs(model.now()), by: topic) }
        log.noteBatch(number, of: id, at: first)
        return .written(firstOffset: first)
    }

    private func take(_ answer: Answer?, _ batch: [Entry], _ lane: Lane) {
        // A purge or a death has reported them.
        guard fatalError == nil, !lane.sent.isEmpty else { return }
        switch answer {
        case nil: return sendLater(lane, model.pick(model.settings.retryNanos))
        case .written(let first):
            for (index, entry) in batch.enumerated() {
                report(entry, lane, offset: first + Int64(index))
            }
        // A broker refuses a batch as a whole; librdkafka sends the records of a large one alone.
        case .refused(let error) where error.isTooLarge && batch.count > 1:
            lane.waiting = batch + lane.waiting
            lane.sent = [lane.waiting.removeFirst()]
            lane.batchNumber += 1
            return sendLater(lane, 0)
        case .refused(let error) where error == .unknownTopic:
            return sendLater(lane, model.pick(model.settings.retryNanos))
        case .refused(let error): for entry in batch { report(entry, lane, error: error) }
        }
        lane.sent = []
        if lane.waiting.isEmpty { lane.isSending = false } else { sendLater(lane, 0) }
    }

    private func expire(_ entries: inout [Entry]) {
        // -192: _MSG_TIMED_OUT. Those of one lane expire in their order.
        while let first = entries.first, first.expiresNanos <= model.now() {
            entries.removeFirst()
            report(first, nil, error: KafkaError(code: -192))
        }
    }

    private func report(_ entry: Entry, _ lane: Lane?, offset: Int64? = nil, error: KafkaError? = nil) {
        let failed = error.map { _ in
            DeliveryReport.FailedRecord(
                topic: entry.topic, key: entry.record.key, value: entry.record.value, headers: entry.record.headers)
        }
        reports.append(
            DeliveryReport(
                opaque: entry.opaque, partition: lane?.partition ?? -1, offset: offset, error: error,
                failedRecord: failed))
        wake.signal()
    }

    // MARK: - Reports

    package var wakeFD: Int32 { wake.descriptor }

    package var pendingCount: Int { open }

    package func pollReports(max: Int, _ visit: (DeliveryReport) -> Void) -> Int {
        Counting.outside { takeReports(max: max, visit) }
    }

    private func takeReports(max: Int, _ visit: (DeliveryReport) -> Void) -> Int {
        wake.drain()
        let taken = Array(reports.prefix(max))
        reports.removeFirst(taken.count)
        open -= taken.count
        for report in taken { Counting.inside { visit(report) } }
        if !reports.isEmpty { wake.signal() }
        return taken.count
    }

    package func purge() {
        for lane in lanes {
            // _PURGE_INFLIGHT and _PURGE_QUEUE.
            for entry in lane.sent { report(entry, lane, error: KafkaError(code: -151)) }
            for entry in lane.waiting { report(entry, lane, error: KafkaError(code: -152)) }
            (lane.sent, lane.waiting, lane.isSending) = ([], [], false)
        }
    }

    package func endLinger() {}

    package func wait(milliseconds: Int32) {}

    /// The producer fails for good, for example because a broker lost its sequence. What is on its way may be written.
    package func fail(code: Int32) {
        if fatalError != nil { return }
        fatalError = KafkaError(code: code, isFatal: true)
        wake.signal()
    }
}
