// SPDX-License-Identifier: Apache-2.0
import Telemetry
import Testing

@Suite("Log limiter")
struct LogLimiterTests {
    @Test func oneLinePerCauseAndIntervalAndTheNextCountsTheOmitted() {
        var limiter = LogLimiter<Int>(intervalNanos: 10)
        #expect(limiter.admit(1, nowNanos: 100) == 0)
        #expect(limiter.admit(1, nowNanos: 100) == nil)
        #expect(limiter.admit(1, nowNanos: 109) == nil)
        #expect(limiter.admit(2, nowNanos: 109) == 0)
        #expect(limiter.admit(1, nowNanos: 110) == 2)
        #expect(limiter.admit(1, nowNanos: 119) == nil)
        #expect(limiter.admit(1, nowNanos: 200) == 1)
        #expect(limiter.admit(1, nowNanos: 300) == 0)
    }

    @Test func aClockReadOfAnEarlierTurnIsNoLongTime() {
        var limiter = LogLimiter<Int>(intervalNanos: 10)
        #expect(limiter.admit(1, nowNanos: 100) == 0)
        #expect(limiter.admit(1, nowNanos: 99) == nil)
        #expect(limiter.admit(1, nowNanos: 110) == 1)
    }

    @Test func causesBeyondTheBoundShareOnePlace() {
        var limiter = LogLimiter<Int>(intervalNanos: 10, keysMax: 2)
        #expect(limiter.admit(1, nowNanos: 0) == 0)
        #expect(limiter.admit(2, nowNanos: 0) == 0)
        #expect(limiter.admit(3, nowNanos: 1) == 0)
        #expect(limiter.admit(4, nowNanos: 2) == nil)
        #expect(limiter.admit(1, nowNanos: 2) == nil)
    }

    @Test func countsOfForgottenCausesGoIntoTheReplacingLine() {
        var limiter = LogLimiter<Int>(intervalNanos: 10, keysMax: 2)
        _ = limiter.admit(1, nowNanos: 0)
        _ = limiter.admit(1, nowNanos: 1)
        _ = limiter.admit(1, nowNanos: 2)
        _ = limiter.admit(2, nowNanos: 3)
        #expect(limiter.admit(3, nowNanos: 11) == 2)
        #expect(limiter.admit(1, nowNanos: 12) == 0)
    }

    @Test(arguments: [1, 2, 3] as [UInt64]) func noLineIsNeitherWrittenNorCounted(seed: UInt64) {
        var state = seed
        func random(_ bound: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % bound
        }
        var limiter = LogLimiter<UInt64>(intervalNanos: 50, keysMax: 4)
        var (written, told, asked): (UInt64, UInt64, UInt64) = (0, 0, 0)
        var now: UInt64 = 0
        for _ in 0..<10_000 {
            now += random(10)
            asked += 1
            if let suppressed = limiter.admit(random(8), nowNanos: now) {
                written += 1
                told += suppressed
            }
        }
        // The rest, as lines long after make it come out.
        for key in 0..<8 as Range<UInt64> {
            for round in 1...20 as ClosedRange<UInt64> {
                asked += 1
                if let suppressed = limiter.admit(key, nowNanos: now + 1000 * (key * 20 + round)) {
                    written += 1
                    told += suppressed
                }
            }
        }
        #expect(written + told == asked, "seed \(seed)")
        // Five places and 45 000 ns at one line per 50 ns each, the first lines and the 160 of the end.
        #expect(written < 5000, "seed \(seed)")
    }
}
