// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import JSON
import Kafka
import PushCore
import Redis
import Telemetry

/// Records of `im.user-state`: they change the state in Redis, and alert nobody. Also bad records of all topics, for
/// the dead-letter topic.
///
/// Ended work is in `done`; changes that lowered a badge which devices must get are in `lowered`.
final class UserStates {
    let done = Tray<ChangeJob>()
    let lowered = Tray<ChangeJob>()
    /// Records that are bad because of stored state, on their way to the dead-letter topic.
    let refused = Tray<(ChangeJob, RejectedRecord)>()
    private let shard: ShardContext
    private let results: (outbox: Outbox, topic: OutTopic)?
    private var changes: SlotTable<ChangeJob>
    /// The process ends: changes that Redis does not accept now are left to the partitions' next owner.
    private var processEnds = false
    private var repetition = ChangeRepetition()
    /// Called when all that was to be made again is.
    var didMakeAgain: () -> Void = {}
    private var heavy = HeavyChanges()
    private var binds = BindOrder()
    private let reports: ReportCounter
    /// Reports that wait for the marks of their pushes.
    private var waitingReports = 0
    private static let waitingReportsMax = 64

    /// - Parameter results: the destination of results of applied records (`state_results`); nil for none.
    init(_ shard: ShardContext, results: (outbox: Outbox, topic: OutTopic)?) {
        self.shard = shard
        self.results = results
        reports = ReportCounter(shard)
        changes = SlotTable(capacity: shard.limits.changesMax)
    }

    var count: Int { changes.count }

    /// Claims in progress that Redis refused before.
    private(set) var owedCount = 0

    /// Room for one more poll.
    var hasRoom: Bool { changes.count < shard.limits.changesMax - shard.limits.pollBatch }

    func apply(
        _ state: UserState, of event: borrowing Event, app: AppContext, _ intake: Intake, _ record: EventJob.Origin,
        key: [UInt8]?, value: [UInt8]
    ) {
        var state = state
        if case .bind(var binding) = state.change {
            binding.token.topic = app.policy.bareTopic(binding.token.topic, of: binding.token.type)
            state.change = .bind(binding)
        }
        let task = UserStateTask(
            app: event.app, sentMs: event.sentMs, nowMs: shard.nowMs, state: state,
            clearsOnRead: app.policy.clearOnRead,
            record: state.isReport ? "\(record.source.partition):\(record.source.offset)" : "")
        let job = ChangeJob(ChangeJob.Origin(intake, record), .state(task), app: app, eventID: event.id)
        if !value.isEmpty { job.original = (key, value) }
        if case .bind(let binding) = state.change, !app.policy.allows(topic: binding.token.topic) {
            job.ref = changes.insert(job)
            return end(job, .ignored(.otherTopic))
        }
        begin(job, isEmpty: task.isEmpty)
    }

    /// Claims of one record that Redis refused when their recipients were pushed. One after the other: a record may have many.
    func pay(_ owed: [OwedClaim], app: AppContext?, _ intake: Intake, _ record: EventJob.Origin) {
        guard let first = owed.first else { return intake.settle(record.place) }
        owedCount += owed.count
        let job = ChangeJob(
            ChangeJob.Origin(intake, record), .owed(first, isClaimed: false), app: app, eventID: first.eventID)
        job.unpaid = owed.dropFirst()
        job.noteUnstored(shard)
        begin(job, isEmpty: false)
    }

    /// The change has ended, also its pushes. Its record's next claim is paid, or the record is settled.
    func settle(_ job: ChangeJob) {
        guard let next = job.unpaid.first else { return job.settle() }
        if processEnds { job.staysUnsettled = true }
        if job.staysUnsettled {
            owedCount -= job.unpaid.count
            return job.settle()
        }
        job.unpaid.removeFirst()
        job.task = .owed(next, isClaimed: false)
        job.owesClear = false
        job.failures = 0
        begin(job, isEmpty: false)
    }

    /// A claim that Redis has just refused. Another worker may read its record and pay it, and the user's number is not exact
    /// before. Without room nobody asks, and `UnstoredCounts` ends it by its time.
    func watch(_ request: ClaimRequest) {
        if processEnds || shard.share.isWhole || changes.count >= shard.limits.changesMax / 4 { return }
        let job = ChangeJob(nil, .watched(OwedClaim(request, eventID: "")))
        job.ref = changes.insert(job)
        retryLater(job)
    }

