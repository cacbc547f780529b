// SPDX-License-Identifier: Apache-2.0
/// A latency histogram in bounded memory. A bucket's width is at most an eighth of its value. Milliseconds.
public struct LatencySpread: Equatable, Sendable {
    /// Eight buckets per power of two, exact below 16.
    private static let perOctave = 8
    public private(set) var count = 0
    public private(set) var maxMs: Int64 = 0
    private var buckets: [Int] = []

    public init() {}

    public mutating func add(_ ms: Int64) {
        let ms = max(0, ms)
        let index = Self.index(of: ms)
        if index >= buckets.count { buckets += Array(repeating: 0, count: index + 1 - buckets.count) }
        buckets[index] += 1
        count += 1
        maxMs = max(maxMs, ms)
    }

    /// The upper border of the bucket that contains the share, never above the highest value; nil without values.
    public func percentile(_ share: Double) -> Int64? {
        guard count > 0 else { return nil }
        let wanted = max(1, Int((share * Double(count)).rounded(.up)))
        var seen = 0
        for (index, number) in buckets.enumerated() {
            seen += number
            if seen >= wanted { return min(Self.last(of: index), maxMs) }
        }
        return maxMs
    }

    /// Non-empty buckets: both borders (inclusive) and the count.
    public var bars: [(fromMs: Int64, toMs: Int64, count: Int)] {
        buckets.enumerated().compactMap { index, number in
            number == 0 ? nil : (index == 0 ? 0 : Self.last(of: index - 1) + 1, Self.last(of: index), number)
        }
    }

    private static func index(of ms: Int64) -> Int {
        if ms < 16 { return Int(ms) }
        let octave = 63 - ms.leadingZeroBitCount
        return 16 + (octave - 4) * perOctave + Int((ms >> (octave - 3)) & 7)
    }

    /// The highest value of a bucket.
    private static func last(of index: Int) -> Int64 {
        if index < 16 { return Int64(index) }
        let octave = (index - 16) / perOctave + 4
        let step = Int64((index - 16) % perOctave) + 9
        let (high, isTooHigh) = step.multipliedReportingOverflow(by: 1 << (octave - 3))
        return isTooHigh ? .max : high - 1
    }
}
