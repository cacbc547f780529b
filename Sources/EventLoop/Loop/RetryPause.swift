/// How long to wait before another try: even between the least pause and a ceiling that doubles with each failure.
///
/// Jitter over the whole range spreads a fleet that lost the same server at the same instant.
public struct RetryPause: Sendable {
    public let minNanos: UInt64
    public let maxNanos: UInt64
    private var failures: UInt64 = 0
    private var lastNanos: UInt64 = 0

    public init(minNanos: UInt64, maxNanos: UInt64) {
        self.minNanos = max(1, minNanos)
        self.maxNanos = max(self.minNanos, maxNanos)
    }

    /// The pause after one more failure: even over min ... min(max, min × 2^failures).
    public mutating func next(using random: inout some RandomNumberGenerator) -> UInt64 {
        failures = min(failures + 1, 32)
        let (doubled, overflow) = minNanos.multipliedReportingOverflow(by: 1 << failures)
        return UInt64.random(in: minNanos...(overflow ? maxNanos : min(maxNanos, doubled)), using: &random)
    }

    /// The same for failures whose end nobody tells: twice the longest pause without one begins anew.
    public mutating func next(nowNanos: UInt64, using random: inout some RandomNumberGenerator) -> UInt64 {
        let (quiet, isEndless) = maxNanos.multipliedReportingOverflow(by: 2)
        if !isEndless, nowNanos >= lastNanos, nowNanos - lastNanos >= quiet { reset() }
        lastNanos = nowNanos
        return next(using: &random)
    }

    /// What failed goes well again.
    public mutating func reset() { failures = 0 }
}
