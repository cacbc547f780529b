// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import PushCore
import Redis
import Telemetry

/// Work that waits too long for memory: its device is parked, and the recipient as soon as nothing else of it is open.
extension Dispatcher {
    /// The device's push waits outside memory from now on. Pushes behind it in its queue are parked in turn.
    func park(_ job: RecipientJob, _ index: Int, _ cause: ParkCause, dueMs: Int64, client: String? = nil) {
        let left = job.devices[index].park()
        if left == .nothing { return shard.late() }
        job.devices[index].push?.check = nil
        let parking = job.parking ?? RecipientParking()
        job.parking = parking
        parking.waits.removeAll { $0.device == index }
        parking.waits.append(
            RecipientParking.Wait(
                device: index, cause: cause, dueMs: min(dueMs, shard.steadyMs(at: job.event.expiresAtMs)),
                client: client))
        if cause.holdsDevice { enterParkingQueue(job, index, dueMs: dueMs) }
        let merged = job.devices[index].push?.merged.take()
        if let merged { follow(merged, .parked) }
        if left == .openAndDeviceFree { sender.leaveQueue(job.devices[index].queueKey) }
    }

    /// Later pushes of the device are parked behind it from now on.
    private func enterParkingQueue(_ job: RecipientJob, _ index: Int, dueMs: Int64) {
        let key = job.deviceKey(index)
        parking.devices.note(key, dueMs: dueMs, of: job.event.origin?.source ?? EventSource(), nowNanos: shard.nowNanos)
        parking.devices.hold(key)
        parking.devices.wait(key, job.ref, order: job.order)
    }

    /// The device no longer waits to be parked: the next one may have waited for it.
    func leaveParkingQueue(_ job: RecipientJob, _ index: Int) {
        let key = job.deviceKey(index)
        guard let next = parking.devices.leave(key, order: job.order) else { return }
        mayBeParked.append(next)
        shard.requestTurn()
    }

