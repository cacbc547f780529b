// SPDX-License-Identifier: Apache-2.0
/// The Unix time of a shard: that of the wall clock when it was last found right, and the monotonic clock since.
///
/// A wall clock that jumps moves nothing before it is compared with others (`ClockWatch`), so no message expires by it.
struct ShardClock {
    /// Unix ms at the monotonic clock's 0.
    private(set) var originMs: Int64

    init(wallMs: Int64, nowNanos: UInt64) { originMs = wallMs &- Self.ms(nowNanos) }

    func ms(nowNanos: UInt64) -> Int64 { originMs &+ Self.ms(nowNanos) }

    /// The wall clock is right.
    mutating func take(wallMs: Int64, nowNanos: UInt64) { self = ShardClock(wallMs: wallMs, nowNanos: nowNanos) }

    static func ms(_ nanos: UInt64) -> Int64 { Int64(truncatingIfNeeded: nanos / 1_000_000) }
}
