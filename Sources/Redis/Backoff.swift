/// How long to wait before the next connection: full jitter under a ceiling that doubles.
///
/// Jitter over the whole range spreads a fleet that lost the same server at the same instant.
struct Backoff {
    let minNanos: UInt64
    let maxNanos: UInt64
    private var failures: UInt64 = 0

    init(minNanos: UInt64, maxNanos: UInt64) {
        self.minNanos = max(1, minNanos)
        self.maxNanos = max(self.minNanos, maxNanos)
    }

    /// The wait after one more failure: even over min ... min(max, min × 2^failures).
    mutating func next(using random: inout some RandomNumberGenerator) -> UInt64 {
        failures = min(failures + 1, 32)
        let (doubled, overflow) = minNanos.multipliedReportingOverflow(by: 1 << failures)
        return UInt64.random(in: minNanos...(overflow ? maxNanos : min(maxNanos, doubled)), using: &random)
    }

    /// A connection has proven itself.
    mutating func reset() { failures = 0 }
}
