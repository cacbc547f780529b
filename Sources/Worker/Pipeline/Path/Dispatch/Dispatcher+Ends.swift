// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import EventLoop
import PushCore
import Telemetry

/// The end of a device, of a recipient, and the hand-back to another owner.
extension Dispatcher {
    /// One device ends: writes its record, and with the last one ends the recipient (`conclude`).
    func end(
        _ job: RecipientJob, _ index: Int, _ verdict: Verdict, _ reason: String, isRecorded: Bool = true,
        _ fill: (inout OutcomeRecord) -> Void = { _ in }
    ) {
        let left = job.devices[index].end()
        if left == .nothing { return shard.late() }
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
            fill(&record)
            recorder.write(consume record, of: job)
        }
        let merged = job.devices[index].push?.merged.take()
        if let merged { follow(merged, verdict) }
        if left == .openAndDeviceFree { sender.leaveQueue(job.devices[index].queueKey) }
        if left == .openAndParked { leaveParkingQueue(job, index) }
    }

    /// The device acknowledged: the user has the message, whatever later rounds find.
    func endAcknowledged(_ job: RecipientJob, _ index: Int) {
        job.flags.insert(.reached)
        if job.devices[index].isDesktop { job.flags.insert(.desktopHasIt) }
        end(job, index, .online, Reason.acked.rawValue)
    }

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

    /// A queued push is not sent.
    func didNotSend(_ unsent: UnsentPush) {
        guard let job = work.recipient(unsent.device.work), job.isPushing(unsent.device.device) else {
            return shard.late()
        }
        let index = unsent.device.device
        switch unsent.cause {
        case .check(.stop(let reason)):
            if reason == .coalesced { job.event.app.metrics.coalesced.add() }
            end(job, index, Verdict(ofEnd: reason), reason.rawValue)
            leaveToConnection(job, index, reason)
        case .check(.acknowledged):
            endAcknowledged(job, index)
        case .check(.endedElsewhere(let earlier)):
            if let earlier { recorder.countEarlier(earlier, of: job, index) }
            end(job, index, .suppressed, Reason.ok.rawValue, isRecorded: false)
            job.machine.leaveUnmarked()
        case .check(.decideAgain):
            return decideAgainForRebound(job, index)
        case .check(.send), .check(.askAgain): return
        case .park(let cause, let dueMs, let client): park(job, index, cause, dueMs: dueMs, client: client)
        case .unfit(let fault):
            // Our own mistake, so it is logged.
            shard.log.error(
                "cannot send an invalid push", ["fault": .string(fault.text), "app": .string(job.event.app.id)])
            if case .payloadTooLarge = fault {
                end(job, index, .suppressed, Reason.payloadTooLarge.rawValue)
                leaveToConnection(job, index, .payloadTooLarge)
            } else {
                end(job, index, .rejected, NoAnswer.unfit.rawValue)
                deliverCopy(job, index, accepted: false, alert: NoAnswer.unfit.alertsByCopy)
            }
        }
        endIfComplete(job)
    }

    // MARK: The recipient

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
        case .end: ended.append(job)
        }
    }

    /// Writes one record for each device that no later round could reach (`Progress.leftBehind`).
    private func recordLeftBehind(_ job: RecipientJob) {
        if job.silentConnections.isEmpty, !job.devices.contains(where: { $0.standing == .replaced }) { return }
        record(job.progress.leftBehind.map { ($0, job.leftReason) }, of: job)
    }

    /// Writes the records of devices that end without a route.
    func record(_ lost: [(device: String, reason: Reason)], of job: RecipientJob) {
        for (device, reason) in lost {
            job.recorded.append(device)
            recorder.write(
                OutcomeRecord(uid: job.uid, device: device, verdict: Verdict(ofEnd: reason), reason: reason), of: job)
        }
    }

    /// The awaited records are acknowledged.
    func endIfComplete(_ ref: WorkRef) {
        if let job = work.recipient(ref) { endIfComplete(job) }
    }

    // MARK: Hand-back

    /// Its partition goes to another owner. Pushes on a stream end here and are marked; everything else is left to that
    /// owner.
    func handBack(_ job: RecipientJob) {
        noteDecided(job)
        var isLeft = !job.machine.isOpen && !job.machine.isMarking
        job.machine.handBack()
        for index in job.devices.indices where job.devices[index].isOpen {
            // In the client and not withdrawn: it is on a stream.
            if job.devices[index].isWithClient { continue }
            replace(job, index)
            isLeft = true
        }
        // The next owner may come before the broker's answer about its record, also for pushes now in flight.
        job.flags.insert(.handedBack)
        if job.machine.isOpen { markAccepted(job) }
        if isLeft {
            job.machine.leaveUnmarked()
            job.event.isHandedBack = true
        }
        endIfComplete(job)
    }

    /// The APNs client returned a push without a stream.
    func withdrew(_ device: DeviceRef) {
        guard let job = work.recipient(device.work), job.isPushing(device.device) else { return shard.late() }
        job.machine.leaveUnmarked()
        job.event.isHandedBack = true
        replace(job, device.device)
    }
}
