// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import PushCore
import Telemetry

/// The ways in which a device's route ends: with a record, replaced by another route, parked, or in the merged push of its burst.
final class DeviceEnds {
    /// Recipients that an end of another one's device may complete.
    let mayBeComplete = Tray<WorkRef>()
    private let shard: ShardContext
    private let work: WorkTable
    private let sender: Sender
    private let recorder: Recorder
    private let parking: Parking

    init(_ shard: ShardContext, _ work: WorkTable, sender: Sender, recorder: Recorder, parking: Parking) {
        self.shard = shard
        self.work = work
        self.sender = sender
        self.recorder = recorder
        self.parking = parking
    }

    /// One device ends: writes its record. `RecipientEnds.endIfComplete` follows.
    ///
    /// - Parameter counted: how another try counted the end that it recorded.
    func end(
        _ job: RecipientJob, _ index: Int, _ verdict: Verdict, _ reason: String, isRecorded: Bool = true,
        counted: CountedOutcome? = nil, _ fill: (inout OutcomeRecord) -> Void = { _ in }
    ) {
        let left = job.devices[index].end()
        if left == .nothing { return shard.noteLate() }
        job.machine.deviceEnded()
        if verdict != .accepted {
            recorder.noteFailure(of: job, verdict: verdict, reason: reason)
        } else if job.devices[index].isDesktop {
            job.flags.insert(.desktopHasIt)
        }
        if isRecorded {
            var record = OutcomeRecord(
                uid: job.uid, device: job.devices[index].route.device, verdict: verdict, reason: reason)
            record.pushID = job.devices[index].pushID()
            record.attempts = Int(job.devices[index].attempts())
            fill(&record)
            recorder.write(consume record, of: job)
        } else {
            recorder.noteUnrecorded(job.devices[index].route.device, verdict, counted: counted, of: job)
        }
        let merged = job.devices[index].push?.merged.take()
        let turn = left == .openAndDeviceFree ? job.devices[index].queueKey : nil
        let isTaken = merged.map { follow($0, verdict, turn: turn) } ?? false
        if let turn, !isTaken { sender.leaveQueue(turn) }
        if left == .openAndParked { leaveParkingQueue(job, index) }
    }

    /// The device acknowledged: the user has the message, whatever later rounds find.
    func endAcknowledged(_ job: RecipientJob, _ index: Int) {
        job.flags.insert(.reached)
        if job.devices[index].isDesktop { job.flags.insert(.desktopHasIt) }
        end(job, index, .online, Reason.acked.rawValue)
    }

    /// Writes the records of devices that end without a route.
    func record(_ lost: [(device: String, reason: Reason)], of job: RecipientJob) {
        for (device, reason) in lost {
            recorder.write(
                OutcomeRecord(uid: job.uid, device: device, verdict: Verdict(ofEnd: reason), reason: reason), of: job)
        }
    }

    // MARK: Replaced routes

    /// A route that a later round, or another owner, replaces.
    func replace(_ job: RecipientJob, _ index: Int) {
        if replaceInPlace(job, index) { sender.leaveQueue(job.devices[index].queueKey) }
    }

    /// Replaces a route; its successor takes its place. Returns true if it had the device's turn, which the caller must
    /// pass on.
    func replaceInPlace(_ job: RecipientJob, _ index: Int) -> Bool {
        let left = job.devices[index].replace()
        guard left != .nothing else { return false }
        job.machine.deviceEnded()
        job.devices[index].push?.check = nil
        if left == .openAndParked { leaveParkingQueue(job, index) }
        return left == .openAndDeviceFree
    }

    /// Gives up waiting devices. Queued pushes and pushes in flight remain.
    func replaceWaiting(_ job: RecipientJob) {
        for index in job.devices.indices where job.devices[index].isWaiting { replace(job, index) }
    }

    // MARK: Parked devices

    /// The device's push waits outside memory from now on, with all messages of a merged push. Pushes behind it in its queue are
    /// parked in turn.
    func park(_ job: RecipientJob, _ index: Int, _ cause: ParkCause, dueMs: Int64, client: String? = nil) {
        let left = job.devices[index].park()
        if left == .nothing { return shard.noteLate() }
        for ref in job.devices[index].push?.merged.take()?.others ?? [] {
            guard let other = work.recipient(ref.work), other.isMerging(ref.device) else { continue }
            if !other.mayPark {
                sendMerged([ref])
                continue
            }
            park(other, ref.device, cause, dueMs: dueMs, client: client)
            mayBeComplete.append(other.ref)
            shard.requestTurn()
        }
        job.devices[index].push?.check = nil
        let parking = job.parking ?? RecipientParking()
        job.parking = parking
        parking.waits.removeAll { $0.device == index }
        parking.waits.append(
            RecipientParking.Wait(
                device: index, cause: cause, dueMs: min(dueMs, shard.steadyMs(at: job.event.expiresAtMs)),
                client: client))
        if cause.holdsDevice { enterParkingQueue(job, index, dueMs: dueMs) }
        if left == .openAndDeviceFree { sender.leaveQueue(job.devices[index].queueKey) }
    }

