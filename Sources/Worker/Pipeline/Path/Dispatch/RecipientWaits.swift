// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import PushCore
import Redis
import Telemetry

/// What a decided recipient waits for, and for how long: acks, the user's desktop, earlier parked work, and a Redis that takes no
/// writes. A wait that is too long for memory goes on in the topic.
final class RecipientWaits {
    private let shard: ShardContext
    private let work: WorkTable
    private let devices: DeviceEnds
    private let ends: RecipientEnds
    private let recorder: Recorder
    private let parking: Parking

    /// The first check is early, so that a timely ack ends its message soon; the last is at the deadline.
    private static let earlyLookNanos: UInt64 = 1_000_000_000
    private static let postponeNanos: UInt64 = 50_000_000
    /// How long a push waits for its turn while Redis takes no writes.
    private static let queuedNanos: UInt64 = 500_000_000
    private static let changeTriesMax = 3
    /// A record may be due so much before its note.
    private static let earlyMs: Int64 = 50

    init(
        _ shard: ShardContext, _ work: WorkTable, devices: DeviceEnds, ends: RecipientEnds, recorder: Recorder,
        parking: Parking
    ) {
        self.shard = shard
        self.work = work
        self.devices = devices
        self.ends = ends
        self.recorder = recorder
        self.parking = parking
    }

    // MARK: Acks

    func scheduleAckLook(_ job: RecipientJob) {
        guard let deadline = job.earliestAckNanos else { return }
        shard.timers.schedule(.acks(job.ref), dueNanos: min(shard.nowNanos &+ Self.earlyLookNanos, deadline))
    }

    /// It is time to check for acks.
    func lookForAcks(_ ref: WorkRef) {
        guard let job = work.recipient(ref), job.earliestAckNanos != nil else { return shard.noteLate() }
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
        guard let job = work.recipient(ref), job.machine.readsAcks else { return shard.noteLate() }
        if isAbsent { didReadAcks(job, []) } else { retryAcks(job) }
    }

