/// Rising pauses with full jitter: even over everything between a small floor and a ceiling that doubles per failure.
///
/// Full jitter spreads a fleet that lost the same server at the same instant; the floor, a sixteenth of the base, keeps
/// an unlucky draw from being a hot loop. Holds no state: the owner counts its failures.
public struct Backoff: Sendable, Equatable {
    /// Ceiling of the first pause, in nanoseconds.
    public var baseNanos: UInt64
    /// Highest ceiling, in nanoseconds.
    public var capNanos: UInt64

    public init(baseNanos: UInt64, capNanos: UInt64) {
        self.baseNanos = baseNanos
        self.capNanos = capNanos
    }

    /// The ceiling after `failures` failures in a row; 1 is the first, and less counts as 1.
    public func ceilingNanos(failures: Int) -> UInt64 {
        let doublings = min(max(failures, 1) - 1, 40)
        let (value, overflow) = baseNanos.multipliedReportingOverflow(by: 1 << UInt64(doublings))
        return overflow ? capNanos : min(value, capNanos)
    }

    /// The pause after `failures` failures in a row, in nanoseconds.
    public func delayNanos(failures: Int, random: inout some RandomNumberGenerator) -> UInt64 {
        let ceiling = ceilingNanos(failures: failures)
        return UInt64.random(in: min(baseNanos / 16, ceiling)...ceiling, using: &random)
    }

    /// The same pauses under a lower cap.
    public func capped(atNanos cap: UInt64) -> Backoff {
        Backoff(baseNanos: baseNanos, capNanos: min(capNanos, cap))
    }
}
