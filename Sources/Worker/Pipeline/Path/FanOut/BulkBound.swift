// SPDX-License-Identifier: Apache-2.0
import APNs

/// Limits how many members of large groups may start.
///
/// A message to one user waits at each step for the other work of a turn and of Redis. While such messages come, only
/// bulk's share of the work in Redis may start per turn, so that turns stay short; and a few times as many may be
/// between their first read and their claim, so that with a distant Redis or a busy machine not every batch waits for a
/// round trip. Small batches cost more per member: without such messages the only bound is Redis' own.
struct BulkBound {
    /// Start time of the last message of the lanes above groups, monotonic; nil for none.
    private var othersNanos: UInt64?
    /// The present turn, by its time, and the number of members started in it.
    private var turnNanos: UInt64 = 0
    private var started = 0

    /// After such a message the next one is expected within this time.
    static let memoryNanos: UInt64 = 5_000_000_000
    /// Minimum, however small the lane's share: below it a group's time is dominated by turns.
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

    /// This number of members starts now.
    mutating func start(_ count: Int, nowNanos: UInt64) {
        if nowNanos != turnNanos { (turnNanos, started) = (nowNanos, 0) }
        started += count
    }

    /// The number of further members that may start now; `Int.max` if only Redis is the bound.
    ///
    /// - Parameter undecided: members between their first read and their claim.
    func room(undecided: Int, _ limits: PipelineLimits, nowNanos: UInt64) -> Int {
        guard let othersNanos, nowNanos &- othersNanos < Self.memoryNanos else { return .max }
        let commands = limits.lanes.part(of: limits.redisDepthMax, for: .bulk)
        let perTurn = max(Self.least, commands / PipelineLimits.commandsPerStep)
        return max(0, min(perTurn - (nowNanos == turnNanos ? started : 0), Self.turns * perTurn - undecided))
    }
}
