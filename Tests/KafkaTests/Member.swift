// SPDX-License-Identifier: Apache-2.0
import Glibc
import Support

@testable import Kafka

/// A group member for tests: notes what it hears, and commits what the test says.
final class Member: KafkaConsumerDelegate {
    struct Seen: Equatable, Sendable {
        var partition: TopicPartition
        var offset: Int64
        var key: String?
        var value: String?
        var headers: [String: String] = [:]
        var hasTime = false
    }

    let consumer: KafkaConsumer
    var seen: [Seen] = []
    var commits: [(offsets: [PartitionOffset], error: KafkaError?)] = []
    var failures: [KafkaError] = []
    var assignments = 0
    var revocations: [(partitions: [TopicPartition], lost: Bool)] = []
    var isClosed = false
    var statistics = 0
    /// Every record counts as settled at once.
    var storesAll = false
    /// What its next commit says.
    var stored: [TopicPartition: PartitionOffset] = [:]
    struct Restart: Equatable, Sendable {
        var due: Int64
        var offset: Int64
    }
    var restarts: [Restart] = []
    /// Offsets that the owner before had settled.
    var settledBefore: [Int64] = []
    /// Records that came before it was told what is committed of their partition.
    var early = 0
    var revocationAnswer = KafkaRevocation.complete
    var willRevoke = 0
    var onRecord: ((Seen) -> Void)?
    var onAssigned: (() -> Void)?
    var onRevoked: (() -> Void)?
    var ledger = OffsetLedger()
    var committedAtStart: [PartitionOffset] = []

    init(
        _ bootstrap: String, group: String, topics: [String], options: [String: String] = [:],
        reset: KafkaConfiguration.OffsetReset = .earliest
    ) throws {
        var all = ["session.timeout.ms": "6000", "fetch.wait.max.ms": "10", "heartbeat.interval.ms": "500"]
        // With the consumer protocol the broker sets the session's times.
        if options["group.protocol"] != nil { all = ["fetch.wait.max.ms": "10"] }
        all.merge(options) { $1 }
        consumer = try KafkaConsumer(
            KafkaConfiguration(brokers: bootstrap, group: group, options: all, offsetReset: reset), topics: topics)
        consumer.delegate = self
    }

    init(_ consumer: KafkaConsumer) {
        self.consumer = consumer
        consumer.delegate = self
    }

    /// librdkafka's client below the consumer.
    var native: NativeGroupClient {
        get throws {
            guard let native = consumer.client as? NativeGroupClient else { throw Broken("not librdkafka's client") }
            return native
        }
    }

    func kafka(_ consumer: KafkaConsumer, didReceive record: borrowing KafkaRecord) {
        var headers: [String: String] = [:]
        record.forEachHeader { name, value in
            headers[name] = value.map { String(decoding: $0, as: UTF8.self) } ?? "null"
        }
        let one = Seen(
            partition: record.partition, offset: record.offset,
            key: record.key.map { String(decoding: $0, as: UTF8.self) },
            value: record.value.map { String(decoding: $0, as: UTF8.self) }, headers: headers,
            hasTime: record.timestampMs != nil)
        seen.append(one)
        if !committedAtStart.contains(where: { $0.partition == record.partition }) { early += 1 }
        let receipt = ledger.receive(
            record.partition, offset: record.offset, bytes: record.byteCount, nowNanos: 0, timeMs: record.timestampMs)
        if receipt == .otherEpoch { consumer.rewind(record.partition) }
        if receipt == .settledBefore { settledBefore.append(record.offset) }
        if storesAll { store(record.partition, next: record.offset + 1) }
        onRecord?(one)
    }

    /// False where the partition is not its own.
    @discardableResult
    func store(_ partition: TopicPartition, next: Int64, settled: [Int64] = [], newestMs: Int64? = nil) -> Bool {
        guard consumer.assignment.contains(partition) else { return false }
        var beyond = SettledOffsets(base: next)
        for offset in settled { beyond.insert(offset) }
        beyond.newestMs = newestMs
        stored[partition] = PartitionOffset(
            partition: partition, offset: next, settled: beyond.isEmpty ? nil : beyond)
        return true
    }

