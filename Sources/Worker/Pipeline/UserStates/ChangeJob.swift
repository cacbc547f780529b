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

    /// Which intake it came by, and its place in that one's ledger; nil: it is made once more (`RecentChanges`).
    let origin: (intake: Intake, place: RecordPlace)?
    /// Nil of a bad record.
    let app: AppContext?
    let eventID: String
    var task: Task
    var ref = WorkRef.none
    /// Failed steps in a row; spaces the retries.
    var failures = 0
    var isWaitingForRetry = false
    /// It lowered a badge that is to be told to devices.
    var owesClear = false
    /// Which process served its keys when it was begun (`UserStates.generation`).
    var generation: UInt32 = 0
    /// Of a bind: whose copies of the token it took away.
    var formerOwners: [String] = []

    init(
        _ origin: (intake: Intake, place: RecordPlace)?, _ task: Task, app: AppContext? = nil, eventID: String = ""
    ) {
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

    /// Its offset may be committed.
    func settle() {
        if let origin { origin.intake.settle(origin.place) }
    }

    func tag(_ stage: Tag.Stage) -> UInt64 { Tag(ref, stage).bits }
}
