/// An app's `limits.rate`: a token bucket that holds a tenth of a second's worth.
///
/// Pure: the time comes from outside, in monotonic nanoseconds.
struct RateBucket {
    /// Nanoseconds between two pushes; 0: no limit.
    private var intervalNanos: UInt64
    private var burstNanos: UInt64
    /// When the bucket would be full: each push moves it on by one interval.
    private var fullAtNanos: UInt64 = 0

    /// - Parameter perSecond: of this shard; 0: no limit.
    init(perSecond: Double) {
        intervalNanos = perSecond > 0 ? UInt64(max(1, 1_000_000_000 / perSecond)) : 0
        burstNanos = max(intervalNanos, 100_000_000)
    }

    /// Another rate from now on; what was taken stays taken.
    mutating func change(perSecond: Double) {
        let changed = RateBucket(perSecond: perSecond)
        (intervalNanos, burstNanos) = (changed.intervalNanos, changed.burstNanos)
    }

    /// Nothing ever has to wait.
    var isUnlimited: Bool { intervalNanos == 0 }

    /// Nil: go, and the push is counted. Else the time at which to ask again.
    mutating func take(nowNanos: UInt64) -> UInt64? {
        guard intervalNanos > 0 else { return nil }
        let start = max(fullAtNanos, nowNanos)
        guard start &+ intervalNanos <= nowNanos &+ burstNanos else { return start &+ intervalNanos &- burstNanos }
        fullAtNanos = start &+ intervalNanos
        return nil
    }
}
