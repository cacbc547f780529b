// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

@testable import Telemetry

struct HistogramTests {
    @Test func aValueEqualToABoundBelongsToIt() {
        let histogram = Histogram(bounds: [1, 2, 5], scale: 1)
        for value in [0, 1, 2, 3, 5, 6, UInt64.max] as [UInt64] { histogram.observe(value) }
        #expect(histogram.bucketCounts == [2, 1, 2, 2])
        #expect(histogram.count == 7)
    }

    @Test(arguments: [1, 2, 3, 4, 5] as [UInt64])
    func everyValueFallsIntoTheFirstBoundThatHoldsIt(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let bounds = Histogram.latencyBounds
        for _ in 0..<2000 {
            let value = random.next() >> (random.next() % 64)
            let histogram = Histogram(bounds: bounds)
            histogram.observe(value)
            let expected = bounds.firstIndex { UInt64(($0 * 1e9).rounded()) >= value } ?? bounds.count
            #expect(histogram.bucketCounts.firstIndex(of: 1) == expected, "seed \(seed), value \(value)")
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func fineQuantilesStayWithinTheirPrecision(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let histogram = Histogram(bounds: [1], scale: 1, precisionBits: 7)
        var values: [UInt64] = []
        for _ in 0..<5000 {
            let value = (random.next() >> 22) >> (random.next() % 40)
            values.append(value)
            histogram.observe(value)
        }
        values.sort()
        for share in [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let rank = max(1, Int((share * Double(values.count)).rounded(.up)))
            let truth = Double(values[rank - 1])
            let got = try #require(histogram.quantile(share))
            #expect(abs(got - truth) <= truth / 128 + 0.5, "seed \(seed), share \(share): \(got) against \(truth)")
        }
    }

    @Test func coarseQuantilesAreInterpolatedBetweenBounds() {
        let histogram = Histogram(bounds: [10, 20], scale: 1)
        for _ in 0..<10 { histogram.observe(15) }
        #expect(histogram.quantile(0.5) == 15)
        #expect(histogram.quantile(1) == 20)
        histogram.observe(1000)
        #expect(histogram.quantile(1) == 20)
    }

    @Test func anEmptyHistogramHasNoQuantile() {
        #expect(Histogram(bounds: [1]).quantile(0.5) == nil)
        #expect(Histogram(bounds: [1], precisionBits: 5).quantile(0.5) == nil)
        #expect(Histogram.quantile(0.5, of: []) == nil)
    }

    @Test func cellsOfSeveralShardsGiveOneQuantile() throws {
        let cells = (0..<2).map { _ in Histogram(bounds: [1], scale: 1, precisionBits: 7) }
        for value in 0..<100 as Range<UInt64> { cells[Int(value % 2)].observe(value) }
        #expect(try #require(Histogram.quantile(0.5, of: cells)) == 49)
    }

    @Test func aValueBeyondTheFineRangeIsCountedLast() throws {
        let histogram = Histogram(bounds: [1], scale: 1, precisionBits: 7)
        histogram.observe(.max)
        #expect(try #require(histogram.quantile(0.5)) > Double(UInt64(1) << 41))
    }
}
