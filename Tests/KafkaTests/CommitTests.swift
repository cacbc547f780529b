// SPDX-License-Identifier: Apache-2.0
import CRdkafka
import Glibc
import Support
import Testing

@testable import Kafka

@Suite("Commits with what is settled beyond them", .timeLimit(.minutes(10)))
struct CommitTests {
    private static let zero = TopicPartition(topic: 0, partition: 0)

    private static func cluster() throws -> MockBroker {
        let broker = try MockBroker()
        try broker.createTopic("events", partitions: 1)
        let producer = try KafkaProducer(KafkaConfiguration(brokers: broker.bootstrap))
        try write(producer, "events", (0..<10).map { (nil, "v\($0)", 0) })
        return broker
    }

    private struct Outcome: Sendable {
        var commits = 0
        var known: [PartitionOffset] = []
        var seen: [Int64] = []
        var settledBefore: [Int64] = []
        var early = 0
    }

    /// What the next owner meets.
    private static func next(_ broker: MockBroker, count: Int, _ outcome: inout Outcome) throws {
        let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
        _ = pump([member]) { member.seen.count == count }
        outcome.known = member.committedAtStart
        outcome.seen = member.seen.map(\.offset)
        outcome.settledBefore = member.settledBefore
        outcome.early = member.early
        _ = member.consumer.close(timeoutMs: 15_000)
    }

    enum End: CaseIterable { case crash, leaving, leavingAtOnce, drain }

    @Test(arguments: End.allCases) func theNextOwnerKnowsWhatIsSettledBeyond(end: End) async throws {
        let outcome = try await offPool { () throws -> Outcome in
            var outcome = Outcome()
            let broker = try Self.cluster()
            do {
                let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
                _ = pump([member]) { member.seen.count == 10 }
                member.store(Self.zero, next: 2, settled: [4, 5, 9])
                if end == .crash || end == .leaving {
                    _ = pump([member]) { member.committedTo(2) }
                    // Nothing changes, so nothing more is committed.
                    _ = pump([member], seconds: 1) { false }
                }
                if end == .drain { member.revocationAnswer = .deferred }
                if end != .crash {
                    member.consumer.beginClose()
                    if end == .drain {
                        _ = pump([member]) { member.willRevoke == 1 }
                        member.consumer.completeRevocation()
                    }
                    _ = pump([member]) { member.isClosed }
                }
                outcome.commits = member.commits.count
            }
            try Self.next(broker, count: 8, &outcome)
            return outcome
        }
        #expect(outcome.commits == 1)
        #expect(outcome.known.map(\.offset) == [2])
        #expect(outcome.settledBefore == [4, 5, 9])
        #expect(outcome.seen == Array(2..<10))
        #expect(outcome.early == 0, "records before what is committed was told")
    }

    @Test func aSecondOwnerWhoReadNothingYetKeepsIt() async throws {
        let outcome = try await offPool { () throws -> Outcome in
            var outcome = Outcome()
            let broker = try Self.cluster()
            let first = try Member(broker.bootstrap, group: "g", topics: ["events"])
            _ = pump([first]) { first.seen.count == 10 }
            first.store(Self.zero, next: 2, settled: [4, 5, 9])
            _ = first.consumer.close(timeoutMs: 15_000)
            for _ in 0..<2 { try Self.next(broker, count: 8, &outcome) }
            return outcome
        }
        #expect(outcome.settledBefore == [4, 5, 9])
    }

    @Test(arguments: ["some other program's", "carillon1:2:!!!!", "carillon1:1:_w", "carillon9:2:_w"])
    func foreignOrBrokenMetadataIsIgnored(text: String) async throws {
        let outcome = try await offPool { () throws -> Outcome in
            var outcome = Outcome()
            let broker = try Self.cluster()
            let first = try Member(broker.bootstrap, group: "g", topics: ["events"])
            _ = pump([first]) { first.seen.count == 10 }
            guard let list = rd_kafka_topic_partition_list_new(1) else { throw Broken("no list") }
            let item = rd_kafka_topic_partition_list_add(list, "events", 0)
            item?.pointee.offset = 2
            item?.pointee.metadata = UnsafeMutableRawPointer(strdup(text))
            item?.pointee.metadata_size = text.utf8.count
            rd_kafka_commit(try first.native.raw, list, 1)
            rd_kafka_topic_partition_list_destroy(list)
            _ = pump([first]) { first.committedTo(2) }
            _ = first.consumer.close(timeoutMs: 15_000)
            try Self.next(broker, count: 8, &outcome)
            return outcome
        }
        #expect(outcome.known == [PartitionOffset(partition: Self.zero, offset: 2)])
        #expect(outcome.seen == Array(2..<10))
        #expect(outcome.settledBefore == [])
    }

    @Test func aRefusedCommitIsSentAgainAndATooLongTextGetsShorter() async throws {
        struct Refused: Sendable { var errors: [String?], settledBefore: [Int64], known: [PartitionOffset] }
        let far = stride(from: Int64(3), to: 20_000, by: 2).map { $0 }
        let outcome = try await offPool { () throws -> Refused in
            let broker = try Self.cluster()
            let first = try Member(broker.bootstrap, group: "g", topics: ["events"])
            _ = pump([first]) { first.seen.count == 10 }
            // 12: OFFSET_METADATA_TOO_LARGE.
            broker.pushErrors(api: .offsetCommit, [12])
            first.store(Self.zero, next: 2, settled: far)
            _ = pump([first]) { first.committedTo(2) }
            let errors = first.commits.map(\.error?.name)
            _ = first.consumer.close(timeoutMs: 15_000)
            var outcome = Outcome()
            try Self.next(broker, count: 8, &outcome)
            return Refused(errors: errors, settledBefore: outcome.settledBefore, known: outcome.known)
        }
        #expect(outcome.errors == ["OFFSET_METADATA_TOO_LARGE", nil])
        #expect(outcome.settledBefore == [3, 5, 7, 9])
        let end = try #require(outcome.known.first?.settled?.end)
        #expect(end > 10_000 && end < 13_000, "half of the text: \(end)")
    }

    @Test func aRefusedQuestionForTheGroupsOffsetsIsAskedAgain() async throws {
        let outcome = try await offPool { () throws -> [Int] in
            let broker = try Self.cluster()
            broker.pushErrors(api: .offsetFetch, [30, 30, 30])
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            _ = pump([member]) { member.seen.count == 10 }
            return [member.seen.count, member.committedAtStart.count]
        }
        #expect(outcome == [10, 1])
    }

    @Test func recordsArriveAlthoughTheGroupsOffsetsAreUnknown() async throws {
        struct Untold: Sendable { var seen: Int, known: Int }
        let outcome = try await offPool { () throws -> Untold in
            let broker = try Self.cluster()
            // Ours is refused (30: GROUP_AUTHORIZATION_FAILED), and the library's own question is answered.
            broker.pushErrors(api: .offsetFetch, [30])
            let member = try Member(broker.bootstrap, group: "g", topics: ["events"])
            member.consumer.assignmentPatienceMs = 0
            _ = pump([member]) { member.seen.count == 10 }
            return Untold(seen: member.seen.count, known: member.committedAtStart.count)
        }
        #expect(outcome.seen == 10)
        #expect(outcome.known == 0)
    }
}
