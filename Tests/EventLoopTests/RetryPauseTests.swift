import EventLoop
import Support
import Testing

@Suite("Retry pause")
struct RetryPauseTests {
    @Test(arguments: [1, 2, 3] as [UInt64])
    func risesWithFullJitterAndStaysInItsBounds(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var pause = RetryPause(minNanos: 50, maxNanos: 5000)
        var seen: [UInt64] = []
        for failures in 1...200 {
            let wait = pause.next(using: &random)
            #expect((50...min(5000, 50 << min(failures, 20))).contains(Int(wait)), "seed \(seed)")
            seen.append(wait)
        }
        #expect((seen.max() ?? 0) > 4000 && (seen.dropFirst(10).min() ?? .max) < 1000, "seed \(seed)")
        pause.reset()
        #expect(pause.next(using: &random) <= 100)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func twiceTheLongestPauseWithoutAFailureBeginsAnew(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var pause = RetryPause(minNanos: 50, maxNanos: 5000)
        var longest: UInt64 = 0
        for round in 0..<100 as Range<UInt64> {
            longest = max(longest, pause.next(nowNanos: 100_000 + round * 9999, using: &random))
        }
        #expect(longest > 4000, "seed \(seed)")
        #expect(pause.next(nowNanos: 100_000 + 99 * 9999 + 10_000, using: &random) <= 100, "seed \(seed)")
    }

    @Test func survivesAbsurdLimits() {
        var random = SeededGenerator(seed: 1)
        var pause = RetryPause(minNanos: .max, maxNanos: 0)
        #expect(pause.next(nowNanos: 1, using: &random) == .max)
        #expect(pause.next(nowNanos: 0, using: &random) == .max)
    }
}
