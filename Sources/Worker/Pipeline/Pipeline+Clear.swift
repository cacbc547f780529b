import APNs
import EventLoop
import JSON
import Kafka
import Payload
import PushCore
import Redis
import Telemetry

/// `clear_on_read`: a read that lowers the badge sends the new number, 0 included, to the devices that were pushed.
///
/// Off, it costs one look at a flag. On, each recipient that is pushed costs one command more, whose answer nobody waits
/// for, and which stands before the claim: a read that comes after the claim then finds the device.
extension Pipeline {
    /// Before the claim: these devices will show what is counted now.
    func noteDevices(_ job: RecipientJob) {
        guard job.event.app.policy.clearOnRead, let push = job.event.message?.value.push, !push.silent, !push.voip,
            let routes = job.decision?.routes
        else { return }
        var devices: [String] = []
        for route in routes where route.pushedToken != nil { devices.append(route.device) }
        guard !devices.isEmpty else { return }
        // Lost with the connection, the claim is lost as well, and both are sent again.
        try? store.notePushed(app: job.event.app.id, uid: job.recipient.uid, devices: devices, tag: job.tag(.note))
    }

    /// A read that lowered the number: its offset waits for the pushes.
    func clear(after change: ChangeJob) {
        changes.remove(slot: change.slot)
        defer { pollKafkaIfReady() }
        guard let app = change.app, let uid = change.task?.state.uid else { return settle(change.place) }
        if let waiting = clearOf[ClearJob.Owner(app: app.id, uid: uid)] {
            waiting.places.append(change.place)
            waiting.eventID = change.eventID
            return
        }
        // Full: APNs is away. Redis remembers that the number was not told, and the user's next read tells it.
        guard !clears.isFull else { return settle(change.place) }
        let job = ClearJob(app: app, uid: uid, eventID: change.eventID, place: change.place)
        (job.slot, job.generation) = clears.insert(job)
        clearOf[job.owner] = job
        schedule(.clear(job.ref), dueNanos: loop.nowNanos &+ ClearJob.waitNanos)
    }

    func clearJob(_ ref: JobRef) -> ClearJob? { clears.find(slot: ref.slot, generation: ref.generation) }

    /// Who is to be told. From now on another read makes a job of its own.
    func beginClear(_ job: ClearJob) {
        if clearOf[job.owner] === job { clearOf[job.owner] = nil }
        job.hasFailed = false
        job.awaiting = 2
        ask(job) { (store) throws(RedisFault) in
            try store.readUser(app: job.app.id, uid: job.uid, tag: job.tag(.clearUser))
        }
        ask(job) { (store) throws(RedisFault) in
            try store.pushedDevices(app: job.app.id, uid: job.uid, tag: job.tag(.clearDevices))
        }
    }

    private func ask(_ job: ClearJob, _ send: (StateStore) throws(RedisFault) -> Void) {
        do throws(RedisFault) {
            try send(store)
        } catch {
            answered(job, failed: true)
        }
    }

    private func answered(_ job: ClearJob, failed: Bool) {
        job.awaiting -= 1
        if failed { job.hasFailed = true }
        guard job.awaiting == 0 else { return }
        guard !job.hasFailed else { return later(.clear(job.ref), job) }
        job.retries = 0
        job.chooseTargets(nowNanos: loop.nowNanos)
        let departed = job.departed
        if !departed.isEmpty {
            try? store.forgetPushed(app: job.app.id, uid: job.uid, devices: departed, tag: job.tag(.note))
        }
        if job.targets.isEmpty { return finish(job) }
        for index in job.targets.indices {
            let device = DeviceRef(job: job.ref, device: index, isClear: true)
            if lanes.enter(job.targets[index].token.record.hex, device) { submit(job, index) }
        }
    }

    /// Redis could not be asked: again after a pause.
    private func later(_ item: DueItem, _ job: ClearJob) {
        job.retries += 1
        scheduleRetry(item, failures: job.retries)
    }

    // MARK: - One device

    /// The device's turn has come.
    func submit(_ job: ClearJob, _ index: Int) {
        admit(DeviceRef(job: job.ref, device: index, isClear: true), of: job.app)
    }

    /// The number of this moment, and whose the token is.
    func look(_ job: ClearJob, _ index: Int) {
        guard index < job.targets.count, !job.targets[index].isEnded else { return }
        job.targets[index].awaiting = 3
        job.targets[index].hasFailed = false
        do throws(RedisFault) {
            try store.readBadge(
                app: job.app.id, uid: job.uid, baseTag: job.tag(.clearBase, index),
                sizeTag: job.tag(.clearSize, index))
            try store.owner(
                app: job.app.id, token: job.targets[index].token.record.hex, tag: job.tag(.clearOwner, index))
        } catch {
            // Answers to what was sent before find nobody who waits for them.
            job.targets[index].awaiting = 0
            later(.turn(DeviceRef(job: job.ref, device: index, isClear: true)), job)
        }
    }

    private func looked(_ job: ClearJob, _ index: Int, _ note: (inout ClearJob.Target) -> Void) {
        guard index < job.targets.count, job.targets[index].awaiting > 0 else { return }
        note(&job.targets[index])
        job.targets[index].awaiting -= 1
        guard job.targets[index].awaiting == 0 else { return }
        if job.targets[index].hasFailed {
            return later(.turn(DeviceRef(job: job.ref, device: index, isClear: true)), job)
        }
        send(job, index)
    }

