// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import PushCore
import Telemetry

/// What follows when a part of a recipient ends: its mark, another round, or the topic, where the rest of it waits.
///
/// Recipients for another round are in `again`; ended ones in `ended`.
final class RecipientEnds {
    let again = Tray<RecipientJob>()
    let ended = Tray<RecipientJob>()
    private let shard: ShardContext
    private let work: WorkTable
    private let devices: DeviceEnds
    private let claims: Claims
    private let recorder: Recorder
    private let parking: Parking
    private let notes: MarkNotes

    /// How much later a repeat is due than the record that it follows.
    static let behindMs: Int64 = 5_000

    init(
        _ shard: ShardContext, _ work: WorkTable, devices: DeviceEnds, claims: Claims, recorder: Recorder,
        parking: Parking, notes: MarkNotes
    ) {
        self.shard = shard
        self.work = work
        self.devices = devices
        self.claims = claims
        self.recorder = recorder
        self.parking = parking
        self.notes = notes
    }

    /// The first decision of a recipient brings the event's deliveries closer.
    func noteDecided(_ job: RecipientJob) {
        if job.isDecided { return }
        job.endWaiting()
        job.firstDecision = .made
        job.event.undecided -= 1
    }

    /// Reads everything again for another round.
    func decideAgain(_ job: RecipientJob) {
        if !job.machine.decideAgain(Candidate(uid: job.uid, order: job.order)) { return shard.noteLate() }
        // A queued push has its number from the previous round: it is claimed again at its turn.
        for index in job.devices.indices where job.devices[index].isQueued {
            job.devices[index].push?.checkedNanos = 0
        }
        job.needContent(shard.reader)
        again.append(job)
        shard.requestTurn()
    }

    /// The twin has ended.
    func twinEnded(_ ref: WorkRef) {
        guard let job = work.recipient(ref), job.machine.waitsForTwin else { return shard.noteLate() }
        decideAgain(job)
    }

    /// Nothing to do and nothing to record.
    func endUnrecorded(_ job: RecipientJob) {
        guard job.machine.decided() else { return shard.mistake("a recipient ends that is not being decided") }
        noteDecided(job)
        job.machine.leaveUnmarked()
        endIfComplete(job)
    }

    // MARK: The end

    /// All devices have ended, and the broker has all records and deliveries: writes the mark that stops a redelivery.
    func endIfComplete(_ job: RecipientJob) {
        if job.hold == .untilDesktopHasIt { settlePhones(job) }
        if job.parking != nil { parkIfAllWaits(job) }
        if job.machine.isOpen, job.machine.openDevices == 0, job.machine.isMarked {
            recordLeftBehind(job)
            recorder.offerSMSIfAllFailed(job)
        }
        let areSettled = !job.flags.contains(.hasDelivery) || job.event.areDeliveriesSettled
        switch job.machine.next(areDeliveriesSettled: areSettled) {
        case .nothing: break
        case .awaitDeliveries: job.event.deliveries?.waiting.append(job.ref)
        case .mark: recorder.mark(job)
        case .leave(let record):
            job.event.parting.append(record)
            ended.append(job)
        case .end:
            recorder.count(job)
            ended.append(job)
        }
    }

    /// A part of the recipient may have been the last: its records are acknowledged, or a device of it need not wait for another's.
    func endIfComplete(_ ref: WorkRef) {
        if let job = work.recipient(ref) { endIfComplete(job) }
    }

    /// Writes one record for each device that no later round could reach (`Progress.leftBehind`).
    private func recordLeftBehind(_ job: RecipientJob) {
        if job.silentConnections.isEmpty, !job.hasReplacedDevice { return }
        devices.record(job.progress.leftBehind.map { ($0, job.leftReason) }, of: job)
    }

