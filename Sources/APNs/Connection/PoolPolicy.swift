// SPDX-License-Identifier: Apache-2.0
/// Decides whether another connection is wanted; pure, from a summary of the pool.
struct PoolPolicy: Equatable {
    struct Summary: Equatable {
        /// Ready or opening.
        var live = 0
        /// On the way there, or ready, not suspected and not yet proven by an accepted push.
        var opening = 0
        /// Ready connections with a pending successor.
        var replacing = 0
        /// Streams that could begin on ready connections now.
        var room = 0
        var waiting = 0
        /// Expected wait of waiting pushes at the present pace; 0 if unknown.
        var waitNanos: UInt64 = 0
        /// The limiter allows more streams.
        var hasLeave = true
        /// The only connection refused a push.
        var wantsAnother = false
    }

    private static let handful = 4
    /// How long the pool's size before a GOAWAY remains the target.
    private static let refillNanos: UInt64 = 5_000_000_000

    let connectionsMin: Int
    let connectionsMax: Int
    let growAfterNanos: UInt64
    private var crampedSinceNanos: UInt64?
    /// Number of connections before APNs ended some, and how long that number remains the target.
    private var formerLive = 0
    private var formerUntilNanos: UInt64 = 0

    init(_ limits: APNsLimits, route: PushTable.Route = .main) {
        connectionsMin = route == .main ? limits.connectionsMin : 0
        connectionsMax = route == .main ? limits.connectionsMax : limits.suspectConnectionsMax
        growAfterNanos = limits.growAfterNanos
    }

    /// APNs ends a useful connection, one of `live`.
    mutating func lost(live: Int, nowNanos: UInt64) {
        formerLive = nowNanos < formerUntilNanos ? max(formerLive, live) : live
        formerUntilNanos = nowNanos &+ Self.refillNanos
    }

    /// - Returns: whether the pool is smaller than before a recent GOAWAY.
    func isRefill(live: Int, nowNanos: UInt64) -> Bool {
        nowNanos < formerUntilNanos && live < min(formerLive, connectionsMax)
    }

    /// - Returns: true if one more connect should begin (the pacer still decides when).
    mutating func wantsConnection(_ summary: Summary, nowNanos: UInt64) -> Bool {
        // Where each successor is as bad as the one before, their number stays bounded.
        guard summary.live <= connectionsMax else { return false }
        if summary.live - summary.replacing < connectionsMin { return true }
        if summary.live == 0, summary.waiting > 0 { return true }
        // The size is known from before, so missing connections are replaced without probing, and not one after
        // another.
        if summary.waiting > 0, summary.room == 0, isRefill(live: summary.live - summary.replacing, nowNanos: nowNanos)
        {
            return true
        }
        // One successor at a time. It may exceed a full pool until the old connection has drained.
        if summary.replacing > 0 { return summary.opening == 0 }
        // A second connection is opened only after the first was proven, then two at a time.
        guard summary.opening == 0 || (summary.live > summary.opening && summary.opening < 2) else { return false }
        if summary.wantsAnother, summary.live < connectionsMax { return true }
        // More streams would not help at our own cap.
        let isCramped = summary.waiting > 0 && summary.room == 0 && summary.hasLeave
        // A few connections cost little. Beyond that, a queue that drains in a moment needs no more: with short round
        // trips windows are full all the time.
        let isWorth = summary.live < Self.handful || summary.waitNanos >= growAfterNanos
        guard isCramped, isWorth, summary.live < connectionsMax else {
            crampedSinceNanos = nil
            return false
        }
        let since = crampedSinceNanos ?? nowNanos
        crampedSinceNanos = since
        if nowNanos &- since < growAfterNanos { return false }
        crampedSinceNanos = nil
        return true
    }
}
