// SPDX-License-Identifier: Apache-2.0
import Kafka
import Testing

/// The order of records from several partitions.
@Suite struct TimeMergeTests {
    @Test(
        arguments: [
            ([], .ended), ([.ended, .ended], .ended), ([.idle], .wait), ([.idle, .ended], .wait), ([.awaited], .wait),
            ([.head(5), .head(3), .head(4)], .take(1)), ([.head(3), .head(3)], .take(0)),
            // Its next record may be older.
            ([.head(5), .awaited], .wait), ([.head(5), .idle, .ended], .take(0)),
            ([.ended, .head(.min), .head(1)], .take(1)),
        ] as [([TimeMerge.Lane], TimeMerge.Next)])
    func theOldestIsNextWhereAllShowTheirs(lanes: [TimeMerge.Lane], next: TimeMerge.Next) {
        var merge = TimeMerge(count: lanes.count)
        merge.lanes = lanes
        #expect(merge.next == next)
    }
}
