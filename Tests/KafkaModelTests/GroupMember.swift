// SPDX-License-Identifier: Apache-2.0
import Kafka

/// A group member for tests over any client: notes what it hears, and commits through the real offset ledger.
final class GroupMember: KafkaConsumerDelegate {
    let name: String
    let consumer: KafkaConsumer
    /// Commits this offset, whatever is settled.
    var commitsAt: Int64?
    /// Settles each record at once.
    var settlesAll = true
    var answer = KafkaRevocation.complete
    /// `topic/partition@offset=value` of each record to process, in the order of arrival.
    var seen: [String] = []
    var offsets: [TopicPartition: [Int64]] = [:]
    /// What the former owner had settled, or was read before in this assignment.
    var skipped: [String] = []
    var assignments: [[TopicPartition]] = []
    var revocations: [(partitions: [TopicPartition], lost: Bool)] = []
    var restarts: [(due: Int64, at: Int64)] = []
    var commits: [(offsets: [PartitionOffset], error: KafkaError?)] = []
    var learned: [PartitionOffset] = []
    var failures: [KafkaError] = []
    var fatal: KafkaError?
    var ends: [TopicPartition: Int64] = [:]
    var isClosed = false
    var slots: [(partition: TopicPartition, offset: Int64, slot: OffsetLedger.Slot)] = []
    private var ledger = OffsetLedger()

    init(_ name: String, _ consumer: KafkaConsumer) {
        self.name = name
        self.consumer = consumer
        consumer.delegate = self
    }

    func kafka(_ consumer: KafkaConsumer, didReceive record: borrowing KafkaRecord) {
        let value = record.value.map { String(decoding: $0, as: UTF8.self) } ?? "null"
        let text = "\(consumer.topics[record.partition.topic])/\(record.partition.partition)@\(record.offset)=\(value)"
        switch ledger.receive(
            record.partition, offset: record.offset, bytes: record.byteCount, nowNanos: 0, timeMs: record.timestampMs)
        {
        case .tracked(let slot):
            seen.append(text)
            offsets[record.partition, default: []].append(record.offset)
            if settlesAll { _ = ledger.settle(slot) } else { slots.append((record.partition, record.offset, slot)) }
        case .otherEpoch: consumer.rewind(record.partition)
        default: skipped.append(text)
        }
    }

    /// Settles the records that were read and kept, at these offsets.
    func settle(_ offsets: Set<Int64>) {
        for one in slots where offsets.contains(one.offset) { _ = ledger.settle(one.slot) }
        slots.removeAll { offsets.contains($0.offset) }
    }

    func settle(_ partition: TopicPartition, _ offset: Int64) {
        for one in slots where one.partition == partition && one.offset == offset { _ = ledger.settle(one.slot) }
        slots.removeAll { $0.partition == partition && $0.offset == offset }
    }

    func kafka(_ consumer: KafkaConsumer, progressOf partition: TopicPartition) -> PartitionOffset? {
        commitsAt.map { PartitionOffset(partition: partition, offset: $0) } ?? ledger.progress(of: partition)
    }

    func kafka(_ consumer: KafkaConsumer, willRevoke partitions: [TopicPartition], lost: Bool) -> KafkaRevocation {
        answer
    }

    func kafka(_ consumer: KafkaConsumer, didLearnCommitted offsets: [PartitionOffset]) {
        learned += offsets
        for one in offsets { ledger.noteCommitted(one.partition, offset: one.offset, settled: one.settled) }
    }

    func kafka(_ consumer: KafkaConsumer, didMeet event: KafkaConsumerEvent) {
        switch event {
        case .assigned(let partitions):
            assignments.append(partitions)
            for partition in partitions { ledger.assign(partition) }
        case .revoked(let partitions, let lost):
            revocations.append((partitions, lost))
            for partition in partitions {
                ledger.revoke(partition)
                slots.removeAll { $0.partition == partition }
            }
        case .committed(let offsets, let error): commits.append((offsets, error))
        case .failed(let error, _): failures.append(error)
        case .unanswered: break
        case .restarted(let partition, let due, let at):
            restarts.append((due, at))
            ledger.assign(partition)
        case .passed(let partition, let start, let offset):
            ends[partition] = offset
            ledger.pass(partition, from: start, to: offset)
        case .fatal(let error): fatal = error
        case .closed: isClosed = true
        }
    }
}

extension Array where Element == String {
    /// The same without the order of partitions among each other.
    var byPartition: [String] {
        self.enumerated().sorted { ($0.element.place, $0.offset) < ($1.element.place, $1.offset) }.map(\.element)
    }
}

extension String {
    fileprivate var place: Substring { prefix { $0 != "@" } }
}
