// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import Kafka
import Redis
import Telemetry

/// The figures of a pipeline for its operator, once a second, and its open work: a layer above the components.
final class PipelineFigures {
    /// As of the last second.
    private(set) var waiting = WaitingPushes()
    private let shard: ShardContext
    private let work: WorkTable
    private let intakes: Intakes
    private let apps: AppTable
    private let fanOut: FanOut
    private let lookup: Lookup
    private let claims: Claims
    private let sender: Sender
    private let recorder: Recorder
    private let parking: Parking
    private let userStates: UserStates
    private let badges: NewestBadges
    private let room: WorkRoom

    init(
        _ shard: ShardContext, _ work: WorkTable, _ intakes: Intakes, apps: AppTable, fanOut: FanOut, lookup: Lookup,
        claims: Claims, sender: Sender, recorder: Recorder, parking: Parking, userStates: UserStates,
        badges: NewestBadges, room: WorkRoom
    ) {
        self.shard = shard
        self.work = work
        self.intakes = intakes
        self.apps = apps
        self.fanOut = fanOut
        self.lookup = lookup
        self.claims = claims
        self.sender = sender
        self.recorder = recorder
        self.parking = parking
        self.userStates = userStates
        self.badges = badges
        self.room = room
    }

    /// Unsettled work: records read and not settled, and their dependencies.
    var pendingCount: Int {
        work.events.count + userStates.count + work.badgeUpdates.count + badges.count + parking.count
    }

    /// The parts that hold something, in a fixed order.
    var leftovers: [(part: String, count: Int)] {
        let clients = apps.values.flatMap(\.clients)
        let all: [(part: String, count: Int)] = [
            ("events", work.events.count), ("recipients", work.recipients.count),
            ("badge updates", work.badgeUpdates.count), ("user-state records", userStates.count),
            ("newest badges", badges.count), ("parked records", parking.count),
            ("unsettled records", intakes.all.reduce(0) { $0 + $1.unsettledCount }),
            ("bytes of unsettled records", intakes.all.reduce(0) { $0 + $1.unsettledBytes }),
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

    /// What an operator is to know of Kafka although records are read, in words.
    var kafkaNotes: [String] {
        let foreign = shard.statistics.foreignCount
        let waits =
            foreign == 0
            ? []
            : [
                "another worker counts the statistics of \(foreign) of these partitions: their offsets are not committed, at most "
                    + "until its session ends; is it in another group?"
            ]
        return intakes.all.flatMap(\.noteTexts) + shard.unread.texts + recorder.outbox.noteTexts + waits
    }

    /// Apps over their share; further events are parked.
    var appsOverShare: [String] { apps.values.filter { $0.inHand.isOverShare(shard.limits) }.map(\.id).sorted() }

    func sample() {
        let metrics = shard.metrics
        metrics.pendingEvents.set(pendingCount)
        metrics.pendingRecipients.set(work.recipients.count)
        metrics.waitingForDevice.set(sender.waitingForDevice)
        metrics.scheduled.set(parking.scheduledCount)
        // A pass through all that waits: less often where that is much.
        if shard.steadyMs / 1_000 % Int64(1 + parking.count / 20_000) == 0 { waiting = waitingPushes }
        metrics.pausedPartitions.set(intakes.pausedCount)
        var oldestNanos: UInt64 = 0
        for intake in intakes.all {
            oldestNanos = max(oldestNanos, intake.oldestUnsettledNanos ?? 0)
        }
        metrics.oldestUnsettled.set(Double(oldestNanos) / 1_000_000_000)
        reportGaps()
        measureBackpressure()
        metrics.loopLag.set(Double(shard.loop.takeLongestTurnNanos()) / 1_000_000_000)
    }

    private var waitingPushes: WaitingPushes {
        var waiting = WaitingPushes()
        parking.note(in: &waiting)
        let parked = waiting.count
        for app in apps.values {
            waiting.add(.rate, app.paced.count)
            for client in app.clients {
                let apns = client.apns
                if apns.isHeldUp {
                    waiting.add(WaitingPushes.Cause(client.trouble), apns.queued)
                } else {
                    waiting.add(.stream, apns.waiting)
                    waiting.add(.retryAfter, apns.queued - apns.waiting)
                }
            }
        }
        waiting.add(.behind, sender.waitingForDevice)
        guard waiting.count > parked else { return waiting }
        work.recipients.forEach { job in
            guard let source = job.event.origin?.source, job.devices.contains(where: \.isPushing) else { return }
            waiting.note(kafkaMs: source.kafkaMs)
        }
        return waiting
    }

    private func measureBackpressure() {
        let limits = shard.limits
        let isHeld = intakes.events.isHeld
        let apns = sender.waitsForAPNs
        shard.metrics.backpressure.sample(nowNanos: shard.nowNanos) { cause in
            switch cause {
            // If slots and windows are full of pushes that wait for APNs, APNs is the cause, and these are
            // consequences.
            case .inflight: isHeld && !room.hasSlots && !apns.isAll
            case .limiter: isHeld && sender.pushesAhead >= limits.pushesAheadMax
            case .redis: isHeld && shard.store.client.pipelineDepth >= limits.redisDepthMax
            case .window: intakes.all.contains { !$0.fullPartitions.isEmpty } && !apns.isAll
            case .lane: fanOut.isBoundByLane && !apns.isAll
            case .breaker, .connection, .credential: apns.causes.contains(cause)
            }
        }
    }

    /// Work that the drain's time was too short for: it comes again to the next owner.
    func logLeft() {
        var phases: [String: Int] = [:]
        work.recipients.forEach { job in
            phases[job.machine.phase.name, default: 0] += 1
            for device in job.devices where device.isOpen {
                phases["device \(device.phase)", default: 0] += 1
            }
        }
        var events: [String: Int] = [:]
        work.events.forEach { event in
            let open = "\(event.fanOutPhase), parts \(event.openParts), unacked \(event.unackedDeliveries)"
            events[open, default: 0] += 1
        }
        let recipients = phases.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        shard.log.warning(
            "the drain time ended with unsettled work",
            [
                "events": .string("\(events)"), "recipients": .string(recipients),
                "changes": .int(userStates.count), "badge_updates": .int(work.badgeUpdates.count),
                "badge_checks": .int(badges.count), "unwritten_records": .int(recorder.outbox.pendingCount),
            ])
    }

    /// Records deleted by retention before they were read are lost: an operator must know.
    private func reportGaps() {
        let lost = intakes.all.reduce(0) { $0 &+ $1.consumer.lostRecords }
        if lost <= shard.metrics.gaps.value { return }
        let fresh = lost - shard.metrics.gaps.value
        shard.metrics.gaps.add(fresh)
        shard.log.error(
            "records were deleted before they were read: retention is shorter than the lag",
            ["count": .int(Int(clamping: fresh))])
    }
}
