import EventLoop
import Kafka
import PushCore
import Redis
import Telemetry

/// Records of `im.user-state`: they change what Redis holds, and alert nobody.
extension Pipeline {
    func apply(_ state: UserState, of event: Event, app: AppContext, place: OffsetLedger.Slot) {
        let task = UserStateTask(
            app: event.app, sentMs: event.sentMs, nowMs: loop.wallMs, state: state,
            clearsOnRead: app.policy.clearOnRead)
        let job = ChangeJob(place: place, task: task, app: app, eventID: event.id)
        insert(job)
        if task.isEmpty { done(job) } else { perform(job) }
    }

    func insert(_ job: ChangeJob) {
        (job.slot, job.generation) = changes.insert(job)
    }

    /// Sends the present step; what Redis cannot take is sent again after a pause.
    func perform(_ job: ChangeJob) {
        guard job.task != nil else { return }
        do throws(RedisFault) {
            try job.task?.send(store, tag: job.tag(.change))
        } catch {
            retryLater(job)
        }
    }

    func didReply(_ job: ChangeJob, _ reply: borrowing RedisReply) {
        guard let progress = job.task?.take(reply) else { return }
        switch progress {
        case .waiting: break
        case .next:
            job.retries = 0
            perform(job)
        case .done(let outcome):
            job.app?.metrics.applied(outcome)
            if case .applied = outcome, case .openReport = job.task?.state.change { job.app?.metrics.opens.add() }
            if job.task?.owesClear ?? false { clear(after: job) } else { done(job) }
        }
    }

    func didFail(_ job: ChangeJob, _ fault: RedisFault) {
        if fault.isLasting {
            // Tried again it would fail again, and hold up its partition for ever.
            job.app?.metrics.applied(.ignored(.unusable))
            return done(job)
        }
        // Several commands of one step may fail together; the step is sent again once.
        guard !job.isWaitingForRetry else { return }
        retryLater(job)
    }

    private func retryLater(_ job: ChangeJob) {
        job.isWaitingForRetry = true
        job.retries += 1
        // A new generation: replies to the abandoned try must not be taken for those of the next.
        changes.remove(slot: job.slot)
        insert(job)
        scheduleRetry(.retryChange(JobRef(slot: job.slot, generation: job.generation)), failures: job.retries)
    }

    func resume(_ job: ChangeJob) {
        job.isWaitingForRetry = false
        perform(job)
    }

    func done(_ job: ChangeJob) {
        changes.remove(slot: job.slot)
        settle(job.place)
        pollKafkaIfReady()
    }
}

/// A record that needs no recipients: a change of user state, or a bad record on its way to the dead-letter topic.
final class ChangeJob {
    let place: OffsetLedger.Slot
    let app: AppContext?
    let eventID: String
    var task: UserStateTask?
    var slot = 0
    var generation: UInt32 = 0
    var retries = 0
    var isWaitingForRetry = false

    init(place: OffsetLedger.Slot, task: UserStateTask, app: AppContext, eventID: String) {
        self.place = place
        self.eventID = eventID
        self.task = task
        self.app = app
    }

    /// A bad record: settled once the dead-letter topic has it.
    init(rejected place: OffsetLedger.Slot) {
        self.place = place
        app = nil
        eventID = ""
    }

    func tag(_ stage: Tag.Stage) -> UInt64 { Tag(slot: slot, generation: generation, stage: stage).bits }
}
