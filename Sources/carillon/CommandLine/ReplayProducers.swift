// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import Glibc
import Kafka

/// Writes a replay's records through one or several producers. All records of one key use the same producer, so their
/// order remains.
///
/// Blocks its thread while the queues are full. For one thread only.
final class ReplayProducers {
    /// The offsets of this replay's records in one partition.
    struct Place {
        var count = 0
        var first: Int64 = .max
        var last: Int64 = -1

        /// The number of these records before an offset: exact if no other producer writes, and at both ends.
        ///
        /// - Parameter end: the partition's end offset. The offset of a record that needed a second attempt may be
        ///   unknown.
        func before(_ offset: Int64, end: Int64) -> Int {
            if offset >= end || (last >= 0 && offset > last) { return count }
            if count == 0 || offset <= first { return 0 }
            return Int(Double(offset - first) / Double(last + 1 - first) * Double(count))
        }
    }

    struct PlaceKey: Hashable {
        var topic: Int
        var partition: Int32
    }

    private let producers: [KafkaProducer]
    private(set) var topics: [String] = []
    private var handles: [String: (index: Int, byProducer: [KafkaTopic])] = [:]
    private var turn = 0
    private var sinceReports = 0
    private(set) var written: [String: Int] = [:]
    private(set) var failures: [String: Int] = [:]
    private(set) var places: [PlaceKey: Place] = [:]

    private static let patienceSeconds = 30

    init(_ configuration: KafkaConfiguration, count: Int, topics: [String]) throws {
        producers = try (0..<count).map { _ in try KafkaProducer(configuration) }
        for name in topics {
            let byProducer = producers.compactMap { $0.topic(name) }
            guard byProducer.count == producers.count else {
                throw ReplayFault(message: "\"\(name)\" is not a topic name")
            }
            handles[name] = (self.topics.count, byProducer)
            self.topics.append(name)
        }
    }

    /// - Returns: false for a refused record, which counts as failed.
    @discardableResult
    func write(_ record: ReplaySource.Record, stop: StopFlag) -> Bool {
        guard let (index, byProducer) = handles[record.topic] else { return false }
        let chosen = choose(record.key)
        let deadline = Loop.monotonicNanos() + UInt64(Self.patienceSeconds) * 1_000_000_000
        while true {
            let outcome = producers[chosen].produce(
                to: byProducer[chosen], keyBytes: record.key, valueBytes: record.value, headers: record.headers,
                opaque: UInt64(index))
            switch outcome {
            case .queued:
                sinceReports += 1
                if sinceReports >= 256 { takeReports() }
                return true
            case .refused(let error):
                failures[error.name, default: 0] += 1
                return false
            case .queueFull:
                guard Loop.monotonicNanos() < deadline, !stop.isSet else {
                    failures[KafkaError.queueFull.name, default: 0] += 1
                    return false
                }
                usleep(2000)
                takeReports()
            }
        }
    }

    func takeReports() {
        sinceReports = 0
        for producer in producers {
            while producer.pollReports(max: 1000, { self.note($0) }) > 0 {}
        }
    }

    /// Waits for the brokers' answers to all records. Returns false if some are missing.
    func finish() -> Bool {
        var isDone = true
        for producer in producers where !producer.flush(timeoutMs: Self.patienceSeconds * 1000, { self.note($0) }) {
            isDone = false
        }
        return isDone
    }

    private func choose(_ key: [UInt8]?) -> Int {
        guard producers.count > 1 else { return 0 }
        guard let key else {
            turn = (turn + 1) % producers.count
            return turn
        }
        // FNV-1a; any evenly distributing hash is good enough.
        let hash = key.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
        return Int(hash % UInt64(producers.count))
    }

    private func note(_ report: DeliveryReport) {
        if let error = report.error {
            failures[error.name, default: 0] += 1
            return
        }
        let index = Int(clamping: report.opaque)
        guard index < topics.count else { return }
        written[topics[index], default: 0] += 1
        let key = PlaceKey(topic: index, partition: report.partition)
        var place = places[key] ?? Place()
        place.count += 1
        if let offset = report.offset {
            place.first = min(place.first, offset)
            place.last = max(place.last, offset)
        }
        places[key] = place
    }
}