    func didReadAcks(_ ref: WorkRef, _ acknowledged: [String]) {
        guard let job = work.recipient(ref), job.machine.readsAcks else { return shard.noteLate() }
        didReadAcks(job, acknowledged)
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
                devices.endAcknowledged(job, index)
            } else if dueNanos <= now, !mayAckBeUnread(dueNanos) {
                suspect(job, index)
                isLate = true
            }
        }
        // A new round reads everything again.
        if isLate { return ends.decideAgain(job) }
        if let deadline = job.earliestAckNanos {
            shard.timers.schedule(.acks(job.ref), dueNanos: max(deadline, now &+ Self.postponeNanos))
        }
        ends.endIfComplete(job)
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
            SilentConnection(device: target.device, epoch: target.epoch))
        recorder.traceWait(job, index, .noAck)
        devices.replace(job, index)
        job.event.app.metrics.ackTimeouts.add()
    }

    // MARK: Holds
    // Phones wait for the user's desktop (contract section 5, routes).

    /// - Returns: `.goesOn` if the hold is over and the phone is pushed now.
    func hold(_ job: RecipientJob, _ index: Int, holdMs: Int64?) -> Passage {
        if job.hold == .over { return .goesOn }
        if let holdMs, parkHold(job, index, holdMs) == .kept { return .kept }
        job.devices[index].hold()
        recorder.traceWait(job, index, .desktopFirst)
        guard let holdMs else {
            job.hold = .untilDesktopHasIt
            return .kept
        }
        if job.hold == .timed { return .kept }
        job.hold = .timed
        let leftMs = UInt64(leftOfHold(job, holdMs))
        shard.timers.schedule(.hold(job.ref), dueNanos: shard.nowNanos &+ leftMs &* 1_000_000)
        return .kept
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
        guard job.mayPark, leftMs > shard.limits.holdMs || job.owesClaim else { return .goesOn }
        let untilMs = shard.steadyMs &+ leftMs
        devices.park(job, index, .desktopFirst, dueMs: untilMs)
        job.parking?.holdUntilMs = untilMs
        return .kept
    }

    /// The hold is over: everything is read again, and the phones are pushed unless the message was read.
    func endHold(_ ref: WorkRef) {
        guard let job = work.recipient(ref), !job.machine.hasEnded, !job.machine.isMarking else {
            return shard.noteLate()
        }
        guard job.machine.isOpen else { return postpone(.hold(ref)) }
        job.hold = .over
        if job.devices.contains(where: \.isHeld) { ends.decideAgain(job) }
    }

    /// Another step of the recipient is in progress; this one follows it.
    private func postpone(_ item: DueItem) {
        shard.timers.schedule(item, dueNanos: shard.nowNanos &+ Self.postponeNanos)
    }

    /// A step without an answer from Redis is tried again.
    func retryStep(_ ref: WorkRef) {
        guard let job = work.recipient(ref) else { return shard.noteLate() }
        switch job.machine.phase {
        case .readingAcks: readAcks(job)
        case .marking: recorder.mark(job)
        case .deciding, .open, .leaving, .ended: break
        }
    }

    // MARK: An app's share

    /// A partition's window is full, and several apps have records in it: pushes that only wait for their device are
    /// parked until the device is free.
    func parkQueued(_ isFull: (EventJob) -> Bool) {
        let dueMs = shard.steadyMs &+ shard.limits.outOfHandMs
        for job in mayPark(where: { $0.event.parked == nil && isFull($0.event) })
        where parkQueued(job, .share, dueMs: dueMs, afterNanos: 0) {
            ends.endIfComplete(job)
        }
    }

    /// Recipients that may wait in the topic now, in their order.
    private func mayPark(where isWanted: (RecipientJob) -> Bool) -> [RecipientJob] {
        var jobs: [RecipientJob] = []
        work.recipients.forEach { if $0.mayPark, $0.machine.isOpen, isWanted($0) { jobs.append($0) } }
        return jobs.sorted { $0.order < $1.order }
    }

    /// - Returns: whether a push of the recipient has waited for its turn for so long.
    @discardableResult
    private func parkQueued(_ job: RecipientJob, _ cause: ParkCause, dueMs: Int64, afterNanos: UInt64) -> Bool {
        var hasParked = false
        for index in job.devices.indices
        where job.devices[index].isQueued
            && shard.nowNanos &- (job.devices[index].push?.startedNanos ?? 0) >= afterNanos
        {
            devices.park(job, index, cause, dueMs: dueMs)
            hasParked = true
        }
        return hasParked
    }

    // MARK: While Redis takes no writes

    /// No mark can say which of the recipient's pushes APNs accepted. So it waits in the topic, with the devices that are
    /// done, and its event is settled: a crash repeats only pushes that are in flight.
    func parkUnclaimed(_ job: RecipientJob) {
        if !job.mayPark || job.event.digest != nil || !job.machine.isOpen { return }
        // All at the last ack's time: a connection that is taken for silent too early would alert twice.
        guard let dueNanos = job.devices.lazy.compactMap(\.ackDueNanos).max() else { return }
        let leftNanos = dueNanos > shard.nowNanos ? dueNanos &- shard.nowNanos : 0
        let dueMs = shard.steadyMs &+ Int64(leftNanos / 1_000_000)
        for index in job.devices.indices
        where job.devices[index].ackDueNanos != nil || job.devices[index].waitsForDesktop {
            devices.park(job, index, .unclaimed, dueMs: dueMs)
        }
    }

    /// Several times a second: pushes that wait for their turn do not keep the event open either, where a push of it was accepted.
    func parkAllUnclaimed() {
        let jobs = mayPark { job in
            job.owesClaim && job.event.digest == nil
                && (job.event.hasManyRecipients || job.flags.contains(.accepted))
        }
        for job in jobs {
            parkQueued(job, .behind, dueMs: shard.steadyMs &+ RecipientEnds.behindMs, afterNanos: Self.queuedNanos)
            parkUnclaimed(job)
            ends.endIfComplete(job)
        }
    }

    /// Redis refused a note in the recipient's mark.
    func didFailNote(_ ref: WorkRef, _ fault: RedisFault) {
        // Nothing waits for a note, so another fault costs at most a repeat.
        if !fault.refusesWrite || fault.isLasting { return }
        guard let job = work.recipient(ref), !job.machine.hasEnded else { return shard.noteLate() }
        shard.writes.refused(fault, nowNanos: shard.nowNanos)
        job.oweMark()
        if !job.machine.isOpen { return }
        parkUnclaimed(job)
        ends.endIfComplete(job)
    }

    /// A change of the user is read and not stored. It is tried again a few times first, because a failover lasts a second.
    func parkForChanges(_ job: RecipientJob, _ candidate: Candidate) -> Passage {
        guard candidate.failures >= Self.changeTriesMax, !job.isDecided, job.mayPark else { return .goesOn }
        // A digest comes again at the end of its lease.
        if job.event.digest != nil {
            job.event.staysUnsettled = true
            ends.endUnrecorded(job)
            return .kept
        }
        guard job.machine.decided() else { return .goesOn }
        ends.parkWhole(job, .behind, dueMs: shard.steadyMs &+ RecipientEnds.behindMs)
        return .kept
    }

    // MARK: Behind parked work

    /// Due time of a parked earlier push of the device, which this one must not overtake, or of its own push: its record was due with
    /// another device. Nil if there is none.
    func parkedDueMs(_ job: RecipientJob, device: String, _ candidate: Candidate) -> Int64? {
        guard job.mayPark else { return nil }
        if let noted = candidate.recipient.parked.first(where: { $0.device.isSame(as: device) }),
            let leftMs = noted.note.leftMs(nowMs: shard.sharedMs),
            !ownsNote(job, of: device) || !device.isEmpty && leftMs > Self.earlyMs
        {
            return shard.steadyMs &+ leftMs
        }
        if parking.devices.isEmpty { return nil }
        let key = DeviceKey.make(app: job.event.app.id, uid: job.uid, device: device)
        return parking.devices.dueMs(
            key, before: job, nowMs: shard.steadyMs, mayHoldWork: shard.writes.mayHoldWork(nowNanos: shard.nowNanos))
    }

    /// The note in Redis belongs to the record that returned the recipient, or to one behind it.
    private func ownsNote(_ job: RecipientJob, of device: String) -> Bool {
        guard let parked = job.event.parked, parked.record.cause != .scheduled else { return false }
        return device.isEmpty || parked.record.devices.containsSame(device)
    }

    /// If an earlier event of the user was parked whole, this one is too, before its decision.
    func parkBehindEarlier(_ job: RecipientJob, _ candidate: Candidate) -> Passage {
        guard !job.isDecided, job.event.digest == nil,
            let dueMs = parkedDueMs(job, device: "", candidate), job.machine.decided()
        else { return .goesOn }
        ends.parkWhole(job, .behind, dueMs: dueMs)
        return .kept
    }

    /// An earlier try of it ended with a crash, and work of the user is parked: possibly its own, which another worker
    /// would do at the same time. It is parked too and goes where that record is read, so that one shard has both.
    func parkBesideEarlierTry(_ job: RecipientJob, _ candidate: Candidate) -> Passage {
        // One that waited for its twin counts as decided.
        guard job.isResumed, job.devices.isEmpty, job.event.parked == nil, job.event.digest == nil,
            job.mayPark, let wait = waitOfEarlierTry(job, candidate), job.machine.decided()
        else { return .goesOn }
        ends.parkWhole(job, wait.cause, dueMs: shard.steadyMs &+ wait.leftMs)
        return .kept
    }

    /// How long the earlier try may still be parked; nil if nothing says that it is.
    private func waitOfEarlierTry(_ job: RecipientJob, _ candidate: Candidate) -> (cause: ParkCause, leftMs: Int64)? {
        if let wait = candidate.claim?.notes?.wait {
            let leftMs = min(max(0, wait.untilMs &- shard.sharedMs), Int64(shard.limits.ackGraceNanos / 1_000_000))
            // Also after its wait, as another shard may be pushing. Here too later pushes do not wait for it.
            if let cause = wait.cause { return (cause, leftMs) }
            // A little later: the record that was there first begins first.
            if leftMs > 0 { return (.behind, leftMs &+ RecipientEnds.behindMs) }
        }
        // Its own note has expired with it.
        let hasExpired = job.event.expiresAtMs <= shard.nowMs
        return candidate.recipient.parked.compactMap { $0.note.leftMs(nowMs: shard.sharedMs) ?? (hasExpired ? 0 : nil) }
            .min().map { (.behind, $0) }
    }
}
