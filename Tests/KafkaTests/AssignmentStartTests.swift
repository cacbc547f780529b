// SPDX-License-Identifier: Apache-2.0
import Glibc
import Support
import Synchronization
import Telemetry
import Testing

@testable import Kafka

@Suite("Where reading begins", .timeLimit(.minutes(10)))
struct AssignmentStartTests {
    /// librdkafka numbers an order to a partition first and passes it on then; one that arrives behind a later number is dropped
    /// in silence. So its thread's order to begin and a pause or resume of the owner's thread must never meet.
    @Test func noPartitionStaysUnreadHoweverLongAThreadRestsWithinTheOrderToBegin() async throws {
        let meeting = Meeting()
        let unread = try await offPool { () throws -> Set<Int32> in
            let broker = try MockBroker()
            let count = 8
            try broker.createTopic("events", partitions: count)
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", (0..<Int32(count)).map { (nil, "v", $0) })
            let configuration = KafkaConfiguration(
                brokers: broker.bootstrap, group: "g", options: ["session.timeout.ms": "6000", "debug": "topic"],
                log: { meeting.note($0.text) })
            let member = Member(try KafkaConsumer(configuration, topics: ["events"]))
            // As a worker does that has user state to apply first.
            member.onAssigned = { member.consumer.pause(member.consumer.assignment) }
            _ = pump([member]) { member.committedAtStart.count == count }
            member.consumer.resume(member.consumer.assignment)
            _ = pump([member]) { member.seen.count == count }
            return Set(0..<Int32(count)).subtracting(member.seen.map(\.partition.partition))
        }
        #expect(unread == [])
        #expect(meeting.wasArranged, "else the library's words have changed")
    }

    /// One record in each of the two partitions of `events`.
    private static func brokerWithTwoRecords() throws -> MockBroker {
        let broker = try MockBroker()
        try broker.createTopic("events", partitions: 2)
        let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
        try write(producer, "events", [(nil, "a", 0), (nil, "b", 1)])
        return broker
    }

    /// 14: COORDINATOR_LOAD_IN_PROGRESS, which is asked again and again.
    private static func loads(_ broker: MockBroker) {
        broker.pushErrors(api: .offsetFetch, Array(repeating: 14, count: 1000))
    }

