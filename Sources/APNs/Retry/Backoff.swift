/// Rising delays with full jitter: uniform between nothing and a doubling ceiling.
///
/// Full jitter spreads a herd best; a floor of a sixteenth of the base keeps the unlucky draw from being a hot loop.
public struct Backoff: Sendable, Equatable {
    public var baseNanos: UInt64
    public var capNanos: UInt64

    public init(baseNanos: UInt64, capNanos: UInt64) {
        self.baseNanos = baseNanos
        self.capNanos = capNanos
    }

    /// The ceiling after `failures` failures (1 is the first).
    func ceilingNanos(failures: Int) -> UInt64 {
        let doublings = min(max(failures - 1, 0), 40)
        let (value, overflow) = baseNanos.multipliedReportingOverflow(by: 1 << UInt64(doublings))
        return overflow ? capNanos : min(value, capNanos)
    }

    func delayNanos(failures: Int, random: inout SmallRandom) -> UInt64 {
        let ceiling = ceilingNanos(failures: failures)
        return random.next(in: min(baseNanos / 16, ceiling)...ceiling)
    }
}

/// SplitMix64: small, fast, seedable; for jitter, not for secrets.
struct SmallRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func next(in range: ClosedRange<UInt64>) -> UInt64 {
        UInt64.random(in: range, using: &self)
    }
}
