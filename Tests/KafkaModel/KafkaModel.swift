// SPDX-License-Identifier: Apache-2.0
package import Kafka

private struct WeakClient<Client: AnyObject> {
    weak var client: Client?
}

/// A model of a Kafka cluster with its clients, in one thread and in virtual time.
///
/// It reads no clock and makes no random number of its own: `nowNanos` and `random` come from the world. What happens later
/// lies in a queue of events; the world lets it happen with `runNext` when it is due. Requests of one connection keep their
/// order; connections have no order among each other. A group's coordinator and a partition's leader are brokers by number.
package final class KafkaModel {
    package var settings: KafkaModelSettings
    let now: () -> UInt64
    private let random: () -> UInt64
    private var events = EventHeap()
    /// How many events have happened.
    package private(set) var runs = 0
    private(set) var topics: [String: ModelTopic] = [:]
    /// In the order of their creation.
    package private(set) var topicNames: [String] = []
    private(set) var groups: [String: ModelGroup] = [:]
    private var isDown: [Bool]
    /// Clients in the order of their creation, as long as their owners keep them.
    private var groupClients: [WeakClient<ModelGroupClient>] = []
    private var producers: [WeakClient<ModelProducer>] = []
    /// One line per step of the brokers, for the log of a seed; nil drops them.
    package var log: ((String) -> Void)?
    /// Receives each offset that a member's commit stored.
    package var didCommit: ((_ topic: String, _ partition: Int32, _ offset: Int64) -> Void)?

    /// - Parameters:
    ///   - nowNanos: the world's time.
    ///   - random: 64 random bits.
    package init(
        _ settings: KafkaModelSettings = KafkaModelSettings(), nowNanos: @escaping () -> UInt64,
        random: @escaping () -> UInt64
    ) {
        self.settings = settings
        now = nowNanos
        self.random = random
        isDown = Array(repeating: false, count: max(1, settings.brokers))
    }

    // MARK: - Events

    /// When the next event is due; nil if none waits.
    package var nextNanos: UInt64? { events.nextNanos }

    /// Lets the next event happen. The world's time must have reached it.
    package func runNext() {
        runs &+= 1
        events.pop()?()
    }

    /// Lets all events happen that are due now.
    package func runDue() {
        while let next = events.nextNanos, next <= now() { events.pop()?() }
    }

    func after(_ nanos: UInt64, _ body: @escaping () -> Void) { events.push(now() &+ nanos, body) }

    func at(_ nanos: UInt64, _ body: @escaping () -> Void) { events.push(max(nanos, now()), body) }

    /// Frees what waits, which refers to the world.
    package func end() {
        events = EventHeap()
        topics = [:]
        groups = [:]
        (log, didCommit) = (nil, nil)
    }

    // MARK: - Clients

    func add(_ client: ModelGroupClient) {
        groupClients.removeAll { $0.client == nil }
        groupClients.append(WeakClient(client: client))
    }

    func add(_ producer: ModelProducer) {
        producers.removeAll { $0.client == nil }
        producers.append(WeakClient(client: producer))
    }

    /// The group clients of a process that its owners keep, in the order of their creation.
    package func groupClients(of host: ModelHost) -> [ModelGroupClient] {
        groupClients.compactMap(\.client).filter { $0.host === host }
    }

    package func producers(of host: ModelHost) -> [ModelProducer] {
        producers.compactMap(\.client).filter { $0.host === host }
    }

    // MARK: - Random numbers

    func pick(_ range: ClosedRange<UInt64>) -> UInt64 {
        let width = range.upperBound - range.lowerBound
        return width == .max ? random() : range.lowerBound + random() % (width + 1)
    }

    func pick(_ range: ClosedRange<Int>) -> Int {
        range.lowerBound + Int(random() % UInt64(range.upperBound - range.lowerBound + 1))
    }

    func chance(_ share: Double) -> Bool { share > 0 && Double(random() >> 11) / Double(1 << 53) < share }

    // MARK: - Topics

    package func createTopic(_ name: String, partitions: Int, usesAppendTime: Bool = false) {
        guard topics[name] == nil else { return }
        topicNames.append(name)
        topics[name] = ModelTopic(partitions: max(1, partitions), usesAppendTime: usesAppendTime)
    }

    /// More partitions, which no client has noticed.
    package func addPartitions(_ count: Int, to topic: String) { topics[topic]?.add(partitions: count) }

    package func partitionCount(of topic: String) -> Int { topics[topic]?.partitions.count ?? 0 }

    /// The kept records of a partition.
    package func records(_ topic: String, _ partition: Int) -> ArraySlice<ModelRecord> {
        log(topic, Int32(partition))?.records ?? []
    }

    /// The oldest kept offset, and that of the next record.
    package func range(_ topic: String, _ partition: Int) -> Range<Int64> {
        log(topic, Int32(partition)).map { $0.start..<$0.end } ?? 0..<0
    }

    func log(_ topic: String, _ partition: Int32) -> ModelLog? {
        guard let partitions = topics[topic]?.partitions, partitions.indices.contains(Int(partition)) else {
            return nil
        }
        return partitions[Int(partition)]
    }

    /// Writes a record without a client.
    @discardableResult
    package func append(_ record: ModelRecord, to topic: String, _ partition: Int) -> Int64? {
        log(topic, Int32(partition))?.append(record, wallMs: settings.wallMs(now()), by: topics[topic])
    }

    /// The partition that the Java client chooses for a key.
    package func partition(of key: [UInt8], in topic: String) -> Int {
        let count = partitionCount(of: topic)
        return count == 0 ? 0 : Int(Murmur2.hash(key) & 0x7fff_ffff) % count
    }

    // MARK: - Faults of topics

    /// Retention: records before `offset` are gone.
    package func trim(_ topic: String, _ partition: Int, to offset: Int64) {
        log(topic, Int32(partition))?.trim(to: offset)
    }

    /// A leader without the log's end: records from `offset` on are gone, and their offsets are given again.
    package func cut(_ topic: String, _ partition: Int, to offset: Int64) {
        log(topic, Int32(partition))?.cut(to: offset)
    }

    /// Deletes the topic and creates it again, empty. Kafka deletes the groups' offsets too, unless they come from elsewhere.
    package func recreate(_ topic: String, keepsOffsets: Bool = false) {
        for partition in topics[topic]?.partitions ?? [] { partition.clear() }
        if keepsOffsets { return }
        for group in groups.keys.sorted() { groups[group]?.deleteOffsets(of: topic) }
    }

    /// Replaces this cluster by another one, which has no group and receives nothing that was sent before. The topics keep their
    /// records until they are made again. All clients have ended.
    package func becomeOther(_ clusterID: String) {
        settings.clusterID = clusterID
        events = EventHeap()
        groups = [:]
        for broker in isDown.indices { setDown(broker, false) }
    }

    /// Offsets that hold no record, as a transaction's marker.
    package func skipOffsets(_ topic: String, _ partition: Int, count: Int64) {
        log(topic, Int32(partition))?.skip(count)
    }

    /// A partition without a leader is neither read nor written.
    package func setLeaderless(_ topic: String, _ partition: Int, _ isLeaderless: Bool) {
        guard let log = log(topic, Int32(partition)) else { return }
        log.isLeaderless = isLeaderless
        log.wakeReaders()
    }

    /// Brokers refuse each record of the topic with this code; nil ends that.
    package func refuse(_ topic: String, code: Int32?) { topics[topic]?.refusal = code }

    /// The largest record that the topic takes, in bytes.
    package func limitRecords(_ topic: String, bytes: Int) { topics[topic]?.bytesMax = bytes }

    // MARK: - Brokers and groups

    package func setDown(_ broker: Int, _ down: Bool) {
        guard isDown.indices.contains(broker), isDown[broker] != down else { return }
        isDown[broker] = down
        log?("broker \(broker) \(down ? "goes down" : "comes up")")
        if down { return }
        for name in groups.keys.sorted() where coordinator(of: name) == broker { groups[name]?.coordinatorReturned() }
        for name in topicNames { topics[name]?.partitions.forEach { $0.wakeReaders() } }
    }

    func isUp(_ broker: Int) -> Bool { isDown.indices.contains(broker) && !isDown[broker] }

    var isAnyBrokerUp: Bool { isDown.contains(false) }

    func coordinator(of group: String) -> Int { Int(Murmur2.hash(Array(group.utf8)) & 0x7fff_ffff) % isDown.count }

    func leader(_ topic: String, _ partition: Int32) -> Int {
        (Int(Murmur2.hash(Array(topic.utf8)) & 0xffff) + Int(partition)) % isDown.count
    }

    func canServe(_ topic: String, _ partition: Int32) -> Bool {
        isUp(leader(topic, partition)) && log(topic, partition)?.isLeaderless == false
    }

    func group(_ name: String) -> ModelGroup {
        if let group = groups[name] { return group }
        let group = ModelGroup(name, self)
        groups[name] = group
        return group
    }

    /// The group's next offset; nil if it has none.
    package func committed(_ group: String, _ topic: String, _ partition: Int) -> GroupOffset? {
        groups[group]?.offset(topic, Int32(partition), named: TopicPartition(topic: 0, partition: Int32(partition)))
    }

    /// Commits without a member, as a tool or another program would.
    package func setCommitted(_ group: String, _ topic: String, _ partition: Int, offset: Int64, metadata: [UInt8] = [])
    {
        self.group(group).setOffset(topic, Int32(partition), offset, metadata)
    }

    /// The coordinator forgets the group's members, as one does that lost its memory of them. They learn it later.
    package func forgetMembers(of group: String) { groups[group]?.forgetMembers() }

    package func memberCount(of group: String) -> Int { groups[group]?.members.count ?? 0 }

    package func isStable(_ group: String) -> Bool { groups[group]?.isStable ?? false }
}
