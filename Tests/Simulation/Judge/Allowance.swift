// SPDX-License-Identifier: Apache-2.0
/// What the contract allows because of the faults of a run.
struct Allowance {
    /// A record may be written twice, and a push sent twice.
    var mayRepeat = false
    /// Only moves to another Kafka cluster may repeat anything, and before each all workers ended well: no push is sent twice.
    var isMovedInPeace = false
    /// How long an answer of Redis, or a request, may be on its way: a push that was checked before may leave after.
    var slackNanos: UInt64 = 1_500_000_000
    /// How far the clock of a worker may be off.
    var clockSlackMs: Int64 = 50
    /// How far it may be off without being found wrong.
    var unseenClockMs: Int64 = 0
    /// Redis may have lost writes, or not answer: a number may be missing.
    var mayLackNumbers = false
    /// Some pushes wait: for APNs, for a worker, or for Kafka.
    var mayWait = false
    /// No fault of any kind.
    var isCalm = true
    /// The brokers refused a topic, and a worker may have ended with a delivery that they never took. Its event comes again, perhaps
    /// when the device is away.
    var mayLoseDeliveries = false
    /// When a Redis server refused writes.
    var refusals: [ClosedRange<UInt64>] = []
    /// The statistics may lack outcomes, and have repeated ones twice.
    var mayMiscount = false
    /// The only trouble was that two apps had to wait for APNs.
    var isOnlyThrottled = false
    /// All that may repeat anything was a planned end or a new worker, and each worker that ended had drained.
    var isDrainedWell = false
    /// Some records have no Kafka time.
    var hasOddTimes = false
    /// All work was one process's.
    var hadOneProcess = true
    /// All work was one shard's.
    var hadOneShard = false
    /// Moves of slots from one server of Redis to another.
    var slotMoves: [SlotMove] = []
    /// When workers may still have read a replaced master, which follows its successor (`History.replicationNanos`).
    var replacedMasters: [ClosedRange<UInt64>] = []
    /// Writes that Redis has lost.
    var losses: [Loss] = []
    /// Events that Kafka has dropped, perhaps before a worker read them.
    var lostEvents: Set<String> = []

    /// Redis refused writes for a time: the end of an activity, or a revoke, may be known to nobody.
    var refusesWrites: Bool { !refusals.isEmpty }
}

/// A time in which slots moved, or not every server knew that they had.
struct SlotMove {
    var nanos: ClosedRange<UInt64>
    /// The users (`app:uid`) and tokens (`app:token`) with keys in these slots.
    var tags: Set<String>
}

/// Writes that Redis had answered, and lost.
struct Loss {
    /// When the oldest of them can have been made.
    var fromNanos: UInt64
    var toNanos: UInt64
    /// Whose keys: `app:uid`, `app:msg` or `app:token`.
    var tags: Set<String>
}