    @Test func aPartitionThatIsPausedWhileTheLibraryAsksWhereToBeginIsReadAfterwards() async throws {
        struct Outcome: Sendable { var hasBegun: Bool, isRead: Bool }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try Self.brokerWithTwoRecords()
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            member.onAssigned = { member.consumer.pause(member.consumer.assignment) }
            member.consumer.assignmentPatienceMs = 0
            Self.loads(broker)
            let hasBegun = pump([member]) { !member.consumer.assignment.isEmpty }
            member.consumer.resume(member.consumer.assignment)
            broker.clearErrors(api: .offsetFetch)
            return Outcome(hasBegun: hasBegun, isRead: pump([member]) { member.seen.count == 2 })
        }
        #expect(outcome.hasBegun && outcome.isRead, "\(outcome)")
    }

    @Test func aMemberThatIsForgottenWhileItAsksWhereToBeginComesBack() async throws {
        struct Outcome: Sendable { var hasAsked: Bool, isLost: Bool, isRead: Bool }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try Self.brokerWithTwoRecords()
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            Self.loads(broker)
            let hasAsked = pump([member]) { member.consumer.pendingAssignment != nil }
            // 25: UNKNOWN_MEMBER_ID.
            broker.pushErrors(api: .heartbeat, [25])
            let isLost = pump([member]) { member.revocations.contains { $0.lost } }
            broker.clearErrors(api: .offsetFetch)
            let isRead = pump([member]) { member.seen.count == 2 }
            return Outcome(hasAsked: hasAsked, isLost: isLost, isRead: isRead)
        }
        #expect(outcome.hasAsked && outcome.isLost && outcome.isRead)
    }

    /// librdkafka joins anew by itself then: an eager group tells of a new assignment without a revocation before it, a
    /// cooperative one takes back a part of what it has just given, and never gives the rest again.
    @Test(arguments: ["range,roundrobin"] + (KafkaConfiguration.allowsCooperative ? ["cooperative-sticky"] : []))
    func aTopicThatGoesWhileItIsAskedWhereToBeginTakesNothingElseWithIt(strategy: String) async throws {
        struct Outcome: Sendable {
            var hasAsked: Bool, isGone: Bool, isRead: Bool, isClosed: Bool
            var topics: Set<Int>
        }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try MockBroker()
            let topics = ["events", "more"]
            for topic in topics { try broker.createTopic(topic, partitions: 2) }
            let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
            try write(producer, "events", [(nil, "a", 0), (nil, "b", 1)])
            let member = try Member(
                broker.bootstrap, group: "g", topics: topics,
                options: [
                    "partition.assignment.strategy": strategy, "topic.metadata.refresh.interval.ms": "300",
                ])
            Self.loads(broker)
            let hasAsked = pump([member]) { member.consumer.pendingAssignment != nil }
            // 3: UNKNOWN_TOPIC_OR_PART.
            broker.setError(topic: "more", 3)
            let isGone = pump([member]) { member.failures.contains { $0.code == 3 } }
            broker.clearErrors(api: .offsetFetch)
            let isRead = pump([member]) { member.seen.count == 2 && member.consumer.assignment.count == 2 }
            let topicsLeft = Set(member.consumer.assignment.map(\.topic))
            let isClosed = member.consumer.close(timeoutMs: 15_000)
            return Outcome(
                hasAsked: hasAsked, isGone: isGone, isRead: isRead, isClosed: isClosed, topics: topicsLeft)
        }
        #expect(outcome.hasAsked && outcome.isGone && outcome.isRead && outcome.isClosed, "\(outcome)")
        #expect(outcome.topics == [0])
    }

    @Test func aMemberThatEndsWhileItAsksWhereToBeginLeavesTheGroup() async throws {
        struct Outcome: Sendable { var hasAsked: Bool, isClosed: Bool, isTakenOver: Bool }
        let hasLeft = Guarded(false)
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try Self.brokerWithTwoRecords()
            let configuration = KafkaConfiguration(
                brokers: broker.bootstrap, group: "g", options: ["session.timeout.ms": "6000", "debug": "consumer"],
                log: { line in if line.text.contains("Leaving group") { hasLeft.withLock { $0 = true } } })
            let one = Member(try KafkaConsumer(configuration, topics: ["events"]))
            Self.loads(broker)
            let hasAsked = pump([one]) { one.consumer.pendingAssignment != nil }
            one.consumer.beginClose()
            let isClosed = pump([one]) { one.isClosed }
            broker.clearErrors(api: .offsetFetch)
            let two = try Member(broker.bootstrap, group: "g", topics: ["events"])
            let isTakenOver = pump([two]) { two.seen.count == 2 }
            return Outcome(hasAsked: hasAsked, isClosed: isClosed, isTakenOver: isTakenOver)
        }
        #expect(outcome.hasAsked && outcome.isClosed && outcome.isTakenOver)
        #expect(hasLeft.withLock { $0 })
    }

    /// Brings the two orders together: the library's thread rests within its first order to begin until the owner has given
    /// one, and the owner's rests before its first one until the library's has begun.
    private final class Meeting: Sendable {
        private let hasBegun = Atomic(false)
        private let hasPaused = Atomic(false)

        var wasArranged: Bool { hasBegun.load(ordering: .relaxed) && hasPaused.load(ordering: .relaxed) }

        /// A line that the library logs on the thread that gives the order.
        func note(_ line: String) {
            if line.contains("fetch_start"), line.contains("new version barrier") {
                if hasBegun.exchange(true, ordering: .relaxed) { return }
                rest(until: hasPaused)
                // Its sweep over the partitions takes microseconds.
                usleep(50_000)
            } else if line.contains("Application pausing") {
                rest(until: hasBegun)
            } else if line.contains("Pause events ["), line.contains("thrd:app") {
                hasPaused.store(true, ordering: .relaxed)
            }
        }

        private func rest(until flag: borrowing Atomic<Bool>) {
            for _ in 0..<200 where !flag.load(ordering: .relaxed) { usleep(1000) }
        }
    }
}
