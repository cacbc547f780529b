// SPDX-License-Identifier: Apache-2.0
/// Rising pauses with full jitter: uniform between a small floor and a ceiling that doubles per failure.
///
/// Full jitter spreads a fleet that lost the same server at the same instant. The floor, a sixteenth of the base,
/// prevents a busy loop after an unlucky draw. Has no state: the owner counts its failures.
public struct Backoff: Sendable, Equatable {
    /// Ceiling of the first pause, in nanoseconds.
    public var baseNanos: UInt64
    /// Highest ceiling, in nanoseconds.
    public var capNanos: UInt64

    public init(baseNanos: UInt64, capNanos: UInt64) {
        self.baseNanos = baseNanos
        self.capNanos = capNanos
    }

    /// The ceiling after `failures` consecutive failures; values below 1 count as 1.
    public func ceilingNanos(failures: Int) -> UInt64 {
        let doublings = min(max(failures, 1) - 1, 40)
        let (value, overflow) = baseNanos.multipliedReportingOverflow(by: 1 << UInt64(doublings))
        return overflow ? capNanos : min(value, capNanos)
    }

    /// The pause after `failures` consecutive failures, in nanoseconds.
    public func delayNanos(failures: Int, random: inout some RandomNumberGenerator) -> UInt64 {
        let ceiling = ceilingNanos(failures: failures)
        return UInt64.random(in: min(baseNanos / 16, ceiling)...ceiling, using: &random)
    }

    /// The same pauses with a lower cap.
    public func capped(atNanos cap: UInt64) -> Backoff {
        Backoff(baseNanos: baseNanos, capNanos: min(capNanos, cap))
    }
}
