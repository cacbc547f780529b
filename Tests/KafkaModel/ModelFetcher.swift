// SPDX-License-Identifier: Apache-2.0
import Kafka

/// Reads the assigned partitions of a client ahead.
///
/// A pause, a seek and each new assignment begin a new version of a partition; what was read ahead in an earlier version is
/// dropped, and read again from the last delivered record.
final class ModelFetcher {
    private struct Reading {
        let partition: TopicPartition
        /// The next one to fetch; nil: to be asked for, or failed for good.
        var next: Int64?
        /// The next one to deliver.
        var due: Int64?
        /// Of its assignment.
        let start: UInt
        var version: UInt
        var isPaused = false
        var isFetching = false
        var end: Int64?
        var toldEnd: Int64?
        /// Records read ahead and not delivered.
        var ahead = 0
    }

    private unowned let client: ModelGroupClient
    private let connection: ModelConnection
    private var readings: [Reading] = []
    private var lastVersion: UInt = 0
    /// While the owner is to answer a rebalance, nothing arrives.
    private var isHeld = false
    private var model: KafkaModel { client.model }

    init(_ client: ModelGroupClient) {
        self.client = client
        connection = ModelConnection(client.host)
    }

    func replace(_ starts: [PartitionStart]) {
        readings = []
        add(starts)
    }

    func add(_ starts: [PartitionStart]) {
        isHeld = false
        for start in starts {
            lastVersion += 1
            readings.removeAll { $0.partition == start.partition }
            readings.append(Reading(partition: start.partition, start: lastVersion, version: lastVersion))
            begin(start)
        }
        readings.sort { $0.partition < $1.partition }
        goOn()
    }

    private func begin(_ start: PartitionStart) {
        guard let index = index(of: start.partition) else { return }
        switch start.place {
        case .offset(let offset):
            readings[index].next = offset
            readings[index].due = offset
        case .oldest: reset(index)
        case .committed:
            askCommitted(start.partition, readings[index].start)
        }
    }

    /// A pause in between does not take the answer back.
    private func askCommitted(_ partition: TopicPartition, _ start: UInt) {
        connection.ask(broker: client.coordinatorBroker) { [client] reply in
            let offset = client.model.committed(
                client.options.group, client.topics[partition.topic], Int(partition.partition))
            reply(offset?.offset)
        } _: { [weak self] (answer: Int64??) in
            guard let self, let index = index(of: partition), readings[index].start == start else { return }
            guard let answer else {
                return client.host.after(model.pick(model.settings.retryNanos)) { [weak self] in
                    self?.askCommitted(partition, start)
                }
            }
            if let answer {
                readings[index].next = answer
                readings[index].due = answer
            } else {
                reset(index)
            }
            goOn()
        }
    }

    /// Without a usable offset the policy decides.
    private func reset(_ index: Int) {
        let partition = readings[index].partition
        guard client.startsAtOldest else {
            readings[index].next = nil
            return client.give(.failed(.autoOffsetReset, partition))
        }
        let start = model.range(client.topics[partition.topic], Int(partition.partition)).lowerBound
        readings[index].next = start
        readings[index].due = start
        readings[index].toldEnd = nil
    }

    func remove(_ partitions: [TopicPartition]) {
        readings.removeAll { partitions.contains($0.partition) }
        isHeld = false
        goOn()
    }

    func stopAll() {
        readings = []
        isHeld = false
    }

    /// Nothing arrives until the owner has answered a rebalance.
    func hold() {
        isHeld = true
        for index in readings.indices { goBack(index) }
    }

    func setPaused(_ partitions: [TopicPartition], _ isPaused: Bool) {
        for partition in partitions {
            guard let index = index(of: partition) else { continue }
            readings[index].isPaused = isPaused
            goBack(index)
        }
        goOn()
    }

    func seekToOldest(_ partition: TopicPartition) {
        guard let index = index(of: partition) else { return }
        goBack(index)
        reset(index)
        goOn()
    }

    /// Drops what is read ahead.
    private func goBack(_ index: Int) {
        lastVersion += 1
        readings[index].version = lastVersion
        readings[index].next = readings[index].due
        readings[index].ahead = 0
        readings[index].isFetching = false
        readings[index].toldEnd = nil
    }

