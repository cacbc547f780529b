import Kafka
import PushCore

/// A record that needs no recipients: a change of user state, a claim that is owed, or a bad record on its way to the
/// dead-letter topic.
final class ChangeJob {
    enum Task {
        case state(UserStateTask)
        /// The claim, and once it was taken the mark.
        case owed(OwedClaim, isClaimed: Bool)
        /// Settled once the dead-letter topic has it.
        case rejected
    }

    /// Which intake it came by, and from where; nil: it is made once more (`RecentChanges`).
    let origin: Origin?
    /// Nil of a bad record.
    let app: AppContext?
    let eventID: String
    var task: Task
    var ref = WorkRef.none
    /// Failed steps in a row; spaces the retries.
    var failures = 0
    var isWaitingForRetry = false
    /// Its step is with Redis and long (`UserStates.heavyInHand`).
    var isHeavy = false
    /// It lowered a badge that is to be told to devices.
    var owesClear = false
    /// Which process served its keys when it was begun (`UserStates.generation`).
    var generation: UInt32 = 0
    /// The record's key and bytes, if the stored settings may make it a bad record.
    var original: (key: [UInt8]?, value: [UInt8])?
    /// Of a bind: whose copies of the token it took away.
    var formerOwners: [String] = []
    /// Its partition went to another owner, who has to do it again: its offset is not to be settled here.
    var isHandedBack = false

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

    /// Whose state it changes.
    var uid: String? {
        guard case .state(let task) = task else { return nil }
        return task.state.uid
    }

    /// Its record came from one of these partitions of the intake.
    func isOf(_ intake: Intake, _ partitions: Set<TopicPartition>) -> Bool {
        origin.map { $0.intake === intake && partitions.contains($0.record.partition) } ?? false
    }

    /// Its offset may be committed.
    func settle() {
        guard let origin else { return }
        if !isHandedBack { origin.intake.settle(origin.record.place) }
        origin.intake.mayEndRevocation()
    }

    func tag(_ stage: Tag.Stage) -> UInt64 { Tag(ref, stage).bits }
}
