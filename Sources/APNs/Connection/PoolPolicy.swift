/// Whether another connection is wanted; pure over a summary of the pool.
struct PoolPolicy: Equatable {
    struct Summary: Equatable {
        /// Ready or on the way there.
        var live = 0
        /// On the way there, or ready and not yet proven by an accepted push.
        var opening = 0
        /// Ready connections that a successor is to replace.
        var replacing = 0
        /// Streams that could begin on ready connections now.
        var room = 0
        var waiting = 0
        var inFlight = 0
        /// A push was refused by the only connection there is.
        var wantsAnother = false
    }

    let connectionsMin: Int
    let connectionsMax: Int
    let growAfterNanos: UInt64
    let inFlightMax: Int
    private var crampedSinceNanos: UInt64?

    init(_ limits: APNsLimits) {
        connectionsMin = limits.connectionsMin
        connectionsMax = limits.connectionsMax
        growAfterNanos = limits.growAfterNanos
        inFlightMax = limits.inFlightMax
    }

    /// True when one more connect should begin (the pacer still decides when).
    mutating func wantsConnection(_ summary: Summary, nowNanos: UInt64) -> Bool {
        if summary.live - summary.replacing < connectionsMin { return true }
        guard summary.opening == 0 else { return false }
        // One successor at a time; it may stand beside a full pool until the old one has drained.
        if summary.replacing > 0 { return true }
        if summary.wantsAnother, summary.live < connectionsMax { return true }
        // More streams would not help where our own cap holds.
        let isCramped = summary.waiting > 0 && summary.room == 0 && summary.inFlight < inFlightMax
        guard isCramped, summary.live < connectionsMax else {
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