    private func begin(_ job: ChangeJob, isEmpty: Bool) {
        job.ref = changes.insert(job)
        if case .state(let task) = job.task { job.generation = generation(of: task) }
        if isEmpty { return end(job, .ignored(.unusable)) }
        // Also while it waits for an earlier bind of its token.
        if shard.writes.refusal != nil { job.noteUnstored(shard) }
        if binds.admit(job) == .goesOn { perform(job) }
    }

    /// A bind is over: others of its token go on.
    private func endBind(_ job: ChangeJob) {
        for next in binds.ended(job) { perform(next) }
    }

    /// A bad record. `didSettle` follows once the dead-letter topic has it. Returns the tag for that.
    func begin(rejected record: EventJob.Origin, _ intake: Intake) -> UInt64 {
        let job = ChangeJob(ChangeJob.Origin(intake, record), .rejected)
        job.ref = changes.insert(job)
        return job.tag(.deadLetter)
    }

    func didSettle(_ ref: WorkRef) {
        if let job = changes.find(ref) { end(job) }
    }

    private func end(_ job: ChangeJob) {
        if case .owed = job.task { owedCount -= 1 }
        job.noteStored(shard)
        changes.remove(job.ref)
        endBind(job)
        if case .watched = job.task { return }
        if job.origin == nil { return endedAgain() }
        if job.owesClear { lowered.append(job) } else { done.append(job) }
        shard.requestTurn()
    }

    /// Sends the present step. If Redis cannot accept it, it is sent again after a pause.
    private func perform(_ job: ChangeJob) {
        if passHeavy(job) == .kept { return }
        do throws(RedisFault) {
            switch job.task {
            case .rejected: return
            case .state(var task):
                try task.send(shard.store, tag: job.tag(.change))
                job.task = .state(task)
            case .owed(var owed, let isClaimed):
                owed.request.nowMs = shard.nowMs
                if isClaimed { return try mark(owed, job) }
                try shard.store.claim(owed.request, tag: job.tag(.change))
            case .watched(let owed): try shard.store.peek(owed.request, tag: job.tag(.change))
            }
        } catch {
            endHeavy(job)
            retryLater(job)
        }
    }

    /// Few heavy changes are in Redis at once; further ones wait.
    private func passHeavy(_ job: ChangeJob) -> Passage {
        guard case .state(let task) = job.task, task.isHeavy else { return .goesOn }
        job.isHeavy = heavy.begin(job.ref)
        return job.isHeavy ? .goesOn : .kept
    }

    /// Its step is over: the next one goes on.
    private func endHeavy(_ job: ChangeJob) {
        if !job.isHeavy { return }
        job.isHeavy = false
        releaseHeavy()
    }

    private func releaseHeavy() {
        heavy.end()
        while let ref = heavy.next() {
            if let next = changes.find(ref) { perform(next) }
        }
    }

    private func mark(_ owed: OwedClaim, _ job: ChangeJob) throws(RedisFault) {
        let mark = shard.store.preparedMark(
            app: owed.request.app, uid: owed.request.uid, owed.request.subject, nowMs: shard.nowMs,
            seconds: owed.note.isEmpty || shard.traces.isOff ? 0 : shard.traces.lifeSeconds
        ) { $0.part(owed.note) }
        try shard.store.writeMark(mark, tag: job.tag(.change))
    }

    func didReply(_ ref: WorkRef, _ reply: borrowing RedisReply) {
        guard let job = changes.find(ref) else { return shard.noteLate() }
        if job.writes { shard.noteWritten() }
        // After the next step of this job, which waits behind other heavy changes.
        let wasHeavy = job.isHeavy
        job.isHeavy = false
        defer { if wasHeavy { releaseHeavy() } }
        switch job.task {
        case .rejected: return
        case .owed(let owed, isClaimed: false):
            let claim = ClaimReply(reply)
            shard.unstoredCounts.remove(owed.message)
            // Finished elsewhere: there is a mark already.
            if claim?.state == .ended { return end(job) }
            job.owesClear = claim?.owesClear ?? false
            job.task = .owed(owed, isClaimed: true)
            perform(job)
        case .owed: end(job)
        case .watched(let owed):
            if let claim = ClaimReply(reply), claim.state != .fresh { shard.unstoredCounts.remove(owed.message) }
            if shard.unstoredCounts.contains(owed.message) { retryLater(job) } else { end(job) }
        case .state(var task):
            let progress = task.take(reply)
            job.task = .state(task)
            didMove(job, task, progress)
        }
    }

