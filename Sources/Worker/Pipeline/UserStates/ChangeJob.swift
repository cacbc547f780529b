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

    /// Which intake it came by, and its place in that one's ledger.
    let intake: Intake
    let place: RecordPlace
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

    init(_ intake: Intake, _ place: RecordPlace, _ task: Task, app: AppContext? = nil, eventID: String = "") {
        self.intake = intake
        self.place = place
        self.task = task
        self.app = app
        self.eventID = eventID
    }

    /// Whose state it changes.
    var uid: String? {
        guard case .state(let task) = task else { return nil }
        return task.state.uid
    }

    func tag(_ stage: Tag.Stage) -> UInt64 { Tag(ref, stage).bits }
}
