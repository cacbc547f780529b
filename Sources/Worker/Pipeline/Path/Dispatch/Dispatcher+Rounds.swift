// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import PushCore
import Redis
import Telemetry

/// Later rounds of a decision: missing acks, ended holds, re-bound tokens.
extension Dispatcher {
    /// The first check is early, so that a timely ack ends its message soon; the last is at the deadline.
    private static let earlyLookNanos: UInt64 = 1_000_000_000
    private static let postponeNanos: UInt64 = 50_000_000

    /// Reads everything again for another round.
    func decideAgain(_ job: RecipientJob) {
        if !job.machine.decideAgain(Candidate(uid: job.uid, order: job.order)) { return shard.late() }
        // A queued push has its number from the previous round: it is claimed again at its turn.
        for index in job.devices.indices where job.devices[index].isQueued {
            job.devices[index].push?.checkedNanos = 0
        }
        job.needContent(shard.reader)
        again.append(job)
        shard.requestTurn()
    }

    /// The same user re-bound the token of a waiting push.
    func decideAgainForRebound(_ job: RecipientJob, _ index: Int) {
        guard job.reboundRounds < Self.reboundRoundsMax else {
            end(job, index, .suppressed, Reason.tokenMoved.rawValue)
            return endIfComplete(job)
        }
        job.reboundRounds += 1
        job.devices[index].isRebound = true
        decideAgain(job)
    }

    // MARK: Acks

    func scheduleAckLook(_ job: RecipientJob) {
        guard let deadline = job.earliestAckNanos else { return }
        shard.timers.schedule(.acks(job.ref), dueNanos: min(shard.nowNanos &+ Self.earlyLookNanos, deadline))
    }

    /// It is time to check for acks.
    func lookForAcks(_ ref: WorkRef) {
        guard let job = work.recipient(ref), job.earliestAckNanos != nil else { return shard.late() }
        guard job.machine.readAcks() else { return postpone(.acks(ref)) }
        readAcks(job)
    }

    private func readAcks(_ job: RecipientJob) {
        do throws(RedisFault) {
            try shard.store.acks(app: job.event.app.id, uid: job.uid, msgID: job.event.msgID, tag: job.tag(.acks))
        } catch {
            retryAcks(job)
        }
    }

    private func retryAcks(_ job: RecipientJob) {
        job.failures += 1
        shard.timers.schedule(.retryStep(job.ref), dueNanos: shard.retryNanos(failures: Int(job.failures)))
    }

    func didFailAcks(_ ref: WorkRef, isAbsent: Bool) {
        guard let job = work.recipient(ref) else { return shard.late() }
        if let candidate = job.candidate, candidate.phase == .readingAcks {
            if isAbsent { didReadOwnAcks(job, candidate, []) } else { again.append(job) }
            return shard.requestTurn()
        }
        if !job.machine.readsAcks { return shard.late() }
        if isAbsent { didReadAcks(job, []) } else { retryAcks(job) }
    }

    func didReadAcks(_ ref: WorkRef, _ devices: [String]) {
        guard let job = work.recipient(ref) else { return shard.late() }
        if let candidate = job.candidate, candidate.phase == .readingAcks {
            return didReadOwnAcks(job, candidate, devices)
        }
        if !job.machine.readsAcks { return shard.late() }
        didReadAcks(job, devices)
    }

    /// Devices that acknowledged a delivery of an earlier try.
    private func didReadOwnAcks(_ job: RecipientJob, _ candidate: Candidate, _ devices: [String]) {
        candidate.acknowledged = devices
        route(job)
    }

    /// Devices with an ack are finished. A missing ack causes another decision without that connection.
    private func didReadAcks(_ job: RecipientJob, _ acknowledged: [String]) {
        guard job.machine.didReadAcks() else { return shard.mistake("acks were read that nobody waits for") }
        job.failures = 0
        let now = shard.nowNanos
        var isLate = false
        for index in job.devices.indices {
            guard let dueNanos = job.devices[index].ackDueNanos else { continue }
            if acknowledged.containsSame(job.devices[index].route.device) {
                endAcknowledged(job, index)
            } else if dueNanos <= now, !mayAckBeUnread(dueNanos) {
                suspect(job, index)
                isLate = true
            }
        }
        // A new round reads everything again.
        if isLate { return decideAgain(job) }
        if let deadline = job.earliestAckNanos {
            shard.timers.schedule(.acks(job.ref), dueNanos: max(deadline, now &+ Self.postponeNanos))
        }
        endIfComplete(job)
    }

    /// An ack does not count as missing, for a bounded time, while user state from its time is not applied.
    func mayAckBeUnread(_ dueNanos: UInt64) -> Bool {
        shard.stateProgress.appliedNanos < dueNanos && shard.nowNanos &- dueNanos < shard.limits.ackGraceNanos
    }