    private func didMove(_ job: ChangeJob, _ task: UserStateTask, _ progress: UserStateTask.Progress) {
        switch progress {
        case .waiting: break
        case .later: awaitMark(job, task)
        case .next:
            job.failures = 0
            perform(job)
        case .done(let outcome):
            job.noteStored(shard)
            job.owesClear = task.owesClear
            if job.origin != nil { reports.count(job, task, outcome) }
            if case .refused = outcome {} else { keep(job, task) }
            end(job, outcome)
        }
    }

    /// A report waits for the mark of its push. Only some do, so that late and invented reports delay no other change.
    private func awaitMark(_ job: ChangeJob, _ task: UserStateTask) {
        if waitingReports < Self.waitingReportsMax {
            waitingReports += 1
            job.awaitsMark = true
            return retryLater(job)
        }
        var task = task
        task.stopWaiting()
        job.task = .state(task)
        perform(job)
    }

    private func stopAwaiting(_ job: ChangeJob) {
        if !job.awaitsMark { return }
        job.awaitsMark = false
        waitingReports -= 1
    }

    /// The record's result is known: it is written if wanted, and then the record is settled. Other binds of its token do not wait
    /// for that, because brokers may refuse results for long.
    private func end(_ job: ChangeJob, _ outcome: StateOutcome) {
        endBind(job)
        if job.origin == nil { return end(job) }
        job.app?.metrics.applied(outcome)
        if case .refused(let fault) = outcome { return refuse(job, fault) }
        guard let results, let app = job.app, case .state(let task) = job.task else { return end(job) }
        let result = StateResult(
            app: app.id, eventID: job.eventID, uid: task.state.uid, kind: task.state.change.kind, outcome: outcome,
            atMs: shard.nowMs)
        var writer = JSONWriter(reservingCapacity: 256)
        result.write(to: &writer)
        results.outbox.send(results.topic, key: task.state.uid, value: writer, tag: job.tag(.stateResult))
    }

    /// The record goes to the dead-letter topic; `didSettle` follows once it is there.
    private func refuse(_ job: ChangeJob, _ fault: DNDWindow.Fault) {
        guard let origin = job.origin, let original = job.original else { return end(job) }
        job.task = .rejected
        let record = RejectedRecord(
            why: shard.reader.windowFault(fault, in: original.value), origin: origin.record,
            topic: origin.intake.topic(of: origin.record.partition), offset: origin.record.source.offset,
            key: original.key, value: original.value)
        refused.append((job, record))
        shard.requestTurn()
    }

    func didFail(_ ref: WorkRef, _ fault: RedisFault) {
        if fault.refusesWrite { shard.writes.refused(fault, nowNanos: shard.nowNanos) }
        guard let job = changes.find(ref) else { return shard.noteLate() }
        endHeavy(job)
        if fault.isLasting, case .owed(let owed, isClaimed: false) = job.task {
            // Nothing will count it any more; the mark stops a repeat.
            shard.unstoredCounts.remove(owed.message)
            job.task = .owed(owed, isClaimed: true)
            return perform(job)
        }
        if fault.isLasting {
            // A retry would fail again, and block its partition permanently.
            return end(job, .ignored(.unusable))
        }
        // Several commands of one step may fail together; the step is sent again once.
        if !job.isWaitingForRetry { retryLater(job) }
    }

    /// Leaves changes that wait for Redis unsettled. Sent ones continue to their answer.
    func handBack() {
        processEnds = true
        repetition.forget()
        var retried = binds.forget()
        changes.forEach { if $0.isWaitingForRetry { retried.append($0) } }
        for job in retried { leave(job) }
    }

    private func leave(_ job: ChangeJob) {
        stopAwaiting(job)
        if case .owed = job.task { owedCount -= 1 + job.unpaid.count }
        changes.remove(job.ref)
        endBind(job)
        if case .state = job.task, job.origin == nil { repetition.left() }
    }

    private func retryLater(_ job: ChangeJob) {
        if processEnds { return leave(job) }
        if !job.awaitsMark { job.noteUnstored(shard) }
        job.isWaitingForRetry = true
        job.failures += 1
        // A new generation: replies to the abandoned attempt must not be taken for those of the next.
        changes.remove(job.ref)
        job.ref = changes.insert(job)
        shard.timers.schedule(.retryChange(job.ref), dueNanos: shard.retryNanos(failures: job.failures))
    }

