// SPDX-License-Identifier: Apache-2.0
import APNs
import Kafka
import PushCore

/// Pushes that wait too long for a client or for `limits.rate`: they are parked.
extension Sender {
    /// Once a second: parks pushes that have waited too long in a client with a problem, or for `limits.rate`.
    ///
    /// - Parameter full: partitions of the events topic with full windows while several apps have records in them, and the app with
    ///   most of the work: its waiting pushes are parked at once.
    func parkWhatWaits(_ full: FullPartitions?) {
        for app in apps {
            for client in app.clients { client.look(nowNanos: shard.nowNanos) }
        }
        parkOverdue(full)
    }

    /// Several times a second: some of them, so that other pushes do not wait for the rest.
    func parkOverdue(_ full: FullPartitions? = nil) {
        let now = shard.nowNanos
        for app in apps {
            for client in app.clients {
                let isInTrouble = client.isInTrouble(shard.limits, nowNanos: now)
                // For a client that is only slow: if other apps wait behind its records.
                let patience = shard.limits.patienceNanos * (isInTrouble ? 1 : 2)
                if isInTrouble || (shard.limits.isShared && client.apns.queued > 0) {
                    var left = Self.parkedPerLook
                    let overdue = withdraw(from: client) { device in
                        guard left > 0, isOverdue(device, patience, full) else { return false }
                        left -= 1
                        return true
                    }
                    park(overdue, of: client, isInTrouble)
                }
                guard isInTrouble else { continue }
                park(Self.takeRecipients(from: &client.stalled) { _ in true }, of: client, true)
            }
            parkPaced(app, full)
        }
    }

    /// Several times a second while Redis refuses writes: pushes that wait for a stream or for `limits.rate` do not keep their
    /// event open, where others of it may be accepted.
    func parkUnclaimed() {
        for app in apps {
            for client in app.clients where client.apns.queued > 0 {
                let isInTrouble = client.isInTrouble(shard.limits, nowNanos: shard.nowNanos)
                park(withdraw(from: client, isUnclaimed), of: client, isInTrouble)
            }
            dropPaced(app, isUnclaimed)
        }
    }

    private func isUnclaimed(_ device: DeviceRef) -> Bool {
        guard isOverdue(device, Self.unclaimedNanos, nil), let job = work.recipient(device.work),
            job.flags.contains(.owesClaim)
        else { return false }
        return job.event.hasManyRecipients || job.flags.contains(.accepted)
    }

    private static let unclaimedNanos: UInt64 = 500_000_000
    private static let parkedPerLook = 256

    private func parkPaced(_ app: AppContext, _ full: FullPartitions?) {
        let patience = 2 * shard.limits.patienceNanos
        dropPaced(app) { isOverdue($0, patience, full) }
    }

    private func dropPaced(_ app: AppContext, _ isGoing: (DeviceRef) -> Bool) {
        for device in Self.takeRecipients(from: &app.paced, isGoing) {
            drop(device, .park(.rate, dueMs: shard.steadyMs, client: nil))
        }
    }

    /// Badge updates stay: they wait for room in memory.
    private static func takeRecipients(
        from targets: inout [PushTarget], _ isGoing: (DeviceRef) -> Bool
    ) -> [DeviceRef] {
        var taken: [DeviceRef] = []
        targets.removeAll { target in
            guard case .recipient(let device) = target, taken.count < parkedPerLook, isGoing(device) else {
                return false
            }
            taken.append(device)
            return true
        }
        return taken
    }

    private func park(_ devices: [DeviceRef], of client: AppContext.Client, _ isInTrouble: Bool) {
        let order = devices.sorted { (work.recipient($0.work)?.order ?? 0) < (work.recipient($1.work)?.order ?? 0) }
        for device in order {
            drop(device, .park(isInTrouble ? client.trouble : .share, dueMs: shard.steadyMs, client: client.name))
        }
    }

    private func isOverdue(_ device: DeviceRef, _ patienceNanos: UInt64, _ full: FullPartitions?) -> Bool {
        guard let job = work.recipient(device.work), job.mayPark,
            device.device < job.devices.count, !job.devices[device.device].isParked
        else { return false }
        guard let push = job.devices[device.device].push else { return false }
        return shard.nowNanos &- push.startedNanos > patienceNanos || full?.contain(job.event) ?? false
    }
}

/// Partitions of the events topic with full windows, and the app that has most of the work.
struct FullPartitions {
    var partitions: Set<TopicPartition>
    var app: AppContext

    func contain(_ event: EventJob) -> Bool {
        event.app === app && event.parked == nil && event.chunkPart == nil && event.isOf(partitions)
    }
}
