// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@Suite struct RemovalBrakeTests {
    private static let limits: RemovalBrake.Limits = {
        var limits = RemovalBrake.Limits()
        limits.windowMs = 1000
        limits.minimum = 5
        limits.share = 0.5
        limits.coolDownMs = 3000
        return limits
    }()

    /// Accepted pushes, then removals, and what the last removal is told.
    struct Row: Sendable, CustomStringConvertible {
        var accepted: Int
        var removals: Int
        var last: RemovalBrake.Answer
        var description: String { "\(removals) removals after \(accepted) accepted" }
    }

    @Test(arguments: [
        Row(accepted: 0, removals: 4, last: .remove),
        Row(accepted: 0, removals: 5, last: .withhold(isFirst: true)),
        Row(accepted: 0, removals: 6, last: .withhold(isFirst: false)),
        Row(accepted: 5, removals: 5, last: .withhold(isFirst: true)),
        Row(accepted: 6, removals: 5, last: .remove),
        Row(accepted: 6, removals: 6, last: .withhold(isFirst: true)),
        Row(accepted: 100, removals: 99, last: .remove),
        Row(accepted: 100, removals: 100, last: .withhold(isFirst: true)),
    ])
    func aShareOfEnoughAnswersEngagesIt(row: Row) {
        var brake = RemovalBrake(Self.limits)
        for _ in 0..<row.accepted { brake.answered(nowMs: 10) }
        var last = RemovalBrake.Answer.remove
        for _ in 0..<row.removals { last = brake.refused(.gone, nowMs: 20) }
        #expect(last == row.last)
    }

    /// 1 338 of 1 376 tokens went before it held, since thousands had been accepted in the minutes before.
    @Test func manyGoodAnswersBeforeDoNotHideASpike() {
        var brake = RemovalBrake()
        for _ in 0..<20_000 { brake.answered(nowMs: 1000) }
        var removed = 0
        for _ in 0..<1376 { if brake.refused(.badDeviceToken, nowMs: 2000) == .remove { removed += 1 } }
        #expect(removed == 59, "a share of 0.3 of the last 200")
    }

    @Test func aFewDeadTokensAmongOthersAreNoSpike() {
        var brake = RemovalBrake()
        for step in 0..<20_000 {
            // One in four, never together.
            if step.isMultiple(of: 4) {
                let answer = brake.refused(.gone, nowMs: Int64(step))
                #expect(answer == .remove)
            } else {
                brake.answered(nowMs: Int64(step))
            }
        }
    }

    @Test func eachCauseHasItsOwn() {
        var brake = RemovalBrake(Self.limits)
        for _ in 0..<4 { _ = brake.refused(.gone, nowMs: 0) }
        for _ in 0..<4 {
            let answer = brake.refused(.badDeviceToken, nowMs: 0)
            #expect(answer == .remove)
        }
        for _ in 0..<20 { _ = brake.refused(.notForTopic, nowMs: 0) }
        #expect(brake.isEngaged(.notForTopic) && !brake.isEngaged(.gone) && !brake.isEngaged(.badDeviceToken))
        let other = brake.refused(.gone, nowMs: 0)
        #expect(other == .remove, "five of 29 are no spike")
    }

    @Test func samplesOlderThanTheWindowDoNotCount() {
        var brake = RemovalBrake(Self.limits)
        for step in 0..<40 as Range<Int64> {
            // One in 300 ms: never more than four in a second.
            let answer = brake.refused(.gone, nowMs: step * 300)
            #expect(answer == .remove, "step \(step)")
        }
    }

    @Test func itHoldsUntilTheCoolDownAfterTheLastOfTheSpike() {
        var brake = RemovalBrake(Self.limits)
        for _ in 0..<5 { _ = brake.refused(.gone, nowMs: 0) }
        var released = brake.release(nowMs: 2999)
        #expect(released.isEmpty)
        // Beyond the window by now, and one alone is no spike: withheld, but the end does not move.
        let late = brake.refused(.gone, nowMs: 2999)
        #expect(late == .withhold(isFirst: false))
        released = brake.release(nowMs: 3000)
        #expect(released == [.gone] && !brake.isEngaged(.gone))
        let after = brake.refused(.gone, nowMs: 3001)
        #expect(after == .remove)
        released = brake.release(nowMs: 3002)
        #expect(released.isEmpty)
    }

    @Test func aSpikeThatGoesOnKeepsItEngaged() {
        var brake = RemovalBrake(Self.limits)
        var firsts = 0
        for step in 0..<1000 as Range<Int64> {
            if brake.refused(.badDeviceToken, nowMs: step * 10) == .withhold(isFirst: true) { firsts += 1 }
            let released = brake.release(nowMs: step * 10)
            #expect(released.isEmpty)
        }
        #expect(firsts == 1)
        let released = brake.release(nowMs: 9990 + 3000)
        #expect(released == [.badDeviceToken])
    }

    @Test func aShareAboveOneSwitchesItOff() {
        var limits = Self.limits
        limits.share = 2
        var brake = RemovalBrake(limits)
        for _ in 0..<500 {
            let answer = brake.refused(.gone, nowMs: 0)
            #expect(answer == .remove)
        }
    }

    @Test func anyClockValueIsAccepted() {
        for now in [Int64.min, -1, 0, Int64.max - 700_000] as [Int64] {
            var brake = RemovalBrake()
            brake.answered(nowMs: now)
            let answer = brake.refused(.gone, nowMs: now)
            #expect(answer == .remove)
        }
    }
}
