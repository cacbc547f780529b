// SPDX-License-Identifier: Apache-2.0
import APNs

/// The open work of a shard, for tests: a shard without work holds nothing.
extension Pipeline {
    /// The parts that hold something, in a fixed order.
    var leftovers: [(part: String, count: Int)] {
        let clients = apps.values.flatMap(\.clients)
        let all: [(part: String, count: Int)] = [
            ("events", work.events.count), ("recipients", work.recipients.count),
            ("badge updates", work.badgeUpdates.count), ("user-state records", userStates.count),
            ("newest badges", newestBadges.count), ("parked records", parking.count),
            ("unsettled records", intakes.reduce(0) { $0 + $1.unsettledCount }),
            ("bytes of unsettled records", intakes.reduce(0) { $0 + $1.unsettledBytes }),
            ("dedup keys", claims.openKeys), ("lines of order", lookup.openLines),
            ("devices in queues", sender.busyDevices), ("pushes in device queues", sender.waitingForDevice),
            ("counts that are not in Redis", shard.statistics.openCounts),
            ("owed claims", recorder.owedCount + userStates.owedCount),
            ("recipients in apps' shares", apps.values.reduce(0) { $0 + $1.inHand.recipients }),
            ("events in apps' shares", apps.values.reduce(0) { $0 + $1.inHand.events + $1.inHand.expanding }),
            ("bytes in apps' shares", apps.values.reduce(0) { $0 + $1.inHand.bytes }),
            ("records without an acknowledgement", recorder.outbox.pendingCount),
            ("pushes on streams", clients.reduce(0) { $0 + $1.apns.inFlight }),
            ("pushes that wait", clients.reduce(0) { $0 + $1.apns.queued }),
        ]
        return all.filter { $0.count != 0 }
    }
}
