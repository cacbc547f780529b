// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Worker

@Suite struct PartitionShareTests {
    @Test func itIsWholeOnceAllPartitionsOfAKnownNumberAreAssigned() {
        let share = PartitionShare()
        #expect(!share.isWhole && !share.beginAsking(), "nothing is assigned")
        share.add(3)
        #expect(!share.isWhole, "of how many is not known")
        #expect(share.beginAsking())
        #expect(!share.beginAsking(), "one question at a time")
        share.learn(4)
        #expect(!share.isWhole && !share.beginAsking())
        share.add(1)
        #expect(share.isWhole, "with those of another shard")
        share.add(-1)
        #expect(!share.isWhole)
    }

    @Test func unansweredQueriesAreRepeated() {
        let share = PartitionShare()
        share.add(2)
        #expect(share.beginAsking())
        share.learn(nil)
        #expect(!share.isWhole)
        #expect(share.beginAsking())
        share.learn(2)
        #expect(share.isWhole && !share.beginAsking())
    }

    @Test func anAssignmentDuringAQuestionIsAskedAboutAfterIt() {
        let share = PartitionShare()
        share.add(2)
        #expect(share.beginAsking())
        share.add(1)
        #expect(!share.beginAsking())
        share.learn(2)
        #expect(share.beginAsking(), "the number may be older than the assignment")
    }
}