    func retry(_ ref: WorkRef) {
        guard let job = changes.find(ref), job.isWaitingForRetry else { return shard.noteLate() }
        job.isWaitingForRetry = false
        stopAwaiting(job)
        perform(job)
    }

    /// Redis accepts writes: what it refused is tried at once, because pushes and numbers wait for it.
    func retryRefused() {
        var waiting: [ChangeJob] = []
        changes.forEach { if $0.isWaitingForRetry, !$0.awaitsMark { waiting.append($0) } }
        for job in waiting { retry(job.ref) }
    }
}

// MARK: Once more

extension UserStates {
    /// A link is ready, possibly to another process: changes that the previous one accepted may not have been
    /// replicated.
    func serverMayHaveChanged() {
        if processEnds { return }
        let moved = repetition.takeMoved { generation(of: $0) }
        if moved == 0 { return }
        shard.log.info(
            "another Redis process serves users: repeating their newest changes", ["changes": .int(moved)])
        makeAgain()
    }

    /// Queues a change that was read a second time. It has no result record, and no offset waits for it.
    func applyAgain(_ state: UserState, of event: borrowing Event, app: AppContext) {
        var state = state
        if case .bind(var binding) = state.change {
            binding.token.topic = app.policy.bareTopic(binding.token.topic, of: binding.token.type)
            if !app.policy.allows(topic: binding.token.topic) { return }
            state.change = .bind(binding)
        }
        let task = UserStateTask(
            app: event.app, sentMs: event.sentMs, nowMs: shard.nowMs, state: state, clearsOnRead: app.policy.clearOnRead
        )
        if task.isEmpty { return }
        repetition.append(task, app)
    }

    /// Applies the queued changes; `didMakeAgain` follows. Returns false if there are none.
    func beginAgain() -> Bool {
        guard !processEnds else { return false }
        makeAgain()
        return repetition.isUnderWay
    }

    /// A read of that time may lack changes of this shard that a server of Redis lost in a failover.
    func mayHaveMissed(readNanos: UInt64) -> Bool {
        repetition.mayHaveMissed(
            readNanos: readNanos, nowNanos: shard.nowNanos, isRefused: shard.writes.refusal != nil)
    }

    private func makeAgain() {
        while let change = repetition.next(nowNanos: shard.nowNanos) {
            let task = change.task.fromStart(nowMs: shard.nowMs)
            begin(ChangeJob(nil, .state(task), app: change.app), isEmpty: false)
        }
    }

    private func endedAgain() {
        repetition.left()
        makeAgain()
        if repetition.noteEnd(nowNanos: shard.nowNanos) { didMakeAgain() }
        shard.requestTurn()
    }

    /// Redis accepted the change. If its keys moved to another process in this time, that one may lack the first steps.
    private func keep(_ job: ChangeJob, _ task: UserStateTask) {
        guard let app = job.app, !processEnds, !TestBreak.isOn(.trustCopies), let again = task.repetition else {
            return
        }
        let isMoved = generation(of: task) != job.generation
        if isMoved {
            repetition.append(again, app)
            makeAgain()
        } else {
            repetition.keep(again, app, generation: job.generation, takenNanos: shard.nowNanos)
        }
    }

    /// The process that serves the keys of a change. A token's keys are on several; any of them counts.
    private func generation(of task: UserStateTask) -> UInt32 {
        switch task.state.change {
        case .bind, .unbind: shard.store.client.serverGeneration
        default: shard.store.client.generation(ofKey: StateKeys.tag(task.app, task.state.uid))
        }
    }
}

extension UserState {
    fileprivate var isReport: Bool {
        switch change {
        case .openReport, .arrivedReport: true
        case .bind, .unbind, .settings, .mute, .read, .badgeReport, .ack, .forget: false
        }
    }
}

extension UserStateTask {
    /// Its steps take Redis as long as some hundred reads.
    fileprivate var isHeavy: Bool {
        switch state.change {
        case .ack(_, _, let ids): ids.count > 16
        case .forget: true
        case .bind, .unbind, .settings, .mute, .read, .badgeReport, .openReport, .arrivedReport: false
        }
    }
}
