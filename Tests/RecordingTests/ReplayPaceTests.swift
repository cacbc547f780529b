// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Recording

/// When records are due.
@Suite struct ReplayPaceTests {
    @Test(
        arguments: [
            (ReplayPace(.unbounded), 1000, 50.0, 0.0),
            (ReplayPace(.rate(10)), 0, 0, 0), (ReplayPace(.rate(10)), 25, 0, 2.5),
            (ReplayPace(.speed(2)), 99, 3, 1.5), (ReplayPace(.speed(0.5)), 0, 3, 6),
            // Out of order in its file: at once.
            (ReplayPace(.speed(2)), 99, -3, 0),
            // Half of rate times ramp comes while it rises, and the rest at the full rate.
            (ReplayPace(.rate(10), rampSeconds: 4), 20, 0, 4), (ReplayPace(.rate(10), rampSeconds: 4), 5, 0, 2),
            (ReplayPace(.rate(10), rampSeconds: 4), 30, 0, 5), (ReplayPace(.speed(2), rampSeconds: 4), 0, 4, 4),
        ])
    func aRecordIsDueWhenItsPaceSays(pace: ReplayPace, index: Int, recorded: Double, due: Double) {
        #expect(abs(pace.dueSeconds(index: index, recordedSeconds: recorded) - due) < 1e-9)
    }

    @Test func aRampRisesAndNeverFalls() {
        let pace = ReplayPace(.rate(100), rampSeconds: 10)
        let due = (0...2000).map { pace.dueSeconds(index: $0, recordedSeconds: 0) }
        #expect(zip(due, due.dropFirst()).allSatisfy { $0 < $1 })
        let gaps = zip(due, due.dropFirst()).map { $1 - $0 }
        #expect(zip(gaps, gaps.dropFirst()).allSatisfy { $0 >= $1 - 1e-9 })
    }

    /// At any speed no record is dated later than it is written.
    @Test(arguments: [0.1, 1, 3, 1000]) func noRecordIsDatedInTheFuture(speed: Double) {
        let pace = ReplayPace(.speed(speed))
        let spanMs: Int64 = 60_000
        let newest = pace.newestAfterMs(recordedMs: spanMs)
        for atMs in stride(from: 0, through: spanMs, by: 1000) {
            let writtenMs = pace.dueSeconds(index: 0, recordedSeconds: Double(atMs) / 1000) * 1000
            #expect(Double(newest - (spanMs - atMs)) <= writtenMs + 1)
        }
        #expect(ReplayPace(.rate(5)).newestAfterMs(recordedMs: spanMs) == 0)
    }

    @Test func aSpreadReportsPercentilesWithinAnEighth() {
        var spread = LatencySpread()
        #expect(spread.percentile(0.5) == nil)
        for ms in 1...1000 { spread.add(Int64(ms)) }
        for (share, exact) in [(0.001, 1.0), (0.5, 500), (0.9, 900), (0.99, 990), (1, 1000)] {
            let found = Double(spread.percentile(share) ?? 0)
            #expect(found >= exact && found <= exact * 1.125)
        }
        #expect(spread.maxMs == 1000 && spread.count == 1000)
        #expect(spread.bars.map(\.count).reduce(0, +) == 1000)
        var odd = LatencySpread()
        for ms in [-5, 0, .max] as [Int64] { odd.add(ms) }
        #expect(odd.percentile(0.1) == 0 && odd.percentile(1) == .max)
        for (one, next) in zip(odd.bars, odd.bars.dropFirst()) { #expect(one.toMs < next.fromMs) }
    }
}