    private func send(_ job: ClearJob, _ index: Int) {
        let target = job.targets[index]
        let token = target.token.record
        guard target.isOwned else { return end(job, index, .suppressed, Reason.tokenMoved.rawValue) }
        let nowMs = loop.wallMs
        guard let client = job.app.client(for: target.token), let device = DeviceToken(token.hex),
            let headers = try? PushHeaders(
                topic: token.topic, pushType: .alert, expirationSeconds: nowMs / 1000 + ClearJob.storedSeconds,
                collapseID: ClearJob.collapseID)
        else { return end(job, index, .suppressed, Reason.noToken.rawValue) }
        let badge = BadgeRule.alone(target.base.badge(size: target.size), cap: job.app.policy.badgeCap)
        job.targets[index].badge = badge
        let push = Push(
            tag: job.tag(.clearPush, index), token: device, headers: headers,
            id: PushID(high: target.pushID.high, low: target.pushID.low), payload: PayloadTemplate.badgeAlone(badge),
            expiresAtMs: nowMs + ClearJob.patienceMs, lane: .silent)
        switch client.apns.send(push) {
        case .taken, .held: break
        case .full: client.stalled.append(DeviceRef(job: job.ref, device: index, isClear: true))
        // The process ends: the read is not settled and comes again.
        case .closed: break
        case .unfit(let fault):
            log.error("a badge was unfit to be sent", ["fault": .string(fault.text), "app": .string(job.app.id)])
            end(job, index, .rejected, "Unfit")
        }
    }

    /// APNs' answer. A dead token goes with the user's next alert.
    func didFinishClear(_ tag: Tag, _ outcome: PushOutcome, attempts: Int) {
        let index = Int(tag.index)
        guard let job = clearJob(tag.ref), index < job.targets.count else { return }
        let ending = Ending(outcome, token: job.targets[index].token, isForced: false)
        end(job, index, ending.verdict, ending.reason) { record in
            record.label = ending.label
            record.apnsID = ending.apnsID
            record.status = ending.status
            record.attempts = attempts
        }
    }

    private func end(
        _ job: ClearJob, _ index: Int, _ verdict: Verdict, _ reason: String,
        _ fill: (inout OutcomeRecord) -> Void = { _ in }
    ) {
        guard !job.targets[index].isEnded else { return }
        job.targets[index].isEnded = true
        job.open -= 1
        let target = job.targets[index]
        var record = OutcomeRecord(uid: job.uid, device: target.token.device, verdict: verdict, reason: reason)
        record.pushID = target.pushID
        record.badge = target.badge
        record.latencyMs = Int64((loop.nowNanos &- target.startedNanos) / 1_000_000)
        fill(&record)
        write(record, of: job)
        finishIfEnded(job)
        leaveLane(target.token.record.hex)
    }

    /// Like a Live Activity's, the record has no message's id: `event_id` is the read's.
    private func write(_ record: OutcomeRecord, of job: ClearJob) {
        job.app.metrics.decided(record.verdict, record.label)
        guard isWritten(record) else { return }
        recordWriter.clear()
        OutcomeRecord.begin(in: &recordWriter, app: job.app.id, eventID: job.eventID, msgID: "")
        record.finish(in: &recordWriter, atMs: loop.wallMs)
        job.unackedRecords += 1
        outbox?.send(topics.results, key: record.uid, value: recordWriter, tag: job.tag(.clearRecord))
    }

    func clearRecordSettled(_ job: ClearJob) {
        job.unackedRecords -= 1
        finishIfEnded(job)
    }

    private func finishIfEnded(_ job: ClearJob) {
        if job.open == 0, job.unackedRecords == 0 { finish(job) }
    }

    /// The number was told: Redis forgets that it was not, and the reads are settled.
    private func finish(_ job: ClearJob) {
        try? store.badgeTold(app: job.app.id, uid: job.uid, tag: job.tag(.note))
        clears.remove(slot: job.slot)
        for place in job.places { settle(place) }
        pollKafkaIfReady()
    }

    // MARK: - Answers

    func didReplyClear(_ tag: Tag, _ reply: borrowing RedisReply) {
        guard let job = clearJob(tag.ref) else { return }
        let index = Int(tag.index)
        switch tag.stage {
        case .clearUser:
            var recipient = Recipient(uid: job.uid)
            RecipientReplies.user(reply, into: &recipient)
            job.tokens = recipient.tokens
            answered(job, failed: false)
        case .clearDevices:
            job.pushed = StateStore.devices(reply)
            answered(job, failed: false)
        case .clearBase:
            let base = BadgeReading(base: reply)
            looked(job, index) { $0.base = base }
        case .clearSize:
            let size = reply.int64 ?? 0
            looked(job, index) { $0.size = size }
        case .clearOwner:
            guard index < job.targets.count else { return }
            let isOwned = OwnerReply.allows(reply, uid: job.uid, token: job.targets[index].token)
            looked(job, index) { $0.isOwned = isOwned }
        default: break
        }
    }

    func didFailClear(_ tag: Tag) {
        guard let job = clearJob(tag.ref) else { return }
        switch tag.stage {
        case .clearUser, .clearDevices: answered(job, failed: true)
        default: looked(job, Int(tag.index)) { $0.hasFailed = true }
        }
    }
}
