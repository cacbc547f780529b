// SPDX-License-Identifier: Apache-2.0
import Kafka
import Support
import Testing

/// Members of one group that read different topics: a worker reads user state apart from events.
@Suite("Split subscriptions", .timeLimit(.minutes(10)))
struct SplitSubscriptionTests {
    private static func write(_ producer: KafkaProducer, _ mark: String, count: Int = 40) throws {
        for topic in ["events", "state"] {
            try KafkaTests.write(producer, topic, (0..<count).map { (nil, "\(topic)-\(mark)-\($0)", Int32($0 % 4)) })
        }
    }

    private static func cluster() throws -> (MockBroker, KafkaProducer) {
        let broker = try MockBroker()
        try broker.createTopic("events", partitions: 4)
        try broker.createTopic("state", partitions: 4)
        return (broker, try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap)))
    }

    /// Whether these members together have committed all four partitions up to `offset`.
    private static func areCommitted(_ members: [Member], _ offset: Int64) -> Bool {
        var done: Set<Int32> = []
        for commit in members.flatMap(\.commits) where commit.error == nil {
            for one in commit.offsets where one.offset == offset { done.insert(one.partition.partition) }
        }
        return done.count == 4
    }

    private static func expected(_ topic: String, _ marks: String...) -> Set<String> {
        Set(marks.flatMap { mark in (0..<40).map { "\(topic)-\(mark)-\($0)" } })
    }

    @Test func membersOfOneGroupGetTheirOwnTopicsAndLoseAndDoubleNothingOfOneAnother() async throws {
        struct Outcome {
            var steps: [String] = []
            var foreign = 0
            var events: [String] = [], state: [String] = []
        }
        let outcome = try await offPool { () throws -> Outcome in
            var outcome = Outcome()
            let (broker, producer) = try Self.cluster()
            func member(_ topic: String) throws -> Member {
                let member = try Member(broker.bootstrap, group: "g", topics: [topic])
                member.storesAll = true
                return member
            }
            func step(_ name: String, _ members: [Member], until condition: () -> Bool) {
                if !pump(members, until: condition) { outcome.steps.append("\(name) did not happen") }
            }
            let events = try member("events")
            let state = try member("state")
            step("both assigned", [events, state]) {
                events.consumer.assignment.count == 4 && state.consumer.assignment.count == 4
            }
            try Self.write(producer, "a")
            step("first records", [events, state]) { events.seen.count >= 40 && state.seen.count >= 40 }
            // The mock refuses commits while it rebalances, so what is settled is committed before each change.
            step("first commits", [events, state]) { Self.areCommitted([events], 10) && Self.areCommitted([state], 10) }
            // A second reader of user state joins, and leaves again.
            let second = try member("state")
            step("shared", [events, state, second]) {
                second.consumer.assignment.count == 2 && state.consumer.assignment.count == 2
                    && events.consumer.assignment.count == 4
            }
            try Self.write(producer, "b")
            step("second records", [events, state, second]) {
                events.seen.count >= 80 && state.seen.count + second.seen.count >= 80
            }
            step("second commits", [events, state, second]) {
                Self.areCommitted([events], 20) && Self.areCommitted([state, second], 20)
            }
            second.consumer.beginClose()
            step("left", [events, state, second]) { second.isClosed }
            // These come while the others are given their partitions anew.
            try Self.write(producer, "c")
            step("alone again", [events, state]) {
                state.consumer.assignment.count == 4 && events.consumer.assignment.count == 4
            }
            step("third records", [events, state]) {
                Set(events.seen.map(\.value)).count == 120 && Set((state.seen + second.seen).map(\.value)).count == 120
            }
            // Whatever were doubled would come now.
            _ = pump([events, state], seconds: 1) { false }
            outcome.events = events.seen.compactMap(\.value)
            outcome.state = (state.seen + second.seen).compactMap(\.value)
            step("last commits", [events, state]) {
                Self.areCommitted([events], 30) && Self.areCommitted([state, second], 30)
            }
            outcome.foreign =
                events.seen.filter { $0.value?.hasPrefix("events") == false }.count
                + (state.seen + second.seen).filter { $0.value?.hasPrefix("state") == false }.count
            return outcome
        }
        #expect(outcome.steps == [])
        #expect(outcome.foreign == 0)
        #expect(Set(outcome.events) == Self.expected("events", "a", "b", "c"))
        #expect(Set(outcome.state) == Self.expected("state", "a", "b", "c"))
        #expect(outcome.events.count { !$0.contains("-c-") } == 80, "what was committed came twice")
        #expect(outcome.state.count { !$0.contains("-c-") } == 80, "what was committed came twice")
    }

    @Test func staticMembersOfOneProcessDoNotFenceEachOther() async throws {
        struct Outcome { var both: Bool, failures: [String] }
        let outcome = try await offPool { () throws -> Outcome in
            let (broker, producer) = try Self.cluster()
            let base = KafkaConfiguration(
                brokers: broker.bootstrap, group: "g",
                options: [
                    "session.timeout.ms": "6000", "heartbeat.interval.ms": "500", "group.instance.id": "worker-3",
                ])
            let one = Member(try KafkaConsumer(base.member("0"), topics: ["events"]))
            let two = Member(try KafkaConsumer(base.member("0-state"), topics: ["state"]))
            try Self.write(producer, "a")
            let both = pump([one, two]) {
                // A rebalance between them may bring some a second time: nothing is stored here.
                Set(one.seen.map(\.value)).count == 40 && Set(two.seen.map(\.value)).count == 40
            }
            return Outcome(both: both, failures: (one.failures + two.failures).map(\.name))
        }
        #expect(outcome.both)
        #expect(outcome.failures == [])
    }

    /// A restart within the session's time: the group does not share out again, and nobody else stops reading. The mock shares
    /// out when a static member joins again, as Kafka does not (KIP-345).
    @Test func aStaticMemberThatGoesDoesNotLeaveTheGroup() async throws {
        struct Outcome { var isAssigned: Bool, isClosed: Bool, isRevoked: Bool }
        let outcome = try await offPool { () throws -> Outcome in
            let (broker, _) = try Self.cluster()
            func member(_ id: String) throws -> Member {
                let configuration = KafkaConfiguration(
                    brokers: broker.bootstrap, group: "g",
                    options: [
                        "session.timeout.ms": "12000", "heartbeat.interval.ms": "500", "group.instance.id": id,
                    ])
                return Member(try KafkaConsumer(configuration.member("0"), topics: ["events"]))
            }
            let (stays, goes) = (try member("carillon-0"), try member("carillon-1"))
            let isAssigned = pump([stays, goes]) {
                !stays.consumer.assignment.isEmpty && !goes.consumer.assignment.isEmpty
            }
            let before = stays.revocations.count
            let isClosed = goes.consumer.close(timeoutMs: 5_000)
            // Six heartbeats.
            let isRevoked = pump([stays], seconds: 3) { stays.revocations.count > before }
            return Outcome(isAssigned: isAssigned, isClosed: isClosed, isRevoked: isRevoked)
        }
        #expect(outcome.isAssigned && outcome.isClosed)
        #expect(!outcome.isRevoked)
    }

    /// An eager group takes all back before it assigns again: no ends then means nothing.
    @Test func betweenTwoAssignmentsNoEndsAreKnown() async throws {
        struct Outcome { var before: Bool, between: [Bool], after: Bool }
        let outcome = try await offPool { () throws -> Outcome in
            let (broker, producer) = try Self.cluster()
            try Self.write(producer, "a")
            func member() throws -> Member { try Member(broker.bootstrap, group: "g", topics: ["events"]) }
            let first = try member()
            let before = pump([first]) { first.consumer.knownEnds()?.isEmpty == false }
            var between: [Bool] = []
            first.onRevoked = { between.append(first.consumer.knownEnds() == nil) }
            let second = try member()
            _ = pump([first, second]) { first.assignments == 2 }
            let after = pump([first, second]) { first.consumer.knownEnds()?.isEmpty == false }
            return Outcome(before: before, between: between, after: after)
        }
        #expect(outcome.before && outcome.after)
        #expect(outcome.between == [true])
    }

    @Test func aSuffixIsGivenToAnInstanceIDAndToNothingElse() {
        var configuration = KafkaConfiguration(brokers: "b:1", group: "g", options: ["group.instance.id": "w"])
        #expect(configuration.member("1").options == ["group.instance.id": "w-1"])
        #expect(configuration.member("1").group == "g")
        configuration.options = ["linger.ms": "5"]
        #expect(configuration.member("1").options == ["linger.ms": "5"])
        configuration.options = ["group.instance.id": ""]
        #expect(configuration.member("1").options == ["group.instance.id": ""])
    }

    @Test func recordsPresentAtTheAssignmentAreKnownToBeRead() async throws {
        struct Outcome {
            var steps: [String] = []
            var before: [TopicPartition: Int64]?
            var ends: [TopicPartition: Int64]?
        }
        let outcome = try await offPool { () throws -> Outcome in
            var outcome = Outcome()
            let (broker, producer) = try Self.cluster()
            try Self.write(producer, "a")
            let member = try Member(broker.bootstrap, group: "g", topics: ["state"])
            member.storesAll = true
            outcome.before = member.consumer.knownEnds()
            var ends: [TopicPartition: Int64]?
            func step(_ name: String, until condition: () -> Bool) {
                if !pump([member], until: condition) { outcome.steps.append("\(name) did not happen") }
            }
            step("ends known") {
                if member.consumer.assignment.count == 4 { ends = ends ?? member.consumer.knownEnds() }
                return ends != nil
            }
            outcome.ends = ends
            step("reached") { ends.map { member.consumer.hasReached($0) } ?? false }
            if member.seen.count < 40 { outcome.steps.append("reached after \(member.seen.count)") }
            step("committed") { member.committedTo(10) }
            _ = member.consumer.close(timeoutMs: 10_000)
            // Nothing new: the committed offsets and the empty answers say that all is read.
            let again = try Member(broker.bootstrap, group: "g", topics: ["state"])
            let known = pump([again]) {
                again.consumer.assignment.count == 4
                    && again.consumer.knownEnds().map(again.consumer.hasReached) == true
            }
            if !known { outcome.steps.append("an idle topic's end did not come") }
            if !again.seen.isEmpty { outcome.steps.append("records came twice") }
            return outcome
        }
        #expect(outcome.steps == [])
        #expect(outcome.before == nil, "nothing is assigned yet")
        #expect(outcome.ends?.count == 4)
        #expect(outcome.ends?.values.allSatisfy { $0 == 10 } == true)
    }
}
