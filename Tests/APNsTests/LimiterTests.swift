// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Testing

@testable import APNs

@Suite struct LimiterTests {
    static let ms: UInt64 = 1_000_000

    /// Answers of `trip` for a whole round trip at full use.
    func round(_ limiter: inout InFlightLimiter, trip: UInt64, _ now: inout UInt64, isReached: Bool = true) {
        if isReached { limiter.reached() }
        now += trip + 2 * Self.ms
        limiter.accepted(tripNanos: trip, nowNanos: now)
    }

    @Test func startDoublesUntilTheCeiling() {
        var limiter = InFlightLimiter(start: 20, ceiling: 2000)
        var now: UInt64 = 0
        var seen: [Int] = []
        for _ in 0..<8 {
            round(&limiter, trip: 50 * Self.ms, &now)
            seen.append(limiter.limit)
        }
        same(seen, [40, 80, 160, 320, 640, 1280, 2000, 2000])
    }

    @Test func unusedLimitDoesNotGrow() {
        var limiter = InFlightLimiter(start: 20, ceiling: 2000)
        var now: UInt64 = 0
        for _ in 0..<8 { round(&limiter, trip: 50 * Self.ms, &now, isReached: false) }
        same(limiter.limit, 20)
    }

    @Test func troubleTakesATenthAndGrowthIsThenAdditive() {
        var limiter = InFlightLimiter(start: 20, ceiling: 2000)
        var now: UInt64 = 0
        for _ in 0..<10 { round(&limiter, trip: 50 * Self.ms, &now) }
        limiter.cut(.slow, nowNanos: now)
        same(limiter.limit, 1800)
        // Answers of one round trip tell of the same trouble.
        limiter.cut(.slow, nowNanos: now + Self.ms)
        same(limiter.limit, 1800)
        round(&limiter, trip: 50 * Self.ms, &now)
        same(limiter.limit, 1810)
        limiter.cut(.goaway, nowNanos: now + 100 * Self.ms)
        same(limiter.limit, 905)
        same(limiter.takeDecreases(), 2)
        same(limiter.takeDecreases(), 0)
    }

    @Test func risingRoundTripsAreTrouble() {
        var limiter = InFlightLimiter(start: 20, ceiling: 2000)
        var now: UInt64 = 0
        for _ in 0..<20 { round(&limiter, trip: 50 * Self.ms, &now) }
        round(&limiter, trip: 400 * Self.ms, &now)
        same(limiter.limit, 1800)
    }

    @Test func noiseOfOurOwnLoopIsNot() {
        var limiter = InFlightLimiter(start: 20, ceiling: 2000)
        var now: UInt64 = 0
        for _ in 0..<20 { round(&limiter, trip: Self.ms, &now) }
        for _ in 0..<20 { round(&limiter, trip: 15 * Self.ms, &now) }
        same(limiter.limit, 2000)
    }

    @Test func fixedLimitIsNeverTouched() {
        var limiter = InFlightLimiter(start: 500, ceiling: 500)
        limiter.cut(.goaway, nowNanos: 5)
        same(limiter.limit, 500)
        for _ in 0..<40 {
            var now: UInt64 = 7
            round(&limiter, trip: 900 * Self.ms, &now)
        }
        same(limiter.limit, 500)
    }

    /// A server that slows down beyond so many at once: the limiter settles near its knee, from above and below.
    @Test(arguments: [100, 400, 1500]) func settlesNearTheKnee(knee: Int) {
        var limiter = InFlightLimiter(start: 20, ceiling: 2000)
        var now: UInt64 = 0
        var seen: [Int] = []
        for step in 0..<3000 {
            let over = Double(max(0, limiter.limit - knee)) / Double(knee)
            round(&limiter, trip: UInt64(50_000_000 * (1 + 4 * over)), &now)
            if step > 1000 { seen.append(limiter.limit) }
        }
        let mean = seen.reduce(0, +) / seen.count
        #expect(mean > knee / 2 && mean < knee * 2, "knee \(knee), mean \(mean)")
        #expect(seen.allSatisfy { $0 >= 1 && $0 <= 2000 })
    }

    @Test func slowdownThatLastsBecomesTheUsual() {
        var limiter = InFlightLimiter(start: 20, ceiling: 2000)
        var now: UInt64 = 0
        for _ in 0..<20 { round(&limiter, trip: 30 * Self.ms, &now) }
        var least = 2000
        for _ in 0..<400 {
            round(&limiter, trip: 120 * Self.ms, &now)
            least = min(least, limiter.limit)
        }
        #expect(least >= 18 && limiter.limit > 1500, "\(least) \(limiter.limit)")
    }

    @Test func floorIsOne() {
        var limiter = InFlightLimiter(start: 2, ceiling: 2000)
        for step in 1..<50 { limiter.cut(.goaway, nowNanos: UInt64(step) * 1_000_000_000) }
        same(limiter.limit, 1)
    }

    @Test func budgetIsAShareOfWhatSucceeds() {
        var budget = RetryBudget(inFlightMax: 10, nowNanos: 0)
        var paid = 0
        while budget.take(.direct, nowNanos: 0) { paid += 1 }
        same(paid, 200)
        // Another lane pays from its own purse.
        same(budget.take(.group, nowNanos: 0), true)
        for _ in 0..<10 { budget.succeeded(.direct) }
        same(budget.take(.direct, nowNanos: 0), true)
        same(budget.take(.direct, nowNanos: 0), false)
        // Ten a second, whatever succeeds.
        for _ in 0..<10 { same(budget.take(.direct, nowNanos: 1_000_000_000), true) }
        same(budget.take(.direct, nowNanos: 1_000_000_000), false)
    }

    @Test func breakerOpensAfterARowAndClosesByOneAnswer() {
        var breaker = EndpointBreaker(threshold: 3, backoff: Backoff(baseNanos: 1000, capNanos: 10_000))
        var random = SmallRandom(seed: 3)
        same(breaker.failed(retryAfterNanos: 0, nowNanos: 0, random: &random), false)
        same(breaker.failed(retryAfterNanos: 0, nowNanos: 0, random: &random), false)
        same(breaker.succeeded(), false)
        for _ in 0..<2 { _ = breaker.failed(retryAfterNanos: 0, nowNanos: 0, random: &random) }
        same(breaker.allowance(nowNanos: 1), .max)
        same(breaker.failed(retryAfterNanos: 5000, nowNanos: 10, random: &random), true)
        same(breaker.allowance(nowNanos: 5009), 0)
        same(breaker.allowance(nowNanos: 5010), 1)
        breaker.submitted()
        same(breaker.allowance(nowNanos: 6000), 0)
        same(breaker.failed(retryAfterNanos: 0, nowNanos: 6000, random: &random), false)
        #expect(breaker.isOpen)
        breaker.submitted()
        breaker.probeLost(nowNanos: 7000, random: &random)
        same(breaker.succeeded(), true)
        same(breaker.allowance(nowNanos: 7001), .max)
    }
}
