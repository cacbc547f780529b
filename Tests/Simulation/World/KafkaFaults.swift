// SPDX-License-Identifier: Apache-2.0
import Kafka
import KafkaModel
import SimulatedFleet
import SimulatedSystem

/// What goes wrong at Kafka.
final class KafkaFaults {
    private let kafka: KafkaModel
    private let system: SimulatedSystem
    private let story: Story
    /// Events that Kafka dropped, or that a commit of an earlier topic passes over.
    private var dropped: Set<String> = []
    /// A worker may read nothing for some time.
    private let mayStopReading: Bool
    /// Events before that many belonged to a topic that is no more.
    private(set) var earlierEvents = 0
    /// The furthest end of the topics that are no more, by partition.
    private var earlierEnds: [Int64] = []
    private var earlierUntilNanos: UInt64 = 0
    private let sent: () -> [Sent]
    private var brokersAway = 0
    private static let second: UInt64 = 1_000_000_000

    init(_ world: World) {
        kafka = world.kafka
        system = world.system
        story = world.story
        sent = { [unowned world] in world.traffic.sent }
        mayStopReading = world.plan.faults.contains(where: \.mayStopReading)
    }

    /// Events that perhaps no worker can read. Beside those that Kafka dropped: while a worker reads nothing, a topic that is made
    /// again can grow past its place (docs/decisions/settled-offsets.md).
    var lostEvents: Set<String> {
        guard mayStopReading, !earlierEnds.isEmpty else { return dropped }
        let passedOver = sent().dropFirst(earlierEvents).filter { event in
            let partition = Int(event.partition)
            return earlierEnds.indices.contains(partition) && event.offset < earlierEnds[partition]
        }
        return dropped.union(passedOver.map(\.eventID))
    }

    /// Brokers are away: one or all.
    func brokers() {
        let nanos = system.number(Self.second / 10...60 * Self.second)
        let count = kafka.settings.brokers
        let away = system.choice(2) == 0 ? Array(0..<count) : [system.choice(count)]
        tell("brokers \(away) are away for \(nanos / 1_000_000) ms")
        for broker in away { kafka.setDown(broker, true) }
        brokersAway += away.count
        system.after(nanos: nanos) { [kafka, weak self] in
            away.forEach { kafka.setDown($0, false) }
            self?.brokersAway -= away.count
        }
    }

    /// The coordinator forgets its members, or calls to it are lost.
    func group() {
        if system.choice(2) == 0 {
            tell("the coordinator forgets the group's members")
            return kafka.forgetMembers(of: World.group)
        }
        let nanos = system.number(Self.second...60 * Self.second)
        tell("calls to the coordinator are lost for \(nanos / 1_000_000) ms")
        kafka.settings.lostGroupCalls = Double(system.number(5...60)) / 100
        kafka.settings.lateAnswers = Double(system.number(0...100)) / 100
        system.after(nanos: nanos) { [weak self] in self?.endGroupLosses() }
    }

    private func endGroupLosses() {
        kafka.settings.lostGroupCalls = 0
        kafka.settings.lateAnswers = 0
    }

    /// Writes, or their answers, are lost.
    func writes() {
        let nanos = system.number(Self.second...60 * Self.second)
        tell("writes and their answers are lost for \(nanos / 1_000_000) ms")
        kafka.settings.lostWrites = Double(system.number(0...50)) / 100
        kafka.settings.lostWriteAnswers = Double(system.number(0...80)) / 100
        system.after(nanos: nanos) { [weak self] in self?.endWriteLosses() }
    }

    private func endWriteLosses() {
        kafka.settings.lostWrites = 0
        kafka.settings.lostWriteAnswers = 0
    }

    /// A topic takes no records.
    func refusal() {
        let names = kafka.topicNames
        let topic = names[system.choice(names.count)]
        let nanos = system.number(Self.second...60 * Self.second)
        tell("\(topic) takes no records for \(nanos / 1_000_000) ms")
        // TOPIC_AUTHORIZATION_FAILED
        kafka.refuse(topic, code: 29)
        system.after(nanos: nanos) { [kafka] in kafka.refuse(topic, code: nil) }
    }

