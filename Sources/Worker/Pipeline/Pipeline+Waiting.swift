import EventLoop
import PushCore
import Redis
import Telemetry

/// What waits for a clock: acks of the long connection, holds for a desktop, steps that Redis could not answer.
extension Pipeline {
    /// The first look comes early, so that an ack in time ends its message soon; the last at the deadline.
    private static let earlyLookNanos: UInt64 = 1_000_000_000

    func armDue() {
        guard let earliest = due.earliest else { return }
        let now = loop.nowNanos
        dueTimer?.arm(afterNanos: earliest > now ? earliest - now : 0)
    }

    /// Has something looked at when its time comes.
    func schedule(_ item: DueItem, dueNanos: UInt64) {
        due.insert(item, dueNanos: dueNanos)
        armDue()
    }

    /// Redis could not answer: again after a jittered pause that doubles with each failure in a row, up to 3.2 s.
    func scheduleRetry(_ item: DueItem, failures: Int) {
        metrics.redisRetries.add()
        let ceiling = UInt64(50_000_000) << UInt64(min(failures, 6))
        schedule(item, dueNanos: loop.nowNanos &+ UInt64.random(in: ceiling / 2...ceiling))
    }

    func runDue() {
        let now = loop.nowNanos
        while let item = due.popDue(nowNanos: now) { run(item) }
        armDue()
    }

    private func run(_ item: DueItem) {
        switch item {
        case .retry(let ref):
            if let job = job(ref) { retry(job) }
        case .acks(let ref):
            guard let job = job(ref), job.step != .finishing else { return }
            if job.step == .sending { checkAcks(job) } else { postpone(item) }
        case .hold(let ref):
            guard let job = job(ref), job.step != .finishing else { return }
            if job.step == .sending { endHold(job) } else { postpone(item) }
        case .pace(let app): goOn(app)
        case .burst(let key, let window): endBurst(key, window)
        case .clear(let ref):
            if let job = clearJob(ref) { beginClear(job) }
        case .turn(let device): makeReady(device)
        case .retryMembers(let ref):
            if let event = event(ref) { readMembers(of: event) }
        case .retryOriginal(let ref):
            if let event = event(ref) { readOriginal(of: event) }
        case .retryChange(let ref):
            if let change = change(ref) { resume(change) }
        }
    }

    /// Another step of the job is under way; its turn comes after it.
    private func postpone(_ item: DueItem) {
        due.insert(item, dueNanos: loop.nowNanos &+ 50_000_000)
    }

    // MARK: - Acks

    func scheduleAckLook(_ job: RecipientJob) {
        guard let deadline = job.earliestAckNanos else { return }
        let early = loop.nowNanos &+ Self.earlyLookNanos
        schedule(.acks(job.ref), dueNanos: min(early, deadline))
    }

    func checkAcks(_ job: RecipientJob) {
        job.step = .checkingAcks
        job.hasFailed = false
        job.awaiting = 1
        askAcks(job)
    }

    /// One of the commands of the present step.
    func askAcks(_ job: RecipientJob) {
        job.acknowledged.removeAll(keepingCapacity: true)
        ask(job) { (store) throws(RedisFault) in
            try store.acks(
                app: job.event.app.id, uid: job.recipient.uid, msgID: job.event.msgID, tag: job.tag(.acks))
        }
    }

    /// Whoever acknowledged is done; whoever is late makes the decision be taken again without that connection.
    func didReadAcks(_ job: RecipientJob) {
        job.step = .sending
        let now = loop.nowNanos
        var isLate = false
        for index in job.devices.indices {
            guard case .awaitingAck(let dueNanos) = job.devices[index].state else { continue }
            let device = job.devices[index].route.device
            if job.acknowledged.contains(device) {
                end(job, index, verdict: .online, reason: Reason.acked.rawValue)
                endPhonesBehindDesktop(job, index)
            } else if dueNanos <= now {
                suspect(job, index)
                isLate = true
            }
        }
        // A fresh round: all is read anew.
        if isLate { return read(job) }
        if let deadline = job.earliestAckNanos {
            schedule(.acks(job.ref), dueNanos: deadline)
        }
        concludeIfEnded(job)
    }

    private func suspect(_ job: RecipientJob, _ index: Int) {
        guard let target = job.devices[index].connection else { return }
        job.suspects.append(
            RecipientJob.Suspect(device: target.device, connectionEpoch: target.epoch))
        supersede(job, index)
        noteWait(job, index, .noAck)
        job.event.app.metrics.ackTimeouts.add()
    }

    // MARK: - Holds

    /// The phone waits for the user's desktop (contract section 5, routes).
    func hold(_ job: RecipientJob, _ index: Int, token: Int, holdMs: Int64?) {
        if job.flags.contains(.holdOver) { return startPush(job, index, token: token) }
        job.devices[index].state = .held
        noteWait(job, index, .desktopFirst)
        guard let holdMs, !job.flags.contains(.holdArmed) else { return }
        job.flags.insert(.holdArmed)
        schedule(.hold(job.ref), dueNanos: loop.nowNanos &+ UInt64(max(0, holdMs)) &* 1_000_000)
    }

    /// The hold is over: all is read anew, and the phones are pushed unless the message was read by then.
    private func endHold(_ job: RecipientJob) {
        job.flags.insert(.holdOver)
        read(job)
    }

    /// `hold_s` 0: the desktop's ack is the end for the phones.
    func endPhonesBehindDesktop(_ job: RecipientJob, _ index: Int) {
        guard job.devices[index].connection?.isDesktop ?? false else { return }
        for phone in job.devices.indices where job.devices[phone].state == .held {
            guard case .hold(_, nil) = job.devices[phone].route.way else { continue }
            end(job, phone, verdict: .suppressed, reason: Reason.desktopOnline.rawValue)
        }
    }
}
