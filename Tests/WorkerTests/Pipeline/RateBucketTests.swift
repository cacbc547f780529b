// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Worker

@Suite struct RateBucketTests {
    @Test func withoutALimitEverythingGoes() {
        var bucket = RateBucket(perSecond: 0)
        #expect((0..<10_000).allSatisfy { _ in bucket.take(nowNanos: 5) == nil })
    }

    @Test(arguments: [1.0, 7, 1000, 50_000]) func inTheLongRunTheRateIsKept(perSecond: Double) {
        var bucket = RateBucket(perSecond: perSecond)
        var now: UInt64 = 1_000_000_000
        let end = now + 10_000_000_000
        var taken = 0
        while now < end {
            if let next = bucket.take(nowNanos: now) {
                #expect(next > now)
                now = next
            } else {
                taken += 1
            }
        }
        let burst = max(1, perSecond / 10)
        #expect(Double(taken) <= 10 * perSecond + burst + 1 && Double(taken) >= 10 * perSecond - 1)
    }

    @Test func anIdleBucketHoldsATenthOfASecond() {
        var bucket = RateBucket(perSecond: 1000)
        let burst = (0..<1000).prefix { _ in bucket.take(nowNanos: 60_000_000_000) == nil }.count
        #expect(burst == 100)
    }
}