    /// Whether an item of that version may be delivered now; then the partition is read up to `next`.
    func deliver(_ partition: TopicPartition, _ version: UInt, next: Int64) -> Bool {
        guard let index = index(of: partition), readings[index].version == version else { return false }
        readings[index].due = next
        readings[index].ahead = max(0, readings[index].ahead - 1)
        return true
    }

    /// The offset after all that was delivered.
    func due(_ partition: TopicPartition) -> Int64? { index(of: partition).flatMap { readings[$0].due } }

    func end(of partition: TopicPartition) -> Int64? { index(of: partition).flatMap { readings[$0].end } }

    private func index(of partition: TopicPartition) -> Int? { readings.firstIndex { $0.partition == partition } }

    // MARK: - Fetches

    /// Fetches where nothing hinders it.
    func goOn() {
        if isHeld || client.fatalError != nil { return }
        for index in readings.indices {
            let reading = readings[index]
            guard !reading.isPaused, !reading.isFetching, let next = reading.next,
                reading.ahead < model.settings.prefetchMax
            else { continue }
            readings[index].isFetching = true
            fetch(reading.partition, from: next, reading.version)
        }
    }

    private enum Answer {
        /// - Parameter next: the offset to fetch next, after offsets without a record.
        case records([ModelRecord], next: Int64, end: Int64)
        case outOfRange
        case unavailable
    }

    private func fetch(_ partition: TopicPartition, from offset: Int64, _ version: UInt) {
        let topic = client.topics[partition.topic]
        let delay = model.pick(model.settings.fetchNanos)
        model.after(delay) { [weak self] in
            guard let self, isCurrent(partition, version) else { return }
            connection.ask(broker: { [model] in model.leader(topic, partition.partition) }) { [weak self] reply in
                self?.read(topic, partition, offset, version, reply)
            } _: { [weak self] (answer: Answer?) in
                self?.take(answer ?? .unavailable, partition, offset, version)
            }
        }
    }

    /// At the broker. An empty answer waits for the next change.
    private func read(
        _ topic: String, _ partition: TopicPartition, _ offset: Int64, _ version: UInt,
        _ reply: @escaping (Answer) -> Void
    ) {
        guard let log = model.log(topic, partition.partition), !log.isLeaderless else { return reply(.unavailable) }
        let max = model.pick(model.settings.fetchRecords)
        guard let records = log.read(from: offset, max: max) else { return reply(.outOfRange) }
        // After a pause or a seek the client reports the end again, although nothing is new.
        let knowsEnd =
            index(of: partition).map {
                readings[$0].end == log.end && (readings[$0].toldEnd == log.end || !client.reportsEnds)
            } ?? true
        if records.isEmpty, knowsEnd {
            log.waitForChange { [weak self] in
                guard let self, isCurrent(partition, version) else { return }
                if !model.canServe(topic, partition.partition) { return reply(.unavailable) }
                read(topic, partition, offset, version, reply)
            }
        } else {
            reply(.records(Array(records), next: log.next(after: records, from: offset), end: log.end))
        }
    }

    private func isCurrent(_ partition: TopicPartition, _ version: UInt) -> Bool {
        index(of: partition).map { readings[$0].version == version } ?? false
    }

    private func take(_ answer: Answer, _ partition: TopicPartition, _ offset: Int64, _ version: UInt) {
        guard let index = index(of: partition), readings[index].version == version else { return }
        readings[index].isFetching = false
        client.noteReached(model.isUp(model.leader(client.topics[partition.topic], partition.partition)))
        switch answer {
        case .unavailable:
            readings[index].isFetching = true
            return client.host.after(model.pick(model.settings.retryNanos)) { [weak self] in
                guard let self, isCurrent(partition, version), let index = self.index(of: partition) else { return }
                readings[index].isFetching = false
                goOn()
            }
        case .outOfRange: reset(index)
        case .records(let records, let next, let end):
            for record in records { client.give(.record(record, partition, version: version)) }
            readings[index].ahead += records.count
            if next > records.last.map({ $0.offset + 1 }) ?? offset {
                client.give(.passed(partition, to: next, version: version))
                readings[index].ahead += 1
            }
            readings[index].end = end
            readings[index].next = next
            tellEnd(index)
        }
        goOn()
    }

    private func tellEnd(_ index: Int) {
        let reading = readings[index]
        guard client.reportsEnds, let end = reading.end, reading.next == end, reading.toldEnd != end else { return }
        readings[index].toldEnd = end
        readings[index].ahead += 1
        client.give(.end(reading.partition, offset: end, version: reading.version))
    }
}