    private func suspect(_ job: RecipientJob, _ index: Int) {
        guard let target = job.devices[index].connection else {
            return shard.mistake("an ack is awaited of no connection")
        }
        job.silentConnections.append(
            RecipientJob.SilentConnection(device: target.device, connectionEpoch: target.epoch))
        recorder.traceWait(job, index, .noAck)
        replace(job, index)
        job.event.app.metrics.ackTimeouts.add()
    }

    // MARK: Holds

    /// The phone waits for the user's desktop (contract section 5, routes).
    func hold(_ job: RecipientJob, _ index: Int, _ candidate: Candidate, token: Int, holdMs: Int64?) {
        if job.hold == .over { return startPush(job, index, candidate, token: token) }
        if let holdMs, parkHold(job, index, holdMs) == .kept { return }
        job.devices[index].hold()
        recorder.traceWait(job, index, .desktopFirst)
        guard let holdMs else { return job.hold = .untilDesktopHasIt }
        if job.hold == .timed { return }
        job.hold = .timed
        let leftMs = UInt64(leftOfHold(job, holdMs))
        shard.timers.schedule(.hold(job.ref), dueNanos: shard.nowNanos &+ leftMs &* 1_000_000)
    }

    private func leftOfHold(_ job: RecipientJob, _ holdMs: Int64) -> Int64 {
        if let untilMs = job.parking?.holdUntilMs { return max(0, untilMs &- shard.steadyMs) }
        // An earlier try, of this worker or another, has waited since the record came; of a record without a right time
        // nobody knows how long.
        guard job.isResumed, let source = job.event.origin?.source else { return holdMs }
        return max(0, holdMs &- shard.latencyMs(sinceKafkaMs: source.kafkaMs))
    }

    /// A long hold waits outside memory, once the desktop has acknowledged or failed to. A short one goes on.
    private func parkHold(_ job: RecipientJob, _ index: Int, _ holdMs: Int64) -> Passage {
        let leftMs = leftOfHold(job, holdMs)
        guard job.mayPark, leftMs > shard.limits.holdMs || job.flags.contains(.owesClaim) else { return .goesOn }
        let untilMs = shard.steadyMs &+ leftMs
        park(job, index, .desktopFirst, dueMs: untilMs)
        job.parking?.holdUntilMs = untilMs
        return .kept
    }

    /// The hold is over: everything is read again, and the phones are pushed unless the message was read.
    func endHold(_ ref: WorkRef) {
        guard let job = work.recipient(ref), !job.machine.hasEnded, !job.machine.isMarking else {
            return shard.late()
        }
        guard job.machine.isOpen else { return postpone(.hold(ref)) }
        job.hold = .over
        if job.devices.contains(where: \.isHeld) { decideAgain(job) }
    }

    /// Finds the live desktops among the devices, if phones may wait for them.
    func noteDesktops(_ job: RecipientJob, _ candidate: Candidate) {
        if candidate.recipient.settings.pushWhenDesktopOnline { return }
        for index in job.devices.indices
        where candidate.recipient.hasLiveDesktop(job.devices[index].route.device, at: shard.nowMs) {
            job.devices[index].isDesktop = true
        }
    }

    /// `hold_s` 0: phones end once a live desktop has the message, by its ack or its own push, now or in an earlier
    /// try. If every desktop's push failed or was parked, they are decided like after a hold.
    func settlePhones(_ job: RecipientJob) {
        if !job.machine.isOpen { return }
        guard job.devices.contains(where: \.waitsForDesktop) else {
            return job.hold = .none
        }
        if !job.flags.contains(.desktopHasIt) {
            let desktops = job.devices.lazy.filter(\.isDesktop)
            if desktops.contains(where: { $0.isOpen && !$0.isParked }) { return }
            if desktops.contains(where: \.isPushedInVain) {
                job.hold = .over
                return decideAgain(job)
            }
        }
        for phone in job.devices.indices where job.devices[phone].waitsForDesktop {
            end(job, phone, .suppressed, Reason.desktopOnline.rawValue)
        }
    }

    /// Another step of the recipient is in progress; this one follows it.
    private func postpone(_ item: DueItem) {
        shard.timers.schedule(item, dueNanos: shard.nowNanos &+ Self.postponeNanos)
    }

    /// A step without an answer from Redis is tried again.
    func retryStep(_ ref: WorkRef) {
        guard let job = work.recipient(ref) else { return shard.late() }
        switch job.machine.phase {
        case .readingAcks: readAcks(job)
        case .marking: recorder.mark(job)
        case .deciding, .waitingForTwin, .open, .ended: break
        }
    }
}

extension DeviceWork {
    /// Held until a desktop has the message, not for a time.
    var waitsForDesktop: Bool {
        guard isHeld, case .hold(_, nil) = route.way else { return false }
        return true
    }

    /// Its push ended without success, or is parked.
    fileprivate var isPushedInVain: Bool {
        guard case .apns = route.way else { return false }
        return phase == .ended || isParked
    }
}