    /// The network to Kafka, or its disks, are slow.
    func slowness() {
        let nanos = system.number(Self.second...60 * Self.second)
        tell("Kafka is slow for \(nanos / 1_000_000) ms")
        kafka.settings.delayNanos = 1_000_000...system.number(2_000_000...2 * Self.second)
        kafka.settings.fetchNanos = 0...system.number(1...5 * Self.second)
        kafka.settings.writeNanos = 0...system.number(1...3 * Self.second)
        system.after(nanos: nanos) { [weak self] in self?.endSlowness() }
    }

    private func endSlowness() {
        let usual = KafkaModelSettings()
        kafka.settings.delayNanos = usual.delayNanos
        kafka.settings.fetchNanos = usual.fetchNanos
        kafka.settings.writeNanos = usual.writeNanos
    }

    /// A producer of a worker fails for good.
    func failProducer(of host: ModelHost, _ name: String) {
        let producers = kafka.producers(of: host)
        if producers.isEmpty { return }
        tell("a producer of \(name) fails for good")
        // OUT_OF_ORDER_SEQUENCE_NUMBER
        producers[system.choice(producers.count)].fail(code: 45)
    }

    private static let events = "im.events"

    /// A commit on its way while the topic was made again is of the earlier one's offsets. Whoever begins at it does not read the
    /// first events of the new topic.
    func isOfEarlierTopic(_ partition: Int, _ offset: Int64) -> Bool {
        guard system.nowNanos < earlierUntilNanos, earlierEnds.indices.contains(partition),
            offset <= earlierEnds[partition]
        else { return false }
        lose(partition, from: 0, before: offset)
        return true
    }

    /// Events from the committed offset on, up to that one, may never be read.
    private func lose(_ partition: Int, from first: Int64? = nil, before end: Int64) {
        let committed = first ?? kafka.committed(World.group, Self.events, partition)?.offset ?? 0
        for event in sent().dropFirst(earlierEvents)
        where event.partition == partition && (committed..<max(committed, end)).contains(event.offset) {
            dropped.insert(event.eventID)
        }
    }

    /// Retention drops events: those that were read, and sometimes newer ones.
    func retain() {
        for partition in 0..<kafka.partitionCount(of: Self.events) {
            let range = kafka.range(Self.events, partition)
            let committed = max(range.lowerBound, kafka.committed(World.group, Self.events, partition)?.offset ?? 0)
            let unread = max(0, range.upperBound - committed)
            let end = min(range.upperBound, committed) + Int64(system.choice(Int(unread) + 1))
            tell("\(Self.events) \(partition) begins at \(end), and is committed to \(committed)")
            lose(partition, before: end)
            kafka.trim(Self.events, partition, to: end)
        }
    }

    /// Not while brokers are away: a consumer would go on in the new topic at its old place.
    func recreate() {
        guard brokersAway == 0 else { return }
        tell("\(Self.events) is deleted and made again")
        let partitions = 0..<kafka.partitionCount(of: Self.events)
        // The committed offset may be one of an earlier topic.
        for partition in partitions { lose(partition, from: earlierEnds.isEmpty ? nil : 0, before: .max) }
        earlierEvents = sent().count
        earlierEnds = partitions.map { partition in
            let end = kafka.range(Self.events, partition).upperBound
            return earlierEnds.indices.contains(partition) ? max(end, earlierEnds[partition]) : end
        }
        // A worker may pause in between.
        earlierUntilNanos = system.nowNanos &+ 120 * Self.second
        kafka.recreate(Self.events)
    }

    /// All is in another cluster, which lacks these events. Nothing of an earlier topic is left.
    func didMove(lacking missing: Set<String>) {
        dropped = lostEvents.union(missing)
        (earlierEnds, earlierUntilNanos) = ([], 0)
    }

    func heal() {
        for broker in 0..<kafka.settings.brokers { kafka.setDown(broker, false) }
        for topic in kafka.topicNames { kafka.refuse(topic, code: nil) }
        endGroupLosses()
        endWriteLosses()
        endSlowness()
    }

    private func tell(_ text: String) { story.tell("fault: \(text)") }
}