    func kafka(_ consumer: KafkaConsumer, progressOf partition: TopicPartition) -> PartitionOffset? {
        stored[partition] ?? ledger.progress(of: partition)
    }

    func kafka(_ consumer: KafkaConsumer, willRevoke partitions: [TopicPartition], lost: Bool) -> KafkaRevocation {
        willRevoke += 1
        return revocationAnswer
    }

    func kafka(_ consumer: KafkaConsumer, didMeet event: KafkaConsumerEvent) {
        switch event {
        case .assigned(let partitions):
            assignments += 1
            for partition in partitions { ledger.assign(partition) }
            onAssigned?()
        case .revoked(let partitions, let lost):
            revocations.append((partitions, lost))
            for partition in partitions { stored[partition] = nil }
            onRevoked?()
        case .committed(let offsets, let error): commits.append((offsets, error))
        case .failed(let error, _), .fatal(let error): failures.append(error)
        case .restarted(let partition, let due, let offset):
            restarts.append(Restart(due: due, offset: offset))
            ledger.assign(partition)
        case .passed(let partition, let start, let offset): ledger.pass(partition, from: start, to: offset)
        case .unanswered: break
        case .closed: isClosed = true
        }
    }

    func kafka(_ consumer: KafkaConsumer, didLearnCommitted offsets: [PartitionOffset]) {
        committedAtStart += offsets
        for one in offsets { ledger.noteCommitted(one.partition, offset: one.offset, settled: one.settled) }
    }

    func kafka(_ consumer: KafkaConsumer, didReceiveStatistics json: UnsafeRawBufferPointer) { statistics += 1 }

    func committedTo(_ offset: Int64) -> Bool {
        commits.contains { $0.error == nil && $0.offsets.contains { $0.offset == offset } }
    }
}

/// Polls all members by their wake descriptors, and has them commit, until `condition` holds; false when `seconds`
/// passed first.
func pump(_ members: [Member], seconds: Double = Patience.seconds, until condition: () -> Bool) -> Bool {
    let end = now() + seconds
    while !condition() {
        let left = end - now()
        if left <= 0 { return false }
        var items = members.map { pollfd(fd: $0.consumer.wakeFD, events: Int16(POLLIN), revents: 0) }
        poll(&items, UInt(items.count), Int32(min(left * 1000, 1000)) + 1)
        // Only those that asked: a missed wake-up shows as a test that times out.
        for (item, member) in zip(items, members) where item.revents != 0 { member.consumer.poll(max: 100) }
        for member in members { member.consumer.commitChanges() }
    }
    return true
}

func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// Writes and waits for the reports; returns them by opaque number.
@discardableResult
func write(
    _ producer: KafkaProducer, _ topic: String, _ records: [(key: String?, value: String?, partition: Int32?)],
    seconds: Int = 15
) throws -> [UInt64: DeliveryReport] {
    guard let topic = producer.topic(topic) else { throw Broken("no topic") }
    var reports: [UInt64: DeliveryReport] = [:]
    for (index, record) in records.enumerated() {
        let outcome = producer.produce(
            to: topic, keyBytes: record.key.map { Array($0.utf8) }, valueBytes: record.value.map { Array($0.utf8) },
            partition: record.partition, opaque: UInt64(index) + 1)
        if outcome != .queued { throw Broken("\(outcome)") }
    }
    let done = producer.flush(timeoutMs: seconds * 1000) { reports[$0.opaque] = $0 }
    if !done { throw Broken("not flushed, \(producer.pendingCount) pending") }
    return reports
}

struct Broken: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// Waits for a descriptor as a loop would; false when nothing came.
func waitReadable(_ descriptor: Int32) -> Bool {
    var item = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&item, 1, Int32(Patience.seconds * 1000)) > 0
}
