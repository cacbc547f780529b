// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import Kafka
import Redis
import Telemetry

/// An operator's view of a pipeline: gauges, once a second.
extension Pipeline {
    var assignedCount: Int { intakes.reduce(0) { $0 + $1.assignedCount } }
    var pausedCount: Int { intakes.reduce(0) { $0 + $1.pausedCount } }

    /// The slowest partitions first, limited to a useful number.
    var partitionStatuses: [ShardStatus.Partition] {
        ShardStatus.Partition.slowest(intakes.flatMap(\.partitionStatuses))
    }

    var readPartitions: Int { intakes.reduce(0) { $0 + $1.readPartitions } }
    var heldPartitions: Int { intakes.reduce(0) { $0 + $1.consumer.assignment.count } }
    var restartedTopics: [String] { intakes.flatMap(\.restartedTopicNames) }
    var heldTopics: [String] { intakes.flatMap(\.heldTopics) }
    var unreadableTopics: [String] { intakes.flatMap(\.unreadableTopics) }
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
        return intakes.flatMap(\.noteTexts) + shard.unread.texts + recorder.outbox.noteTexts + waits
    }
    var awaitedTopics: [String] { intakes.flatMap(\.awaitedTopics) }

    /// The brokers' last answers to the consumers: `none` if no broker answered any of them.
    var kafkaReach: KafkaReach {
        intakes.dropFirst().reduce(intakes.first?.consumer.reach ?? .unknown) { $0.and($1.consumer.reach) }
    }

    /// Apps over their share; further events are parked.
    var appsOverShare: [String] { apps.values.filter { $0.inHand.isOverShare(shard.limits) }.map(\.id).sorted() }

    /// Commits settled offsets of both consumers.
    func commitNow() {
        for intake in intakes { intake.consumer.commitNow() }
    }

    /// A commit has no answer yet.
    var isCommitting: Bool { intakes.contains { $0.consumer.isCommitting } }

    /// A commit failed, and its offsets are to be sent again.
    var hasUncommitted: Bool { intakes.contains(where: \.consumer.hasUncommitted) }

    func sample() {
        let metrics = shard.metrics
        metrics.pendingEvents.set(pendingCount)
        metrics.pendingRecipients.set(work.recipients.count)
        metrics.waitingForDevice.set(sender.waitingForDevice)
        metrics.scheduled.set(parking.scheduledCount)
        // It goes through all that waits: less often where that is much.
        if shard.steadyMs / 1_000 % Int64(1 + parking.count / 20_000) == 0 { waiting = waitingPushes }
        metrics.pausedPartitions.set(pausedCount)
        var oldestNanos: UInt64 = 0
        for intake in intakes {
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
        let isHeld = events.isHeld
        let apns = sender.waitsForAPNs
        shard.metrics.backpressure.look(nowNanos: shard.nowNanos) { cause in
            switch cause {
            // If slots and windows are full of pushes that wait for APNs, APNs is the cause, and these are
            // consequences.
            case .inflight: isHeld && !hasSlots && !apns.isAll
            case .limiter: isHeld && sender.pushesAhead >= limits.pushesAheadMax
            case .redis: isHeld && shard.store.client.pipelineDepth >= limits.redisDepthMax
            case .window: intakes.contains { !$0.fullPartitions.isEmpty } && !apns.isAll
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
                "badge_checks": .int(newestBadges.count), "unwritten_records": .int(recorder.outbox.pendingCount),
            ])
    }

    /// Records deleted by retention before they were read are lost: an operator must know.
    private func reportGaps() {
        let lost = intakes.reduce(0) { $0 &+ $1.consumer.lostRecords }
        if lost <= shard.metrics.gaps.value { return }
        let fresh = lost - shard.metrics.gaps.value
        shard.metrics.gaps.add(fresh)
        shard.log.error(
            "records were deleted before they were read: retention is shorter than the lag",
            ["count": .int(Int(clamping: fresh))])
    }
}