    /// `hold_s` 0: phones end once a live desktop has the message, by its ack or its own push, now or in an earlier
    /// try. If every desktop's push failed or was parked, they are decided like after a hold.
    private func settlePhones(_ job: RecipientJob) {
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
            devices.end(job, phone, .suppressed, Reason.desktopOnline.rawValue)
        }
    }

    // MARK: Into the topic

    /// If all open devices of the recipient wait to be parked, and no earlier recipient of these devices does, parks
    /// it.
    private func parkIfAllWaits(_ job: RecipientJob) {
        guard let parking = job.parking, job.machine.isOpen, job.machine.openDevices > 0 else { return }
        if job.devices.contains(where: { $0.isOpen && !$0.isParked }) { return }
        let waits = parking.waits.filter { job.devices[$0.device].isParked }
        if waits.isEmpty || waits.contains(where: { waitsForEarlier(job, $0) }) { return }
        recordLeftBehind(job)
        for wait in waits {
            let device = job.devices[wait.device].route.device
            // Recorded once, however often it is parked again.
            if !parking.returned.containsSame(device) {
                var record = OutcomeRecord(
                    uid: job.uid, device: device, verdict: .parked, reason: wait.cause.rawValue)
                record.pushID = job.devices[wait.device].push?.id
                recorder.write(record, of: job)
            }
        }
        write(job, waits: waits)
    }

    /// An earlier recipient with the same device waits to be parked, so that its record comes first.
    private func waitsForEarlier(_ job: RecipientJob, _ wait: RecipientParking.Wait) -> Bool {
        wait.cause.holdsDevice && parking.devices.hasWaiting(job.deviceKey(wait.device), before: job.order)
    }

    func parkWhole(_ job: RecipientJob, _ cause: ParkCause, dueMs: Int64) {
        noteDecided(job)
        // Recorded once, however often it is parked again.
        if job.event.parked?.record.uid == nil {
            recorder.write(OutcomeRecord(uid: job.uid, verdict: .parked, reason: cause.rawValue), of: job)
        }
        write(job, waits: [RecipientParking.Wait(device: -1, cause: cause, dueMs: dueMs, client: nil)])
    }

    private func write(_ job: RecipientJob, waits: [RecipientParking.Wait]) {
        let event = job.event
        notes.writeClaim(of: job)
        notes.writeEnds(of: job)
        let record = ParkedRecord(of: job, waits, steadyMs: shard.steadyMs)
        if job.owesClaim { claims.rememberParked(job) }
        let own = waits.filter { $0.device >= 0 }.map {
            Parking.DeviceWait(device: job.devices[$0.device].route.device, cause: $0.cause, dueMs: $0.dueMs)
        }
        // After `devices` were read: from now on another owner has them.
        for wait in waits where wait.device >= 0 { devices.replace(job, wait.device) }
        // Nothing more happens for it here: the reader of the record may be faster than the broker's answer.
        let twins = claims.releaseKey(job)
        defer {
            for twin in twins { follow(twin, record) }
            endIfComplete(job)
        }
        if let digest = event.digest {
            leaveUncounted(job)
            return putOff(digest, of: event)
        }
        if event.parked?.partitionGoes ?? false {
            leaveUncounted(job)
            return event.staysUnsettled = true
        }
        if !job.owesClaim, record.cause.isNotedInMark { notes.writeWait(of: job, record) }
        parking.expect(record, waits: own, of: event)
        if !job.machine.leave(with: record) { shard.mistake("a recipient leaves for the topic during another step") }
    }

    /// No mark and no count here: another try of the recipient finds the devices that ended, and counts them.
    private func leaveUncounted(_ job: RecipientJob) {
        job.machine.leaveUnmarked()
        job.journal = Journal()
    }

    /// A digest is in Redis, so it is not parked: it is tried again soon, by any worker, and not only at the end of its lease.
    private func putOff(_ digest: DigestJob, of event: EventJob) {
        event.staysUnsettled = true
        try? shard.store.planDue(digest.user, atMs: shard.nowMs &+ Digests.againMs, tag: Tag.noteBits)
    }

    /// Its twin is in the topic from now on: it follows, so that one shard has both.
    private func follow(_ ref: WorkRef, _ record: ParkedRecord) {
        guard let twin = work.recipient(ref), twin.machine.waitsForTwin else { return shard.noteLate() }
        guard twin.devices.isEmpty, twin.event.parked?.record.uid == nil, twin.event.digest == nil, twin.mayPark,
            twin.machine.decided()
        else { return twinEnded(ref) }
        if record.cause.isNotedInMark { return parkWhole(twin, record.cause, dueMs: record.dueMs) }
        parkWhole(twin, .behind, dueMs: record.dueMs &+ Self.behindMs)
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
