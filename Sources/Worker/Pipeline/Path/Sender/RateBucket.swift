// SPDX-License-Identifier: Apache-2.0
/// An app's `limits.rate`: a token bucket for a tenth of a second.
///
/// Pure: the time comes from outside, in monotonic nanoseconds.
struct RateBucket {
    /// Nanoseconds between two pushes; 0 for no limit.
    private var intervalNanos: UInt64
    private var burstNanos: UInt64
    /// When the bucket would be full. Each push adds one interval.
    private var fullAtNanos: UInt64 = 0

    /// - Parameter perSecond: rate of this shard; 0 for no limit.
    init(perSecond: Double) {
        intervalNanos = perSecond > 0 ? UInt64(max(1, 1_000_000_000 / perSecond)) : 0
        burstNanos = max(intervalNanos, 100_000_000)
    }

    /// Sets another rate. Taken tokens stay taken.
    mutating func change(perSecond: Double) {
        let changed = RateBucket(perSecond: perSecond)
        (intervalNanos, burstNanos) = (changed.intervalNanos, changed.burstNanos)
    }

    /// Nothing ever waits.
    var isUnlimited: Bool { intervalNanos == 0 }

    /// - Returns: nil if the push may go, and then it is counted; otherwise the time at which to ask again.
    mutating func take(nowNanos: UInt64) -> UInt64? {
        guard intervalNanos > 0 else { return nil }
        let start = max(fullAtNanos, nowNanos)
        guard start &+ intervalNanos <= nowNanos &+ burstNanos else { return start &+ intervalNanos &- burstNanos }
        fullAtNanos = start &+ intervalNanos
        return nil
    }
}
