// SPDX-License-Identifier: Apache-2.0
/// Compares the worker's wall clock with that of Redis (TIME) and that of the brokers (append times of records).
///
/// Pure. The times of producers and phones do not count. Each reference is kept with the monotonic moment of its answer, so a
/// wall clock that jumps is seen without another answer.
struct ClockWatch {
    enum Reference: String, CaseIterable, Sendable {
        case redis, kafka
    }

    enum Verdict: Equatable, Sendable {
        /// Nobody has said the time yet.
        case unknown
        case right
        /// More than a minute off: somebody should look at it.
        case off
        /// More than five minutes off: nothing is read and nothing expires by it.
        case wrong
    }

    private struct Time {
        /// Unix ms, and the monotonic moment at which it was so.
        var ms: Int64
        var nanos: UInt64

        func ms(nowNanos: UInt64) -> Int64 { ms &+ ShardClock.ms(nowNanos) &- ShardClock.ms(nanos) }
    }

    static let stopMs: Int64 = 300_000
    /// An append time that no later one has confirmed for so long says nothing any more.
    private static let appendNanos: UInt64 = 300_000_000_000

    private var redis: Time?
    /// How inexact the answer of Redis is.
    private var roundTripMs: Int64 = 0
    private var append: Time?
    /// Redis does not say the time to this user.
    private var isRefused = false

    /// - Parameter ms: Redis' answer to the question sent at `askedNanos`.
    mutating func answered(ms: Int64, askedNanos: UInt64, nowNanos: UInt64) {
        isRefused = false
        roundTripMs = max(0, ShardClock.ms(nowNanos) &- ShardClock.ms(askedNanos))
        redis = Time(ms: ms, nanos: askedNanos)
    }

    mutating func refused() {
        isRefused = true
        redis = nil
    }

    /// A broker appended a record at that time. Only the newest says how late it is at least.
    @inline(__always)
    mutating func appended(ms: Int64, nowNanos: UInt64) {
        if let append, ms <= append.ms(nowNanos: nowNanos) { return }
        append = Time(ms: ms, nanos: nowNanos)
    }

    /// By how much the worker's clock is ahead, or behind where negative; nil: the reference has not said the time.
    func skewMs(_ reference: Reference, wallMs: Int64, nowNanos: UInt64) -> Int64? {
        switch reference {
        case .redis:
            guard let redis else { return nil }
            let skew = wallMs &- redis.ms(nowNanos: nowNanos)
            // It was read at some moment of the round trip.
            return skew > 0 ? skew : min(0, skew &+ roundTripMs)
        case .kafka:
            guard let append, nowNanos &- append.nanos < Self.appendNanos else { return nil }
            return min(0, wallMs &- append.ms(nowNanos: nowNanos))
        }
    }

    /// The reference from which the clock is furthest.
    func worst(wallMs: Int64, nowNanos: UInt64) -> (reference: Reference, skewMs: Int64)? {
        Reference.allCases.compactMap { reference in
            skewMs(reference, wallMs: wallMs, nowNanos: nowNanos).map { (reference: reference, skewMs: $0) }
        }.max { $0.skewMs.magnitude < $1.skewMs.magnitude }
    }

    func verdict(wallMs: Int64, nowNanos: UInt64) -> Verdict {
        if redis == nil, !isRefused { return .unknown }
        guard let worst = worst(wallMs: wallMs, nowNanos: nowNanos) else { return .right }
        if worst.skewMs.magnitude > Self.stopMs.magnitude {
            return worst.reference == .kafka && isRightByRedis(wallMs: wallMs, nowNanos: nowNanos) ? .off : .wrong
        }
        return worst.skewMs.magnitude > EventReader.clockToleranceMs.magnitude ? .off : .right
    }

    /// Two clocks agree, so the third is the wrong one: one broker that is ahead does not stop the worker.
    private func isRightByRedis(wallMs: Int64, nowNanos: UInt64) -> Bool {
        guard let skewMs = skewMs(.redis, wallMs: wallMs, nowNanos: nowNanos) else { return false }
        return skewMs.magnitude <= EventReader.clockToleranceMs.magnitude
    }
}