    /// A partition's window is full, and several apps have records in it: pushes that only wait for their device are
    /// parked until the device is free.
    func parkQueued(_ isFull: (EventJob) -> Bool) {
        var jobs: [RecipientJob] = []
        work.recipients.forEach { job in
            guard job.event.parked == nil, isFull(job.event), job.mayPark, job.machine.isOpen else { return }
            jobs.append(job)
        }
        for job in jobs.sorted(by: { $0.order < $1.order }) {
            var hasParked = false
            for index in job.devices.indices where job.devices[index].isQueued {
                park(job, index, .share, dueMs: shard.steadyMs &+ shard.limits.outOfHandMs)
                hasParked = true
            }
            if hasParked { endIfComplete(job) }
        }
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
            park(job, index, .unclaimed, dueMs: dueMs)
        }
    }

    private static let unclaimedMs: Int64 = 5_000
    private static let unclaimedNanos: UInt64 = 500_000_000

    /// A change of the user is read and not stored. It is tried again a few times first, because a failover lasts a second.
    func parkForChanges(_ job: RecipientJob, _ candidate: Candidate) -> Passage {
        guard candidate.failures >= Self.changeTriesMax, !job.isDecided, job.mayPark else { return .goesOn }
        // A digest comes again at the end of its lease.
        if job.event.digest != nil {
            job.event.isHandedBack = true
            endUnrecorded(job)
            return .kept
        }
        guard job.machine.decided() else { return .goesOn }
        parkWhole(job, .behind, dueMs: shard.steadyMs &+ Self.unclaimedMs)
        return .kept
    }

    private static let changeTriesMax = 3

    /// Several times a second: pushes that wait for their turn do not keep the event open either, where a push of it was accepted.
    func parkUnclaimed() {
        var jobs: [RecipientJob] = []
        work.recipients.forEach { job in
            guard job.flags.contains(.owesClaim), job.mayPark, job.machine.isOpen,
                job.event.hasManyRecipients || job.flags.contains(.accepted), job.event.digest == nil
            else { return }
            jobs.append(job)
        }
        for job in jobs.sorted(by: { $0.order < $1.order }) {
            for index in job.devices.indices
            where job.devices[index].isQueued
                && shard.nowNanos &- (job.devices[index].push?.startedNanos ?? 0) > Self.unclaimedNanos
            {
                park(job, index, .behind, dueMs: shard.steadyMs &+ Self.unclaimedMs)
            }
            parkUnclaimed(job)
            endIfComplete(job)
        }
    }

    /// Redis refused a note in the recipient's mark.
    func didFailNote(_ ref: WorkRef, _ fault: RedisFault) {
        // Nothing waits for a note, so another fault costs at most a repeat.
        if !fault.refusesWrite || fault.isLasting { return }
        guard let job = work.recipient(ref), !job.machine.hasEnded else { return shard.late() }
        shard.writes.refused(fault, nowNanos: shard.nowNanos)
        job.flags.insert(.owesClaim)
        if !job.machine.isOpen { return }
        parkUnclaimed(job)
        endIfComplete(job)
    }

    /// Due time of a parked earlier push of the device, which this one must not overtake, or of its own push: its record was due with
    /// another device. Nil if there is none.
    func parkedDueMs(_ job: RecipientJob, device: String, _ candidate: Candidate) -> Int64? {
        guard job.mayPark else { return nil }
        if let noted = candidate.recipient.parked.first(where: { $0.device.isSame(as: device) }),
            let leftMs = noted.note.leftMs(nowMs: shard.nowMs),
            !ownsNote(job, of: device) || !device.isEmpty && leftMs > Self.earlyMs
        {
            return shard.steadyMs &+ leftMs
        }
        if parking.devices.isEmpty { return nil }
        let key = DeviceKey.make(app: job.event.app.id, uid: job.uid, device: device)
        return parking.devices.dueMs(key, before: job)
    }

    /// A record may be due so much before its note.
    private static let earlyMs: Int64 = 50

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
        parkWhole(job, .behind, dueMs: dueMs)
        return .kept
    }

    /// An earlier try of it ended with a crash, and work of the user is parked: possibly its own, which another worker
    /// would do at the same time. It is parked too and goes where that record is read, so that one shard has both.
    func parkBesideEarlierTry(_ job: RecipientJob, _ candidate: Candidate) -> Passage {
        // One that waited for its twin counts as decided.
        guard job.isResumed, job.devices.isEmpty, job.event.parked == nil, job.event.digest == nil,
            job.mayPark, let wait = waitOfEarlierTry(job, candidate), job.machine.decided()
        else { return .goesOn }
        parkWhole(job, wait.cause, dueMs: shard.steadyMs &+ wait.leftMs)
        return .kept
    }

    /// How long the earlier try may still be parked; nil if nothing says that it is.
    private func waitOfEarlierTry(_ job: RecipientJob, _ candidate: Candidate) -> (cause: ParkCause, leftMs: Int64)? {
        if let wait = candidate.claim?.earlierWait {
            let leftMs = min(max(0, wait.untilMs &- shard.nowMs), Int64(shard.limits.ackGraceNanos / 1_000_000))
            // Also after its wait, as another shard may be pushing. Here too later pushes do not wait for it.
            if let cause = wait.cause { return (cause, leftMs) }
            // A little later: the record that was there first begins first.
            if leftMs > 0 { return (.behind, leftMs &+ Self.unclaimedMs) }
        }
        // Its own note has expired with it.
        let hasExpired = job.event.expiresAtMs <= shard.nowMs
        return candidate.recipient.parked.compactMap { $0.note.leftMs(nowMs: shard.nowMs) ?? (hasExpired ? 0 : nil) }
            .min().map { (.behind, $0) }
    }

    private func parkWhole(_ job: RecipientJob, _ cause: ParkCause, dueMs: Int64) {
        noteDecided(job)
        // Recorded once, however often it is parked again.
        if job.event.parked?.record.uid == nil {
            recorder.write(OutcomeRecord(uid: job.uid, verdict: .parked, reason: cause.rawValue), of: job)
        }
        write(job, waits: [RecipientParking.Wait(device: -1, cause: cause, dueMs: dueMs)])
    }

    /// An earlier push of one of its devices was parked, or is not parked after all.
    func parkIfAllWaits(_ ref: WorkRef) {
        if let job = work.recipient(ref) { endIfComplete(job) }
    }

    /// If all open devices of the recipient wait to be parked, and no earlier recipient of these devices does, parks
    /// it.
    func parkIfAllWaits(_ job: RecipientJob) {
        guard let parking = job.parking, job.machine.isOpen, job.machine.openDevices > 0 else { return }
        if job.devices.contains(where: { $0.isOpen && !$0.isParked }) { return }
        let waits = parking.waits.filter { job.devices[$0.device].isParked }
        if waits.isEmpty || waits.contains(where: { waitsForEarlier(job, $0) }) { return }
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

    /// A digest is in Redis, so it is not parked: it is tried again soon, by any worker, and not only at the end of its lease.
    private func putOff(_ digest: DigestJob, of event: EventJob) {
        event.isHandedBack = true
        try? shard.store.planDue(digest.user, atMs: shard.nowMs &+ Digests.againMs, tag: Tag.noteBits)
    }

    private func write(_ job: RecipientJob, waits: [RecipientParking.Wait]) {
        let event = job.event
        markClaimed(job)
        job.machine.leaveUnmarked()
        let record = parkedRecord(of: job, waits)
        let owesClaim = job.flags.remove(.owesClaim) != nil
        if owesClaim { claims.rememberParked(job) }
        let own = waits.filter { $0.device >= 0 }.map {
            Parking.DeviceWait(device: job.devices[$0.device].route.device, cause: $0.cause, dueMs: $0.dueMs)
        }
        // After `devices` were read: from now on another owner has them.
        for wait in waits where wait.device >= 0 { replace(job, wait.device) }
        // Nothing more happens for it here: the reader of the record may be faster than the broker's answer.
        let twins = claims.releaseKey(job)
        defer {
            for twin in twins { follow(twin, record) }
            endIfComplete(job)
        }
        if let digest = event.digest { return putOff(digest, of: event) }
        if event.parked?.isHandedBack ?? false { return event.isHandedBack = true }
        if !owesClaim, record.cause.isNotedInMark { noteWait(job, record) }
        parking.expect(record, waits: own, noted: event.parked?.record.devices ?? [])
        let parting = job.parking ?? RecipientParking()
        parting.parting = record
        job.parking = parting
    }

    /// No note of the user names it, because later pushes do not wait for it. A repeat then goes where the record is read.
    private func noteWait(_ job: RecipientJob, _ record: ParkedRecord) {
        let untilMs = record.dueMs &- shard.steadyMs &+ shard.nowMs
        note(.parked, EarlierWait(untilMs: untilMs, cause: record.cause).text, of: job)
    }

    /// Its twin is in the topic from now on: it follows, so that one shard has both.
    private func follow(_ ref: WorkRef, _ record: ParkedRecord) {
        guard let twin = work.recipient(ref), twin.machine.waitsForTwin else { return shard.late() }
        guard twin.devices.isEmpty, twin.event.parked?.record.uid == nil, twin.event.digest == nil, twin.mayPark,
            twin.machine.followTwin()
        else { return twinEnded(ref) }
        if record.cause.isNotedInMark { return parkWhole(twin, record.cause, dueMs: record.dueMs) }
        parkWhole(twin, .behind, dueMs: record.dueMs &+ Self.unclaimedMs)
    }

    private func parkedRecord(of job: RecipientJob, _ waits: [RecipientParking.Wait]) -> ParkedRecord {
        let event = job.event
        let first = waits.min { $0.dueMs < $1.dueMs }
        var record = ParkedRecord(
            app: event.app.id, uid: job.uid, raw: event.raw, cause: first?.cause ?? .behind,
            dueMs: first?.dueMs ?? shard.steadyMs, writtenMs: shard.steadyMs,
            id: event.subject.kind.rawValue + event.subject.id)
        record.expiresAtMs = event.expiresAtMs
        record.conversation = event.parkedConversation
        record.part = event.parkedPart
        record.chunkName = event.chunkPart == nil ? event.parked?.record.chunkName : event.origin?.place.name
        record.source = event.origin?.source ?? EventSource()
        record.client = first?.client
        record.devices = waits.flatMap { wait in
            wait.device < 0 ? job.parking?.returned ?? [] : [job.devices[wait.device].route.device]
        }
        record.done = job.recorded
        for device in job.devices where device.phase == .ended && !record.done.containsSame(device.route.device) {
            record.done.append(device.route.device)
        }
        record.holdUntilMs = job.parking?.holdUntilMs
        record.counts = recorder.takeCounts(of: job)
        record.later = event.parked?.record.later ?? []
        record.facts = ParkedFacts(of: job.flags)
        if let parked = event.parked {
            // Parked whole before its decision, it has what it came with.
            let isWhole = waits.contains { $0.device < 0 }
            record.facts.formUnion(
                parked.record.facts.intersection(isWhole ? [.countsSource, .owesClaim] : .countsSource))
            record.formerNames = parked.record.formerNames
        } else if job.devices.isEmpty, let place = event.origin?.place {
            record.facts.formUnion(place.parkedFacts)
        }
        record.silentConnections = job.silentConnections.map {
            ParkedRecord.SilentConnection(device: $0.device, epoch: $0.connectionEpoch)
        }
        // Their acks are due when the record is: then the connection counts as silent.
        for wait in waits where wait.cause == .unclaimed && wait.device >= 0 {
            guard let target = job.devices[wait.device].connection else { continue }
            record.silentConnections.append(ParkedRecord.SilentConnection(device: target.device, epoch: target.epoch))
        }
        record.trace = job.trace?.bytes ?? []
        return record
    }
}
