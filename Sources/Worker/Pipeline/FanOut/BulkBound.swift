import APNs

/// How many members of large groups may start.
///
/// A message to one user waits for what a turn of the loop and Redis have in hand of others, at each of the steps on its way.
/// While such messages come, no more members start in a turn than bulk's part of what may be under way in Redis, so that turns
/// stay short; and a few times as many may be between their first read and their claim, so that a Redis that is far away, or a
/// machine that is busy, does not make each of them wait for a round trip. Small batches cost more for each member: without such
/// messages there is no bound but Redis' own.
struct BulkBound {
    /// When a message of the lanes above groups last began, monotonic; nil: none did.
    private var othersNanos: UInt64?
    /// Which turn it is, by its time, and how many started in it.
    private var turnNanos: UInt64 = 0
    private var started = 0

    /// For so long after one the next is expected.
    static let memoryNanos: UInt64 = 5_000_000_000
    /// However small the lane's share: below it a group's time is that of its turns.
    static let least = 8
    /// Turns' worth of members between read and claim.
    static let turns = 3

    /// A message of this lane begins.
    mutating func note(_ lane: PushLane, nowNanos: UInt64) {
        switch lane {
        case .urgent, .direct: othersNanos = nowNanos
        case .group, .bulk, .silent: break
        }
    }

    /// So many members start now.
    mutating func start(_ count: Int, nowNanos: UInt64) {
        if nowNanos != turnNanos { (turnNanos, started) = (nowNanos, 0) }
        started += count
    }

    /// How many more may start now; `Int.max`: as many as Redis has room for.
    ///
    /// - Parameter undecided: members between their first read and their claim.
    func room(undecided: Int, _ limits: PipelineLimits, nowNanos: UInt64) -> Int {
        guard let othersNanos, nowNanos &- othersNanos < Self.memoryNanos else { return .max }
        let commands = limits.lanes.part(of: limits.redisDepthMax, for: .bulk)
        let perTurn = max(Self.least, commands / PipelineLimits.commandsPerStep)
        return max(0, min(perTurn - (nowNanos == turnNanos ? started : 0), Self.turns * perTurn - undecided))
    }
}
