// SPDX-License-Identifier: Apache-2.0
import JSON
import Kafka
import Testing

@testable import Worker

/// What an operator is told of Kafka although records are read.
@Suite struct IntakeNotesTests {
    private static let topics = ["im.user-state", "carillon.parked"]
    private static let second: UInt64 = 1_000_000_000
    /// 30: GROUP_AUTHORIZATION_FAILED.
    private static let denied = KafkaError(code: 30)
    /// 22: ILLEGAL_GENERATION.
    private static let usual = KafkaError(code: 22)

    private func texts(_ notes: IntakeNotes, _ seconds: UInt64) -> [String] {
        notes.texts(Self.topics, group: "g", nowNanos: seconds * Self.second)
    }

    @Test func `a denied commit is told at once with its reason, until one succeeds`() {
        var notes = IntakeNotes()
        notes.noteCommit(Self.denied, nowNanos: 0)
        #expect(texts(notes, 0).first?.hasPrefix("commits of the group g are refused: ") == true)
        #expect(texts(notes, 0).first?.contains("GROUP_AUTHORIZATION_FAILED") == true)
        notes.noteCommit(nil, nowNanos: Self.second)
        #expect(texts(notes, 1) == [])
    }

    @Test func `another refusal of commits is told when it lasts`() {
        var notes = IntakeNotes()
        for second in 0..<40 as Range<UInt64> {
            notes.noteCommit(Self.usual, nowNanos: second * Self.second)
            #expect(texts(notes, second).isEmpty == (second < 30), "\(second)")
        }
        #expect(Self.usual.isUsualInGroups && !Self.denied.isUsualInGroups)
        // 14: COORDINATOR_LOAD_IN_PROGRESS.
        #expect(KafkaError(code: 14).isUsualInGroups)
    }

    @Test func `a topic with odd times is named for ten minutes`() {
        var notes = IntakeNotes()
        notes.noteOddTime(0, nowNanos: 0)
        #expect(texts(notes, 599).first?.hasPrefix("Kafka times of im.user-state are not in milliseconds") == true)
        #expect(texts(notes, 600) == [])
    }

    @Test func `partitions that nobody reads are told after two answers`() {
        let unread = UnreadPartitions()
        let shares = [
            TopicShare(topic: "e", partitions: 8, assigned: 4), TopicShare(topic: "s", partitions: 4, assigned: 4),
        ]
        #expect(unread.beginAsking(nowNanos: 0) && !unread.beginAsking(nowNanos: 0))
        unread.learn(shares)
        #expect(unread.texts == [] && !unread.beginAsking(nowNanos: Self.second))
        #expect(unread.beginAsking(nowNanos: UnreadPartitions.everyNanos))
        unread.learn(shares)
        #expect(unread.texts.count == 1)
        #expect(unread.texts.first?.hasPrefix("e has 8 partitions, and the group reads 4 of them") == true)
        unread.learn(nil)
        #expect(unread.texts.count == 1, "nobody knows better")
        unread.learn([TopicShare(topic: "e", partitions: 8, assigned: 8)])
        #expect(unread.texts == [])
    }

    @Test func `a result is shortened to its figures and then to its identifiers`() throws {
        let whole =
            #"{"v":1,"app":"im","event_id":"e","msg_id":"m","lane":"direct","uid":"u","verdict":"rejected","#
            + #""reason":"BadDeviceToken","attempts":1,"latency_ms":7,"at_ms":9}"#
        let figures = try #require(ShortRecord.shorter(than: Array(whole.utf8)))
        #expect(
            String(decoding: figures, as: UTF8.self)
                == #"{"v":1,"app":"im","event_id":"e","msg_id":"m","uid":"u","verdict":"rejected","lane":"direct","#
                + #""attempts":1,"latency_ms":7,"at_ms":9}"#)
        let identifiers = try #require(ShortRecord.shorter(than: figures))
        #expect(
            String(decoding: identifiers, as: UTF8.self)
                == #"{"v":1,"app":"im","event_id":"e","msg_id":"m","uid":"u","verdict":"rejected"}"#)
        #expect(ShortRecord.shorter(than: identifiers) == nil)
        #expect(ShortRecord.shorter(than: Array("no JSON".utf8)) == nil)
    }
}
