// SPDX-License-Identifier: Apache-2.0
import Processes  // MachineUsage
import Testing

@testable import Bench

/// The arithmetic behind `carillon bench --apns --disturb`: what is compared with what, and when a bar is missed.
@Suite struct BenchFigureTests {
    /// So many outcomes in each hundredth of each stretch of a second.
    private func seconds(_ counts: Int...) -> [Int] { counts.flatMap { Array(repeating: $0, count: 100) } }

    @Test func outcomesAreCountedByTheHundredth() {
        var series = OutcomeSeries()
        for nanos in [0, 9_999_999, 10_000_000, 35_000_000] as [UInt64] { series.count(atNanos: nanos) }
        #expect(series.counts == [2, 1, 0, 1])
        #expect(series.perSecond(from: 0) == 100)
        #expect(series.perSecond(from: 0, to: 0.02) == 150)
        #expect(series.perSecond(from: 0.02, to: 0.03) == 0)
        #expect(series.perSecond(from: 1) == 0)
    }

    @Test func theRestOfALoadIsForgottenAndItsSilenceIsNot() {
        var late = OutcomeSeries(counts: seconds(1, 2), marks: [10, 150])
        late.cut(atSeconds: 1.5)
        #expect(late.counts.count == 150 && late.marks == [10])
        var silent = OutcomeSeries(counts: seconds(4))
        silent.cut(atSeconds: 2)
        #expect(silent.perSecond(from: 0) == 200)
    }

    @Test func oneEventOnManyConnectionsIsOne() {
        var series = OutcomeSeries()
        for ms in [1000, 1002, 1400, 2000] as [UInt64] { series.mark(atNanos: ms * 1_000_000) }
        #expect(series.marks == [100, 200])
    }

    @Test func secondsWithAnEventAreComparedWithTheOthers() throws {
        // The event comes in the middle of a second, and halves what follows for a second.
        let counts = seconds(10, 10) + Array(repeating: 5, count: 100) + seconds(10, 10)
        let series = OutcomeSeries(counts: counts, marks: [200])
        let around = try #require(series.aroundMarks(from: 0))
        #expect(around.with == 500 && around.without == 1000)
        #expect(series.seconds(afterMarks: 0) == [500])
        #expect(series.seconds(afterMarks: 2) == [1000])
        #expect(series.seconds(afterMarks: 2.01).isEmpty, "no whole second is left")
        #expect(OutcomeSeries(counts: counts).aroundMarks(from: 0) == nil)
        #expect(OutcomeSeries(counts: seconds(1), marks: [0]).aroundMarks(from: 0) == nil)
        // Nothing before the warm-up's end counts.
        let warm = try #require(OutcomeSeries(counts: seconds(0) + counts, marks: [300]).aroundMarks(from: 1))
        #expect(warm.without == 1000)
    }

    @Test func everyOtherStretchIsComparedWithItsNeighbours() {
        // The machine halves its pace on the way, the load costs a tenth throughout.
        let paces: [Double] = [100, 90, 100, 90, 100, 45, 50, 45, 50]
        let shares = OutcomeSeries.alternation(paces, warmUp: 0)
        #expect(shares == [90, 90, 60, 90])
        #expect(BenchFigure.median(shares) == 90)
        #expect(OutcomeSeries.alternation(paces, warmUp: 2) == [90, 60, 90])
        // Without the last neighbour there is nothing to compare with.
        #expect(OutcomeSeries.alternation([100, 90], warmUp: 0).isEmpty)
        #expect(OutcomeSeries.alternation([], warmUp: 0).isEmpty)
        #expect(OutcomeSeries.alternation([0, 5, 0], warmUp: 0)[0].isNaN)
    }

    @Test func aStretchLeavesOutWhatBelongsToTheOneBefore() {
        let late = seconds(10) + Array(repeating: 10, count: 20) + Array(repeating: 5, count: 80) + seconds(10)
        let series = OutcomeSeries(counts: late + [7])
        #expect(series.stretches(length: 1, skipping: 0.2) == [1000, 500, 1000])
        #expect(series.stretches(length: 1, skipping: 0) == [1000, 600, 1000])
        #expect(series.stretches(length: 0.5, skipping: 0.1) == [1000, 1000, 625, 500, 1000, 1000])
        #expect(OutcomeSeries().stretches(length: 1, skipping: 0).isEmpty)
    }

    struct Verdict {
        var bar: BenchFigure.Bar
        var value: Double
        var isMet: Bool
    }

    @Test(arguments: [
        Verdict(bar: .below(5), value: 4.99, isMet: true), Verdict(bar: .below(5), value: 5, isMet: false),
        Verdict(bar: .atMost(5), value: 5, isMet: true), Verdict(bar: .atMost(5), value: 5.01, isMet: false),
        Verdict(bar: .atLeast(90), value: 90, isMet: true), Verdict(bar: .atLeast(90), value: 89.99, isMet: false),
        Verdict(bar: .below(5), value: -3, isMet: true), Verdict(bar: .below(5), value: .nan, isMet: false),
        Verdict(bar: .atMost(0), value: .nan, isMet: false), Verdict(bar: .atLeast(0), value: .nan, isMet: false),
    ])
    func aBarIsMetOrMissed(_ row: Verdict) {
        #expect(BenchFigure("", row.value, bar: row.bar).isMet == row.isMet, "\(row)")
    }

    @Test func aFigureWithoutABarIsNeverMissed() {
        #expect(BenchFigure("", .nan).isMet)
        #expect(BenchFigure.Bar.below(5).text == "below 5")
        #expect(BenchFigure.Bar.atMost(0.5).text == "at most 0.5")
        #expect(BenchFigure.Bar.atLeast(1_980).text == "at least 1980")
    }

    @Test func partsOfNothingAreNoNumbers() {
        #expect(BenchFigure.share(45, of: 50) == 90)
        #expect(BenchFigure.below(45, 50) == 10)
        #expect(BenchFigure.below(55, 50) == -10)
        #expect(BenchFigure.share(1, of: 0).isNaN && BenchFigure.below(1, 0).isNaN)
        #expect(BenchFigure.median([3, 1, 2]) == 2)
        #expect(BenchFigure.median([4, 1, 2, 3]) == 2.5)
        #expect(BenchFigure.median([]).isNaN && BenchFigure.median([1, .nan, 2]).isNaN)
        #expect(BenchFigure.swing([9, 10, 11]) == 10)
        #expect(BenchFigure.swing([]).isNaN && BenchFigure.swing([0]).isNaN)
    }

    @Test func theCPUOfOtherProcessesIsReported() throws {
        // 100 ticks a second: user 100, nice 10, system 50, idle 800, iowait 20, irq 5, softirq 10, steal 5.
        let text = "cpu  100 10 50 800 20 5 10 5 7 7\ncpu0 1 1 1 1 1 1 1 1 0 0\n"
        let usage = try #require(MachineUsage(stat: text, ticksPerSecond: 100))
        #expect(usage == MachineUsage(busyNanos: 1_800_000_000, wallNanos: 10_000_000_000))
        let start = MachineUsage(busyNanos: 0, wallNanos: 0)
        #expect(usage.othersPercent(since: start, ownNanos: 800_000_000) == 10)
        #expect(usage.othersPercent(since: start, ownNanos: 1_900_000_000) == 0)
        #expect(usage.othersPercent(since: usage, ownNanos: 0) == 0)
        for broken in ["", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8", "cpu a b c d e f g h"] {
            #expect(MachineUsage(stat: broken, ticksPerSecond: 100) == nil, "\(broken)")
        }
        #expect(MachineUsage.now() != nil)
    }
}
