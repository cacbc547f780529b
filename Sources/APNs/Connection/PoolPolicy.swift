/// Whether another connection is wanted; pure over a summary of the pool.
struct PoolPolicy: Equatable {
    struct Summary: Equatable {
        /// Ready or on the way there.
        var live = 0
        /// On the way there, or ready, not suspected and not yet proven by an accepted push.
        var opening = 0
        /// Ready connections that a successor is to replace.
        var replacing = 0
        /// Streams that could begin on ready connections now.
        var room = 0
        var waiting = 0
        /// How long those that wait will wait at the present pace; 0 where it is not known.
        var waitNanos: UInt64 = 0
        /// The limiter lets more leave.
        var hasLeave = true
        /// A push was refused by the only connection there is.
        var wantsAnother = false
    }

    private static let handful = 4
    /// How long the size that was before a GOAWAY counts.
    private static let refillNanos: UInt64 = 5_000_000_000

    let connectionsMin: Int
    let connectionsMax: Int
    let growAfterNanos: UInt64
    private var crampedSinceNanos: UInt64?
    /// Connections before APNs took leave of them, and how long that is the size to come back to.
    private var formerLive = 0
    private var formerUntilNanos: UInt64 = 0

    init(_ limits: APNsLimits, route: PushTable.Route = .main) {
        connectionsMin = route == .main ? limits.connectionsMin : 0
        connectionsMax = route == .main ? limits.connectionsMax : limits.suspectConnectionsMax
        growAfterNanos = limits.growAfterNanos
    }

    /// APNs takes leave of a connection that did its work, one of `live`.
    mutating func lost(live: Int, nowNanos: UInt64) {
        formerLive = nowNanos < formerUntilNanos ? max(formerLive, live) : live
        formerUntilNanos = nowNanos &+ Self.refillNanos
    }

    /// Whether the pool is smaller than it was before a GOAWAY just now.
    func isRefill(live: Int, nowNanos: UInt64) -> Bool {
        nowNanos < formerUntilNanos && live < min(formerLive, connectionsMax)
    }

    /// True when one more connect should begin (the pacer still decides when).
    mutating func wantsConnection(_ summary: Summary, nowNanos: UInt64) -> Bool {
        // Where each successor is as bad as the one before, their number stays bounded.
        guard summary.live <= connectionsMax else { return false }
        if summary.live - summary.replacing < connectionsMin { return true }
        if summary.live == 0, summary.waiting > 0 { return true }
        // Its size was found before: where it is missed there is nothing to find out, nor does one wait for another.
        if summary.waiting > 0, summary.room == 0, isRefill(live: summary.live - summary.replacing, nowNanos: nowNanos)
        {
            return true
        }
        // One successor at a time; it may stand beside a full pool until the old one has drained.
        if summary.replacing > 0 { return summary.opening == 0 }
        // The endpoint is asked for a second one only once the first was found good, then for two at a time.
        guard summary.opening == 0 || (summary.live > summary.opening && summary.opening < 2) else { return false }
        if summary.wantsAnother, summary.live < connectionsMax { return true }
        // More streams would not help where our own cap holds.
        let isCramped = summary.waiting > 0 && summary.room == 0 && summary.hasLeave
        // A handful costs little. Beyond it, a queue that is gone in a moment needs no more connections: windows are full
        // all the time where round trips are short.
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
