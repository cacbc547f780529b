// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Recording

@Suite struct RetentionGapTests {
    /// Looks at one partition (start, committed), and how many deleted unsettled records they tell of.
    private static let rows: [([(Int64, Int64?)], Int64)] = [
        ([(0, nil), (0, 10), (5, 10), (10, 12)], 0),
        ([(0, 10), (30, 10)], 20),
        // The group begins anew at the oldest one.
        ([(0, 10), (30, 10), (30, 30), (35, 40), (50, 45)], 25),
        // Never settled: counted from the first look on, and only once.
        ([(7, nil), (20, nil), (20, nil), (21, nil)], 14),
        // What was gone before the first look is not of this time.
        ([(100, 10), (100, 10)], 0),
        // Another group's reset backwards settles nothing again.
        ([(0, 50), (0, 10), (40, 10)], 0),
    ]

    @Test(arguments: rows.indices) func deletedBeforeSettledIsCountedOnce(row: Int) {
        var gap = RetentionGap()
        for (start, committed) in Self.rows[row].0 {
            gap.saw(topic: "events", partition: 3, start: start, committed: committed)
        }
        #expect(gap.count == Self.rows[row].1)
    }

    @Test func partitionsAreApart() {
        var gap = RetentionGap()
        for (topic, partition) in [("events", 0), ("events", 1), ("other", 0)] as [(String, Int32)] {
            gap.saw(topic: topic, partition: partition, start: 0, committed: 0)
            gap.saw(topic: topic, partition: partition, start: 4, committed: 1)
        }
        #expect(gap.count == 9)
    }

    @Test func noOffsetTraps() {
        var gap = RetentionGap()
        for offset in [Int64.min, -1001, 0, .max, .min, .max] {
            gap.saw(topic: "t", partition: 0, start: offset, committed: offset)
            gap.saw(topic: "t", partition: 0, start: offset, committed: nil)
        }
    }
}
