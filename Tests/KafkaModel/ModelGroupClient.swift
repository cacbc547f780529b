// SPDX-License-Identifier: Apache-2.0
import CostCounting
package import Kafka

/// The model's group consumer, with librdkafka's behaviour as `KafkaConsumer` sees it. Where its owner releases it without
/// closing, its membership ends with its session.
package final class ModelGroupClient: GroupClient {
    /// What lies between the client's own thread and the owner's `poll`.
    enum Item {
        case record(ModelRecord, TopicPartition, version: UInt)
        case end(TopicPartition, offset: Int64, version: UInt)
        /// Offsets without a record: the library moves its position, and tells nobody.
        case passed(TopicPartition, to: Int64, version: UInt)
        case rebalance(GroupRebalance)
        case commitEnded([GroupOffset], KafkaError?)
        case committed([GroupOffset]?, round: UInt)
        case failed(KafkaError, TopicPartition?)
    }

    package let topics: [String]
    package let reportsEnds: Bool
    package let startsAtOldest: Bool
    package let isToldOfEmptyShares = true
    let host: ModelHost
    let options: ModelGroupOptions
    private let wake: any KafkaModelWake
    private var items: [Item] = []
    /// The index of the next one.
    private var nextItem = 0
    /// The whole client has failed.
    private(set) package var fatalError: KafkaError?
    private(set) lazy var membership = ModelMembership(self, coordinator)
    private(set) lazy var fetcher = ModelFetcher(self)
    private let coordinator: ModelConnection
    private let lookup: ModelConnection
    private var endsAnswer: EndsAnswer?
    private var isAskingEnds = false
    /// Commits without an answer.
    private(set) var openCommits = 0
    private var hasToldOutage = false

    var model: KafkaModel { host.model }

    init(_ configuration: KafkaConfiguration, topics: [String], reportsEnds: Bool, _ host: ModelHost) {
        self.topics = topics
        self.reportsEnds = reportsEnds
        self.host = host
        options = ModelGroupOptions(configuration)
        startsAtOldest = options.startsAtOldest
        wake = host.makeWake()
        coordinator = ModelConnection(host)
        lookup = ModelConnection(host)
        host.model.add(self)
        membership.start()
    }

    package var steadyMs: Int64 { Int64(host.steadyNanos() / 1_000_000) }

    package var wallMs: Int64 { host.wallMs() }
    package var clusterID: String? { model.settings.clusterID }

    // MARK: - Polling

    package var wakeFD: Int32 { wake.descriptor }

    /// Nothing blocks in virtual time.
    package func wait(milliseconds: Int32) {}

    func give(_ item: Item) {
        items.append(item)
        wake.signal()
    }

    func signal() { wake.signal() }

    /// Records and ends that wait.
    var waitingCount: Int { items.count - nextItem }

    package func poll(max: Int, for consumer: KafkaConsumer) -> Int {
        Counting.outside { pollAll(max: max, for: consumer) }
    }

    private func pollAll(max: Int, for consumer: KafkaConsumer) -> Int {
        wake.drain()
        membership.notePoll()
        let receiver = consumer.delegate
        var served = 0
        while served < max, nextItem < items.count {
            let item = items[nextItem]
            nextItem += 1
            if Counting.inside({ serve(item, to: consumer, for: receiver) }) { served += 1 }
        }
        if nextItem == items.count {
            items.removeAll(keepingCapacity: true)
            nextItem = 0
        } else {
            wake.signal()
        }
        fetcher.goOn()
        return served
    }

    /// Returns whether it counts as a message.
    private func serve(_ item: Item, to consumer: KafkaConsumer, for receiver: (any KafkaConsumerDelegate)?) -> Bool {
        switch item {
        case .record(let record, let partition, let version):
            guard fetcher.deliver(partition, version, next: record.offset + 1) else { return false }
            var record = record
            if let translation = host.translation {
                record.value = record.value.map { translation.read($0, of: topics[partition.topic]) }
            }
            record.withKafkaRecord(partition) { consumer.take($0, for: receiver) }
            return true
        case .end(let partition, let offset, let version):
            guard fetcher.deliver(partition, version, next: offset) else { return false }
            consumer.tookEnd(of: partition, at: offset)
            return true
        case .passed(let partition, let offset, let version): _ = fetcher.deliver(partition, version, next: offset)
        case .failed(let error, let partition):
            consumer.record(error, partition: partition)
            return true
        case .rebalance(let change): consumer.rebalance(change)
        case .commitEnded(let offsets, let error): consumer.commitEnded(offsets, error)
        case .committed(let answer, let round): consumer.committedCame(answer, round: round)
        }
        return false
    }

    /// The client fails for good, as a static member does whose place another took.
    func fail(_ error: KafkaError) {
        if fatalError != nil { return }
        fatalError = KafkaError(code: error.code, isFatal: true)
        fetcher.stopAll()
        give(.failed(error, nil))
    }

    /// A broker was not reached; the client tells an outage once.
    func noteReached(_ isReached: Bool) {
        if isReached {
            hasToldOutage = false
        } else if !hasToldOutage, !model.isAnyBrokerUp {
            hasToldOutage = true
            give(.failed(.transport, nil))
        }
    }

    // MARK: - Membership

    package var isCooperative: Bool { options.strategy.isCooperative }
    package var isAssignmentLost: Bool { membership.isLost }
    package var isClosed: Bool { membership.isClosed }

    package func beginClose() -> KafkaError? {
        membership.close()
        wake.signal()
        return nil
    }

    // MARK: - Assignment

    package func assign(_ starts: [PartitionStart]) -> KafkaError? {
        fetcher.replace(starts)
        membership.assignCalled()
        return nil
    }

    package func assignMore(_ starts: [PartitionStart]) -> KafkaError? {
        fetcher.add(starts)
        membership.assignCalled()
        return nil
    }

    package func unassign(_ partitions: [TopicPartition]) -> KafkaError? {
        fetcher.remove(partitions)
        membership.unassignCalled()
        return nil
    }

    package func unassignAll() -> KafkaError? {
        fetcher.stopAll()
        membership.unassignCalled()
        return nil
    }

    // MARK: - Offsets

    package func commit(_ offsets: [GroupOffset]) -> KafkaError? {
        openCommits += 1
        Counting.outside { send(offsets, by: membership.identity, untilNanos: model.now() &+ 10_000_000_000) }
        return nil
    }

    private func send(_ offsets: [GroupOffset], by identity: ModelGroup.Identity, untilNanos: UInt64) {
        let items = offsets.compactMap { one in
            one.offset.map { (place: place(one.partition), offset: $0, metadata: one.metadata) }
        }
        coordinator.ask(broker: coordinatorBroker, losing: model.settings.lostGroupCalls) { [self] reply in
            reply(model.group(options.group).commit(by: identity, items))
        } _: { [self] (errors: [KafkaError?]?) in
            guard let errors else {
                noteReached(false)
                if model.now() < untilNanos {
                    return host.after(model.pick(model.settings.retryNanos)) { [self] in
                        send(offsets, by: identity, untilNanos: untilNanos)
                    }
                }
                return commitEnded(offsets, .waitsForCoordinator)
            }
            noteReached(true)
            let answers = zip(offsets.filter { $0.offset != nil }, errors).map {
                GroupOffset(partition: $0.partition, offset: $0.offset, error: $1)
            }
            let first = errors.lazy.compactMap { $0 }.first
            commitEnded(answers, answers.isEmpty ? .noOffset : first)
            if let first { membership.heardOf(first) }
        }
    }

    private func commitEnded(_ offsets: [GroupOffset], _ error: KafkaError?) {
        openCommits -= 1
        give(.commitEnded(offsets, error))
        membership.commitEnded()
    }

    package func askCommitted(_ partitions: [TopicPartition], round: UInt) -> Bool {
        if partitions.isEmpty { return false }
        coordinator.ask(broker: coordinatorBroker, losing: model.settings.lostGroupCalls) { [self] reply in
            let group = model.group(options.group)
            reply(
                partitions.map { partition in
                    group.offset(topics[partition.topic], partition.partition, named: partition)
                        ?? GroupOffset(partition: partition, offset: nil)
                })
        } _: { [self] (answer: [GroupOffset]?) in
            noteReached(answer != nil)
            // A thread of its own waits for the answer, and may rest before it passes it on. A refusal is delayed.
            let rest: UInt64 = model.chance(model.settings.lateAnswers) ? model.pick(0...5_000_000_000) : 0
            host.after(rest + (answer == nil ? 1_000_000_000 : 0)) { [self] in
                give(.committed(answer, round: round))
            }
        }
        return true
    }

    package func askEnds(_ partitions: [TopicPartition], round: UInt, nowMs: Int64) -> Bool {
        if isAskingEnds { return false }
        isAskingEnds = true
        lookup.ask(broker: { [model] in (0..<model.settings.brokers).first { model.isUp($0) } }) { [self] reply in
            var answer = EndsAnswer(round: round, askedMs: nowMs, reach: .whole)
            let reached = partitions.filter { model.canServe(topics[$0.topic], $0.partition) }
            if reached.count < partitions.count {
                // One partition without a leader prevents the answer for all ends.
                (answer.reach, answer.error) = (.partial, .timedOut)
            } else {
                answer.ranges = reached.map { partition in
                    let range = model.range(topics[partition.topic], Int(partition.partition))
                    return (partition: partition, range: range)
                }
            }
            reply(answer)
        } _: { [self] (answer: EndsAnswer?) in
            isAskingEnds = false
            endsAnswer = answer ?? EndsAnswer(round: round, askedMs: nowMs, reach: .none, error: .timedOut)
        }
        return true
    }

    package func takeEnds() -> EndsAnswer? {
        defer { endsAnswer = nil }
        return endsAnswer
    }

    package func fetchedEnd(_ partition: TopicPartition) -> Int64? { fetcher.end(of: partition) }

    package func countPartitions(
        of topics: [String], timeoutMs: Int, _ done: @escaping @Sendable (Int?) -> Void
    ) {
        lookup.ask(broker: { [model] in (0..<model.settings.brokers).first { model.isUp($0) } }) { [self] reply in
            reply(topics.reduce(0) { $0 + model.partitionCount(of: $1) })
        } _: { (count: Int?) in
            done(count)
        }
    }

    package func askShares(
        of topics: [String], timeoutMs: Int, _ done: @escaping @Sendable ([TopicShare]?) -> Void
    ) {
        lookup.ask(broker: coordinatorBroker) { [self] reply in
            let group = model.group(options.group)
            guard group.isStable else { return reply(nil) }
            let held = Set(group.members.flatMap(\.assigned))
            reply(
                topics.map { topic in
                    TopicShare(
                        topic: topic, partitions: model.partitionCount(of: topic),
                        assigned: held.count { $0.topic == topic })
                })
        } _: { (shares: [TopicShare]??) in
            done(shares ?? nil)
        }
    }

    package func positions(of partitions: Set<TopicPartition>) -> [(partition: TopicPartition, offset: Int64)] {
        partitions.sorted().compactMap { partition in fetcher.due(partition).map { (partition, $0) } }
    }

    // MARK: - Fetching

    package func pause(_ partitions: Set<TopicPartition>) { fetcher.setPaused(partitions.sorted(), true) }

    package func resume(_ partitions: Set<TopicPartition>) { fetcher.setPaused(partitions.sorted(), false) }

    package func seekToOldest(_ partition: TopicPartition) -> KafkaError? {
        fetcher.seekToOldest(partition)
        return nil
    }

    func place(_ partition: TopicPartition) -> ModelPlace {
        ModelPlace(topic: topics[partition.topic], partition: partition.partition)
    }

    func coordinatorBroker() -> Int? { model.coordinator(of: options.group) }
}

extension ModelRecord {
    func withKafkaRecord(_ partition: TopicPartition, _ body: (borrowing KafkaRecord) -> Void) {
        (key ?? []).withUnsafeBytes { keyBytes in
            (value ?? []).withUnsafeBytes { valueBytes in
                let record = KafkaRecord(
                    partition: partition, offset: offset, timestamp: (timestampMs, isAppendTime),
                    key: key == nil ? nil : keyBytes, value: value == nil ? nil : valueBytes)
                body(record)
            }
        }
    }
}
