// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Worker

@Suite struct TokenLossTests {
    /// An hour in which one in ten has no token.
    private static func afterAnHour(keys: Int64 = 1000) -> TokenLoss {
        var loss = TokenLoss()
        for step in 0..<600 as Range<Int64> {
            loss.counted(keys: keys, nowMs: step * 5000)
            _ = loss.decided(hasToken: !step.isMultiple(of: 10), nowMs: step * 5000)
        }
        return loss
    }

    private static let nowMs: Int64 = 600 * 5000

    private func expect(
        _ loss: inout TokenLoss, hasToken: Bool, _ wanted: TokenLoss.Answer,
        at place: SourceLocation = #_sourceLocation
    ) {
        let answer = loss.decided(hasToken: hasToken, nowMs: Self.nowMs)
        #expect(answer == wanted, sourceLocation: place)
    }

    @Test func usersWithoutTokensAreDecidedInNormalOperation() {
        var loss = Self.afterAnHour()
        let answer = loss.decided(hasToken: false, nowMs: Self.nowMs)
        #expect(answer == .decide && !loss.isStopped)
    }

    @Test func keysThatFellByHalfStopTheFirstWithoutAToken() {
        var loss = Self.afterAnHour()
        loss.counted(keys: 499, nowMs: Self.nowMs)
        expect(&loss, hasToken: true, .decide)
        expect(&loss, hasToken: false, .ask)
        #expect(loss.isStopped)
        expect(&loss, hasToken: false, .wait)
        loss.counted(keys: 700, nowMs: Self.nowMs)
        #expect(loss.isStopped)
        loss.counted(keys: 800, nowMs: Self.nowMs)
        #expect(!loss.isStopped)
        expect(&loss, hasToken: false, .decide)
    }

    /// Marks of a large group that a failover of Redis lost: no bind of before is among them.
    @Test func keysOfTheLastTenCountsAreNotMissed() {
        var loss = Self.afterAnHour()
        loss.counted(keys: 6000, nowMs: Self.nowMs)
        loss.counted(keys: 1000, nowMs: Self.nowMs)
        expect(&loss, hasToken: false, .decide)
        for _ in 0..<10 { loss.counted(keys: 6000, nowMs: Self.nowMs) }
        loss.counted(keys: 1000, nowMs: Self.nowMs)
        expect(&loss, hasToken: false, .ask)
    }

    @Test func anotherServerIsLookedAtBeforeAnybodyIsDecided() {
        var loss = Self.afterAnHour()
        loss.serverChanged()
        expect(&loss, hasToken: false, .wait)
        loss.counted(keys: 3, nowMs: Self.nowMs)
        expect(&loss, hasToken: false, .ask)
        #expect(loss.isStopped)
        loss.goOn(Self.nowMs)
        #expect(!loss.isStopped)
        expect(&loss, hasToken: false, .decide)

        var whole = Self.afterAnHour()
        whole.serverChanged()
        whole.counted(keys: 990, nowMs: Self.nowMs)
        expect(&whole, hasToken: false, .decide)
    }

    @Test func aSuddenShareIsExplainedByTheKeysOrStops() {
        for (keys, isStopped) in [(1000, false), (400, true), (nil, true)] as [(Int64?, Bool)] {
            var loss = Self.afterAnHour()
            var asked = 0
            for step in 0..<200 as Range<Int64> where asked == 0 {
                if loss.decided(hasToken: false, nowMs: Self.nowMs + step) == .ask { asked = Int(step) }
            }
            #expect((40...100).contains(asked), "\(asked)")
            expect(&loss, hasToken: false, .wait)
            if let keys { loss.counted(keys: keys, nowMs: Self.nowMs) } else { loss.couldNotCount() }
            #expect(loss.isStopped == isStopped)
            expect(&loss, hasToken: false, (isStopped ? .wait : .decide))
        }
    }

    @Test func withoutAnHourBeforeAShareSaysNothing() {
        var loss = TokenLoss()
        for step in 0..<1000 as Range<Int64> {
            loss.counted(keys: 10 + step, nowMs: step)
            let answer = loss.decided(hasToken: false, nowMs: step)
            #expect(answer == .decide)
        }
    }

    @Test func oneNodeOfAClusterThatLosesItsKeysIsMissedAndSlotsThatMoveAreNot() {
        var loss = TokenLoss()
        loss.counted([1: 1000, 2: 1000, 3: 1000], nowMs: Self.nowMs)
        // Resharded: what one has less another has more. Failed over: another node has them.
        loss.counted([1: 100, 2: 1500, 3: 1400], nowMs: Self.nowMs)
        #expect(loss.state == .calm)
        loss.counted([1: 100, 4: 1500, 3: 1400], nowMs: Self.nowMs)
        #expect(loss.state == .calm)
        // Away, it counts as it was.
        loss.counted([1: 100, 4: nil, 3: 1400], nowMs: Self.nowMs)
        #expect(loss.state == .calm)
        loss.counted([1: 100, 4: 0, 3: 1400], nowMs: Self.nowMs)
        #expect(loss.state == .keysGone)
        loss.counted([1: 100, 4: 700, 3: 1400], nowMs: Self.nowMs)
        #expect(loss.state == .keysGone, "not enough of them are back")
        loss.counted([1: 100, 5: 1300, 3: 1400], nowMs: Self.nowMs)
        #expect(loss.state == .calm)
    }
}
