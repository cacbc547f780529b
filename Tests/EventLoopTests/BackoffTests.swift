// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import EventLoop

@Suite struct BackoffTests {
    @Test func delaysRiseAndStayUnderTheirCeiling() {
        let backoff = Backoff(baseNanos: 100, capNanos: 10_000)
        var random = SmallRandom(seed: 1)
        #expect(backoff.ceilingNanos(failures: 1) == 100)
        #expect(backoff.ceilingNanos(failures: 4) == 800)
        #expect(backoff.ceilingNanos(failures: 1000) == 10_000)
        for failures in 1...50 {
            let delay = backoff.delayNanos(failures: failures, random: &random)
            #expect(delay >= 6 && delay <= backoff.ceilingNanos(failures: failures))
        }
    }

    /// Whatever the numbers: never under a sixteenth of the base, never over the doubling ceiling or the cap, and spread
    /// over the whole of what lies between (full jitter).
    @Test(arguments: [1, 2, 3, .random(in: 4 ... .max)] as [UInt64])
    func jitterStaysInItsBoundsAndFillsThem(seed: UInt64) {
        var random = SmallRandom(seed: seed)
        for _ in 0..<200 {
            let base = random.next(in: 1...60_000_000_000)
            let cap = random.next(in: base...max(base, 3_600_000_000_000))
            let backoff = Backoff(baseNanos: base, capNanos: cap)
            let failures = Int(random.next(in: 1...60))
            let (doubled, overflow) = base.multipliedReportingOverflow(by: 1 << UInt64(min(failures - 1, 40)))
            let ceiling = overflow ? cap : min(doubled, cap)
            var (low, high) = (false, false)
            for _ in 0..<64 {
                let delay = backoff.delayNanos(failures: failures, random: &random)
                #expect(delay >= min(base / 16, ceiling) && delay <= ceiling, "seed \(seed)")
                if delay <= ceiling / 2 { low = true } else { high = true }
            }
            // 64 draws miss a half of a range as wide as this once in 2^60.
            if ceiling > 16 { #expect(low && high, "seed \(seed), base \(base), failure \(failures)") }
        }
    }

    @Test func absurdLimitsAndCountsAreSurvived() {
        var random = SmallRandom(seed: 1)
        #expect(Backoff(baseNanos: .max, capNanos: .max).delayNanos(failures: .max, random: &random) >= .max / 16)
        #expect(Backoff(baseNanos: .max, capNanos: 0).delayNanos(failures: 1, random: &random) == 0)
        #expect(Backoff(baseNanos: 100, capNanos: 1000).delayNanos(failures: .min, random: &random) <= 100)
        #expect(Backoff(baseNanos: 100, capNanos: 1000).capped(atNanos: 500).ceilingNanos(failures: 9) == 500)
        #expect(Backoff(baseNanos: 100, capNanos: 1000).capped(atNanos: 5000).ceilingNanos(failures: 9) == 1000)
    }
}
