// SPDX-License-Identifier: Apache-2.0
import Kafka
import PushCore

/// Work without recipients: the record of a user-state change, of an owed claim or a bad record for the dead-letter topic, or a
/// claim that another worker may pay.
final class ChangeJob {
    enum Task {
        case state(UserStateTask)
        /// The claim, and the mark once it was accepted.
        case owed(OwedClaim, isClaimed: Bool)
        /// Redis is asked until another worker has paid it, or nobody waits for its count any more.
        case watched(OwedClaim)
        /// Settled once the dead-letter topic has it.
        case rejected
    }

    /// The record's intake and position; nil for a repetition (`RecentChanges`) and for a watched claim.
    let origin: Origin?
    /// Nil for a bad record.
    let app: AppContext?
    let eventID: String
    var task: Task
    var ref = WorkRef.none
    /// Consecutive failed steps; spaces the retries.
    var failures = 0
    var isWaitingForRetry = false
    /// It is retried because the mark of the reported push is not there yet.
    var awaitsMark = false
    /// Its counts for the statistics, added once its record is settled.
    var counted = RecordCounts()
    /// Further owed claims of its record, which follow this one.
    var unpaid: ArraySlice<OwedClaim> = []
    /// Its step is with Redis and long (`HeavyChanges`).
    var isHeavy = false
    /// The change's keys in `UnstoredChanges`; empty unless Redis refuses writes or a try has failed.
    var unstoredKeys: [UnstoredChanges.Key] = []
    /// It lowered a badge that devices must get.
    var owesClear = false
    /// The generation of the Redis server that had its keys when it began (`UserStates.generation`).
    var generation: UInt32 = 0
    /// The record's key and bytes, if the stored settings may make it a bad record.
    var original: (key: [UInt8]?, value: [UInt8])?
    /// Whether its partition's next owner must repeat it: its offset must not be settled here.
    var staysUnsettled = false

    struct Origin {
        let intake: Intake
        let record: EventJob.Origin

        init(_ intake: Intake, _ record: EventJob.Origin) {
            self.intake = intake
            self.record = record
        }
    }

    init(_ origin: Origin?, _ task: Task, app: AppContext? = nil, eventID: String = "") {
        self.origin = origin
        self.task = task
        self.app = app
        self.eventID = eventID
    }

    /// The user with the changed state.
    var uid: String? {
        switch task {
        case .state(let task): task.state.uid
        case .owed(let owed, _), .watched(let owed): owed.request.uid
        case .rejected: nil
        }
    }

    // MARK: While Redis has not stored it

    /// Pushes wait for a change; numbers wait for a claim that changes them.
    func noteUnstored(_ shard: ShardContext) {
        switch task {
        // The pipeline of a watched claim has noted it. The note's time bounds the watch, so it stays as it is.
        case .rejected, .watched: break
        case .state(let task):
            if !unstoredKeys.isEmpty { return }
            unstoredKeys = task.unstoredKeys
            if !unstoredKeys.isEmpty { shard.unstoredChanges.insert(unstoredKeys) }
        case .owed(let owed, let isClaimed):
            for claim in (isClaimed ? [] : [owed]) + unpaid where claim.request.changesBadge {
                shard.unstoredCounts.insert(claim.message, of: claim.user, nowNanos: shard.nowNanos)
            }
        }
    }

    /// Also if it can never be stored. One that is left at the process' end keeps pushes waiting until then.
    func noteStored(_ shard: ShardContext) {
        if unstoredKeys.isEmpty { return }
        shard.unstoredChanges.remove(unstoredKeys)
        unstoredKeys = []
    }

    /// Its present step writes. A Redis that refuses writes answers the others.
    var writes: Bool {
        switch task {
        case .state(let task): task.writes
        case .owed, .rejected: true
        case .watched: false
        }
    }

    /// - Returns: whether its record came from one of these partitions of the intake.
    func isOf(_ intake: Intake, _ partitions: Set<TopicPartition>) -> Bool {
        origin.map { $0.intake === intake && partitions.contains($0.record.partition) } ?? false
    }

    /// Its offset may be committed.
    func settle() {
        guard let origin else { return }
        if !staysUnsettled {
            origin.intake.settle(origin.record.place, counted, origin.record.partition.partition)
        }
        origin.intake.mayEndRevocation()
    }

    func tag(_ question: Question) -> UInt64 { Tag(ref, question).bits }
}
