// SPDX-License-Identifier: Apache-2.0
internal import Synchronization

/// Counts of values by size, written by one thread and read by any scrape.
///
/// Values are integers in a small unit (nanoseconds, bytes); `scale` converts them to the exposed unit (seconds).
/// Exposition uses the few `bounds` of the initialiser. Benchmark reports need exact percentiles too, so
/// `precisionBits` adds fine log-linear buckets.
public final class Histogram: Sendable {
    /// Rising upper bounds in the exposed unit. A value equal to a bound belongs to it, as for Prometheus' `le`.
    public let bounds: [Double]
    /// Exposed unit per raw unit: 1e-9 for nanoseconds shown as seconds.
    public let scale: Double

    private let limits: BoundTable
    private let counts: CellArray
    private let fine: FineBuckets?
    private let fineCounts: CellArray
    private let rawSum = Atomic<UInt64>(0)

    /// Bounds for calls that take between 100 µs and 30 s, in seconds.
    public static var latencyBounds: [Double] {
        [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
    }

    /// A histogram outside any registry, for tests and reports.
    ///
    /// Bounds must rise, be finite and not negative. They come from code, so a violation stops the program.
    public init(bounds: [Double], scale: Double = 1e-9, precisionBits: Int? = nil) {
        precondition(scale > 0 && scale.isFinite, "Histogram: scale must be positive")
        precondition(bounds.allSatisfy { $0.isFinite && $0 >= 0 && $0 / scale < 9e18 }, "Histogram: bad bound")
        precondition(zip(bounds, bounds.dropFirst()).allSatisfy { $0 < $1 }, "Histogram: bounds must rise")
        self.bounds = bounds
        self.scale = scale
        let raw = bounds.map { UInt64(($0 / scale).rounded()) }
        limits = BoundTable(raw)
        counts = CellArray(count: bounds.count + 1)
        fine = precisionBits.map { FineBuckets(precisionBits: $0) }
        fineCounts = CellArray(count: fine?.count ?? 0)
    }

    /// Counts one value in raw units. Only the thread that owns this cell may call it.
    public func observe(_ raw: UInt64) {
        counts.increment(limits.index(of: raw))
        rawSum.store(rawSum.load(ordering: .relaxed) &+ raw, ordering: .relaxed)
        if let fine { fineCounts.increment(fine.index(of: raw)) }
    }

    /// The number of counted values. Any thread.
    public var count: UInt64 { (0..<counts.count).reduce(0) { $0 &+ counts.load($1) } }

    /// The sum of all values in the exposed unit. Any thread.
    public var sum: Double { Double(rawSum.load(ordering: .relaxed)) * scale }

    /// Counts per bound and, last, of all larger values; not cumulative.
    var bucketCounts: [UInt64] { (0..<counts.count).map { counts.load($0) } }

    /// The `q` quantile (0...1) of all values in the exposed unit; nil if empty.
    public func quantile(_ q: Double) -> Double? { Self.quantile(q, of: [self]) }

    /// The quantile of several cells together, for example of a process's shards; nil if all are empty.
    ///
    /// The cells must have equal bounds. With fine buckets the result is within 2^-precisionBits of the true value.
    /// Without them it is interpolated between two bounds, and never above the last one.
    public static func quantile(_ q: Double, of cells: [Histogram]) -> Double? {
        guard let first = cells.first else { return nil }
        precondition(
            cells.allSatisfy { $0.bounds == first.bounds && $0.fine?.precisionBits == first.fine?.precisionBits },
            "Histogram: cells of different shape")
        let share = min(max(q.isNaN ? 0 : q, 0), 1)
        guard let fine = first.fine else { return interpolated(share, cells, first.bounds) }
        let counts = (0..<fine.count).map { index in cells.reduce(0) { $0 &+ $1.fineCounts.load(index) } }
        guard let place = place(of: share, in: counts) else { return nil }
        return fine.middle(of: place.index) * first.scale
    }

    private static func interpolated(_ share: Double, _ cells: [Histogram], _ bounds: [Double]) -> Double? {
        let counts = (0...bounds.count).map { index in cells.reduce(0) { $0 &+ $1.counts.load(index) } }
        guard let place = place(of: share, in: counts) else { return nil }
        guard place.index < bounds.count else { return bounds.last }
        let lower = place.index == 0 ? 0 : bounds[place.index - 1]
        return lower + (bounds[place.index] - lower) * place.depth
    }

    /// The bucket with the wanted rank, and the rank's position in it (0...1).
    private static func place(of share: Double, in counts: [UInt64]) -> (index: Int, depth: Double)? {
        let total = counts.reduce(0, &+)
        guard total > 0 else { return nil }
        let rank = max(1, (share * Double(total)).rounded(.up))
        var below: Double = 0
        for (index, count) in counts.enumerated() where count > 0 {
            if below + Double(count) >= rank { return (index, (rank - below) / Double(count)) }
            below += Double(count)
        }
        return counts.lastIndex { $0 > 0 }.map { ($0, 1) }
    }
}
