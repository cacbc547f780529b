// SPDX-License-Identifier: Apache-2.0
import Recording
import Testing

@Suite struct ReplayPatienceTests {
    private static let second: UInt64 = 1_000_000_000

    /// At these seconds, with so many looks at the group's offsets and this much settled, a wait of ten seconds is over or not.
    private func answers(_ steps: [(second: UInt64, looks: Int, settled: Int)]) -> [Bool] {
        var patience = ReplayPatience(waitSeconds: 10, nowNanos: 0)
        return steps.map { patience.isOver([$0.settled], looks: $0.looks, nowNanos: $0.second * Self.second) }
    }

    @Test func itEndsTenSecondsAfterTheLastProgress() {
        let steps: [(UInt64, Int, Int)] = [(0, 1, 5), (9, 10, 6), (18, 19, 6), (19, 20, 6)]
        #expect(answers(steps) == [false, false, false, true])
    }

    @Test func aLookLongerThanTheWaitIsNoStandstill() {
        let steps: [(UInt64, Int, Int)] = [(0, 1, 5), (12, 1, 5), (24, 2, 5), (36, 3, 9), (60, 4, 9), (61, 5, 9)]
        #expect(answers(steps) == [false, false, false, false, false, true])
    }

    @Test func withoutAnyLookItEndsNevertheless() {
        #expect(answers([(0, 1, 5), (59, 1, 5), (60, 1, 5)]) == [false, false, true])
    }
}
