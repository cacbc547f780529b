// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import PushCore
import Telemetry

/// The merged push of a burst.
extension Dispatcher {
    /// One push per device: the newest message carries it, with the number of messages for that device.
    ///
    /// - Parameter refs: the waiting recipients. One that decided again for a new token joined later than newer ones, so
    ///   they are sorted by their messages.
    func merge(_ refs: [WorkRef]) {
        var devices: [(name: String, refs: [DeviceRef])] = []
        for job in refs.compactMap(work.recipient).sorted(by: { $0.order < $1.order }) {
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
    private func sendMerged(_ refs: [DeviceRef]) {
        var rest = refs
        while let carrier = rest.popLast() {
            guard let job = work.recipient(carrier.work), job.isMerging(carrier.device),
                let token = job.devices[carrier.device].mergingToken
            else { continue }
            // A single message has its own text.
            let oldest = rest.first.flatMap { work.recipient($0.work) }
            let merged = oldest.map { MergedPush(others: rest, oldestID: $0.event.msgID) }
            return sender.enqueue(job, carrier.device, to: token, badge: nil, claimedNanos: 0, merged: merged)
        }
    }

    /// A message that was checked at the window's end and is not pushed.
    func drop(_ dropped: Bursts.Dropped) {
        guard let job = work.recipient(dropped.recipient) else { return shard.late() }
        if dropped.reason == nil { job.machine.leaveUnmarked() }
        for index in job.devices.indices where job.devices[index].isMerging {
            end(
                job, index, Verdict(ofEnd: dropped.reason ?? .ok), (dropped.reason ?? .ok).rawValue,
                isRecorded: dropped.reason != nil)
        }
        endIfComplete(job)
    }

    /// The merged push has ended. If it ended before APNs answered (its own message was read or revoked at the last
    /// moment), the next newest message carries the rest.
    func follow(_ merged: MergedPush, _ verdict: Verdict) {
        switch verdict {
        case .suppressed, .expired, .parked:
            sendMerged(merged.others)
        case .accepted, .rejected, .online:
            for ref in merged.others {
                guard let job = work.recipient(ref.work), job.isMerging(ref.device) else { continue }
                job.event.app.metrics.coalesced.add()
                // The merged push was also this message's alert: its result decides about an SMS.
                job.flags.insert(verdict == .accepted ? .accepted : .failed)
                if verdict == .accepted, job.devices[ref.device].isDesktop { job.flags.insert(.desktopHasIt) }
                end(job, ref.device, .suppressed, Reason.coalesced.rawValue)
                endIfComplete(job)
            }
        }
    }
}