    /// Later pushes of the device are parked behind it from now on.
    private func enterParkingQueue(_ job: RecipientJob, _ index: Int, dueMs: Int64) {
        let key = job.deviceKey(index)
        parking.devices.note(
            key, dueMs: dueMs, of: job.event.origin?.source ?? EventSource(), returnedNanos: job.event.returnedNanos,
            nowNanos: shard.nowNanos)
        parking.devices.hold(key)
        parking.devices.wait(key, job.ref, order: job.order)
    }

    /// The device no longer waits to be parked: the next one may have waited for it.
    private func leaveParkingQueue(_ job: RecipientJob, _ index: Int) {
        let key = job.deviceKey(index)
        guard let next = parking.devices.leave(key, order: job.order) else { return }
        mayBeComplete.append(next)
        shard.requestTurn()
    }

    // MARK: Bursts
    // The merged push of a burst.

    /// One push per device: the newest message carries it, with the number of messages for that device.
    ///
    /// - Parameter refs: the waiting recipients. One that decided again for a new token, or returned from the topic, joined later
    ///   than newer ones, so they are sorted by their messages.
    func merge(_ refs: [WorkRef]) {
        var devices: [(name: String, refs: [DeviceRef])] = []
        for job in refs.compactMap(work.recipient).sorted(by: { $0.messagePlace < $1.messagePlace }) {
            for index in job.devices.indices where job.devices[index].isMerging {
                let name = job.devices[index].route.device
                let ref = job.deviceRef(index)
                if let known = devices.firstIndex(where: { $0.name.isSame(as: name) }) {
                    devices[known].refs.append(ref)
                } else {
                    devices.append((name, [ref]))
                }
            }
        }
        for device in devices { sendMerged(device.refs) }
    }

    /// The newest is sent; the others wait for its outcome.
    ///
    /// - Parameter turn: the queue of the device, if it is this push's turn there.
    /// - Returns: whether the turn is taken.
    @discardableResult
    private func sendMerged(_ refs: [DeviceRef], turn: UInt64? = nil) -> Bool {
        var rest = refs
        while let carrier = rest.popLast() {
            guard let job = work.recipient(carrier.work), job.isMerging(carrier.device),
                let token = job.devices[carrier.device].mergingToken
            else { continue }
            // A single message has its own text.
            let oldest = rest.first.flatMap { work.recipient($0.work) }
            let merged = oldest.map { MergedPush(others: rest, oldestID: $0.event.msgID) }
            if let turn {
                job.devices[carrier.device].queueKey = turn
                job.devices[carrier.device].inheritsTurn = true
            }
            sender.enqueue(job, carrier.device, to: token, badge: nil, claimedNanos: 0, merged: merged)
            return turn != nil
        }
        return false
    }

    /// The merged push has ended. If it ended before APNs answered (its own message was read or revoked at the last
    /// moment), the next newest message carries the rest, and takes its turn: pushes behind it are newer.
    ///
    /// - Returns: whether the turn is taken.
    @discardableResult
    func follow(_ merged: MergedPush, _ verdict: Verdict, turn: UInt64? = nil) -> Bool {
        switch verdict {
        case .suppressed, .expired, .parked:
            return sendMerged(merged.others, turn: turn)
        case .accepted, .rejected, .online:
            for ref in merged.others {
                guard let job = work.recipient(ref.work), job.isMerging(ref.device) else { continue }
                job.event.app.metrics.coalesced.add()
                // The merged push was also this message's alert: its result decides about an SMS.
                job.flags.insert(verdict == .accepted ? .accepted : .failed)
                if verdict == .accepted, job.devices[ref.device].isDesktop { job.flags.insert(.desktopHasIt) }
                end(job, ref.device, .suppressed, Reason.coalesced.rawValue)
                mayBeComplete.append(job.ref)
                shard.requestTurn()
            }
            return false
        }
    }
}
