import APNs
import EventLoop
import Kafka
import PushCore
import Redis
import Telemetry

/// Kafka's side: records in, rebalances, and when to stop reading.
extension Pipeline: KafkaConsumerDelegate {
    /// Room for more: slots for recipients, few audiences waiting for them, and a Redis and an APNs that keep up.
    ///
    /// What would only wait there is better left in Kafka: here it costs memory and falls out of the processor's caches.
    var hasRoom: Bool {
        hasSlots && store.client.pipelineDepth < limits.redisDepthMax && pushesAhead < limits.pushesAheadMax
    }

    private var hasSlots: Bool {
        recipients.count < limits.recipientsMax - limits.pollBatch && expanding.count < limits.expandingMax
            && (changes.count < limits.changesMax - limits.pollBatch || !heldTopics.isEmpty)
            && events.count < limits.recipientsMax - limits.pollBatch
    }

    /// Pushes that wait for streams. An app whose APNs is away or refuses its credential does not count: its pushes wait
    /// in the slots, and the other apps go on.
    var pushesAhead: Int {
        var count = 0
        for app in apps.values {
            for client in app.clients where client.apns.isUsable { count += client.apns.waiting }
        }
        return count
    }

    /// Takes one batch; the rest waits its turn behind the answers of what was taken before.
    func pollKafka() {
        guard intake.wantsRecords(hasRoom: hasRoom, nowNanos: loop.nowNanos) else {
            // Its descriptor stays readable, and would call again at once.
            consumerWatcher?.suspend()
            return
        }
        consumer.poll(max: limits.pollBatch)
        startFresh()
    }

    /// Work ended: reading goes on if it had stopped for want of room.
    func pollKafkaIfReady() {
        guard intake.isHeld else { return }
        perform(intake.roomFreed(hasRoom: hasRoom))
    }

    func tick() {
        perform(intake.tick(hasRoom: hasRoom, nowNanos: loop.nowNanos))
        for partition in fullPartitions { relieve(partition) }
        // Live devices do not wait until APNs has room for the rest of a giant group: their acks are due in seconds.
        for event in expanding { flushDeliveries(of: event, evenIfUndecided: true) }
        expandWaiting()
        completeRevocationIfDrained()
        holdChangesIfRefused()
        releaseBrakes()
        pollDigests()
        lookAtBackpressure()
        sample()
        owner?.pipelineDidTick()
        tickTimer?.arm(afterNanos: Intake.tickNanos)
    }

    private func lookAtBackpressure() {
        let isHeld = intake.isHeld
        metrics.backpressure.look(nowNanos: loop.nowNanos) { cause in
            switch cause {
            case .inflight: isHeld && !hasSlots
            case .limiter: isHeld && pushesAhead >= limits.pushesAheadMax
            case .redis: isHeld && store.client.pipelineDepth >= limits.redisDepthMax
            case .window: !fullPartitions.isEmpty
            case .breaker:
                apps.values.contains { $0.clients.contains { !$0.apns.isUsable && $0.apns.waiting > 0 } }
            }
        }
    }

    private func perform(_ action: Intake.Action) {
        switch action {
        case .none: return
        case .poll: break
        case .pauseAndPoll:
            consumer.pause(consumer.assignment)
            log.warning("intake is paused: the work in hand is at its bound", ["recipients": .int(recipients.count)])
        case .resumeAndPoll:
            consumer.resume(consumer.paused.subtracting(fullPartitions).filter { !heldTopics.contains($0.topic) })
            log.info("intake goes on")
        }
        consumerWatcher?.resume()
        pollKafka()
    }

    private func sample() {
        metrics.pendingEvents.set(pendingCount)
        metrics.pendingRecipients.set(recipients.count)
        metrics.waitingForDevice.set(lanes.waitingCount)
        metrics.pausedPartitions.set(consumer.paused.count)
        metrics.lag.set(Double(consumer.assignment.reduce(Int64(0)) { $0 &+ (consumer.lag($1) ?? 0) }))
        metrics.oldestUnsettled.set(
            Double(ledger.oldestUnsettledAgeNanos(nowNanos: loop.nowNanos) ?? 0) / 1_000_000_000)
        tellGaps()
        metrics.loopLag.set(Double(loop.takeLongestTurnNanos()) / 1_000_000_000)
    }

    /// Records that retention took before they were read are lost for good: somebody must know (ops: K10).
    private func tellGaps() {
        let skipped = ledger.skippedOffsets
        guard skipped > metrics.gaps.value else { return }
        let fresh = skipped - metrics.gaps.value
        metrics.gaps.add(fresh)
        log.error(
            "records were gone before they were read: retention is faster than this worker",
            ["count": .int(Int(clamping: fresh))])
    }

    // MARK: - Records

    func kafka(_ consumer: KafkaConsumer, didReceive record: borrowing KafkaRecord) {
        let receipt = ledger.receive(
            record.partition, offset: record.offset, bytes: record.byteCount, nowNanos: loop.nowNanos)
        guard case .tracked(let place) = receipt else { return }
        metrics.recordsConsumed.add()
        relieve(record.partition)
        let kind = inputs[record.partition.topic]
        guard let value = record.value else {
            return reject(BadRecord(.empty, "the record is null"), record, place)
        }
        do {
            fresh.append(
                FreshEvent(
                    event: try reader.read(value, of: kind), raw: kind == .events ? Array(value) : [],
                    origin: EventJob.Origin(
                        partition: record.partition, place: place, kafkaMs: record.timestampMs ?? 0)))
        } catch {
            reject(error, record, place)
        }
    }

    /// Begins with what a poll brought, once all of it is read.
    private func startFresh() {
        fresh.takeAll { accept($0.event, raw: $0.raw, $0.origin) }
    }

    private func accept(_ event: Event, raw: [UInt8], _ origin: EventJob.Origin) {
        guard let app = app(event.app) else { return settle(origin.place) }
        switch event.body {
        case .userState(let state):
            apply(state, of: event, app: app, place: origin.place)
        case .message(let message):
            start(EventJob(message, of: event, app: app, raw: raw, origin: origin))
        case .liveActivity(let activity):
            start(EventJob(activity, of: event, app: app, raw: raw, origin: origin))
        }
    }

    /// The app of that id; the last one is compared first, which is cheaper than a hash.
    private func app(_ id: String) -> AppContext? {
        if let lastApp, lastApp.id == id { return lastApp }
        lastApp = apps[id]
        return lastApp
    }

    func start(_ job: EventJob) {
        (job.slot, job.generation) = events.insert(job)
        if job.isRecall { return readOriginal(of: job) }
        if let collapseID = job.givenCollapseID {
            // Best effort: lost with the connection, a recall stands beside its message instead of in its place.
            try? store.keepCollapseID(
                app: job.app.id, msgID: job.msgID, collapseID, expireAtMs: job.expiresAtMs, nowMs: loop.wallMs,
                tag: job.tag(.note))
        }
        expand(job)
    }

    /// Bad records go to the dead-letter topic with reason and place; the next record goes on (contract section 0).
    private func reject(_ bad: BadRecord, _ record: borrowing KafkaRecord, _ place: OffsetLedger.Slot) {
        metrics.deadLetter(bad.rule)
        log.warning(
            "a record went to the dead-letter topic",
            [
                "topic": .string(consumer.topics[record.partition.topic]),
                "partition": .int(Int(record.partition.partition)),
                "offset": .int(Int(record.offset)), "rule": .string(bad.rule.rawValue),
            ])
        let job = ChangeJob(rejected: place)
        insert(job)
        outbox?.sendRaw(
            topics.deadLetter, key: record.key.map { Array($0) }, value: record.value.map { Array($0) },
            headers: [
                KafkaHeader(name: "carillon-error", text: bad.header),
                KafkaHeader(name: "carillon-topic", text: consumer.topics[record.partition.topic]),
                KafkaHeader(name: "carillon-partition", text: String(record.partition.partition)),
                KafkaHeader(name: "carillon-offset", text: String(record.offset)),
            ], tag: job.tag(Tag.Stage.deadLetter))
    }

    /// A partition whose window is full is read no further until half of it is settled.
    func relieve(_ partition: TopicPartition) {
        switch ledger.pressure(on: partition, nowNanos: loop.nowNanos) {
        case .unchanged: break
        case .pause:
            fullPartitions.insert(partition)
            consumer.pause([partition])
        case .resume:
            fullPartitions.remove(partition)
            if !intake.isPaused, !heldTopics.contains(partition.topic) { consumer.resume([partition]) }
        }
    }

    // MARK: - Rebalances

    func kafka(
        _ consumer: KafkaConsumer, willRevoke partitions: [TopicPartition], lost: Bool
    ) -> KafkaRevocation {
        startFresh()
        metrics.rebalances.add()
        if lost { metrics.assignmentsLost.add() }
        guard !lost, !intake.isClosing, !isDrained(partitions) else { return .complete }
        // What is in flight may end and be stored; the next owner would do it a second time.
        endAllBursts()
        revoking = Revocation(partitions: partitions, deadlineNanos: loop.nowNanos &+ limits.revokeDrainNanos)
        return .deferred
    }

    /// Lets a deferred revocation go when its partitions are drained, or its time is over.
    func completeRevocationIfDrained() {
        guard let revoking, isDrained(revoking.partitions) || revoking.deadlineNanos <= loop.nowNanos else { return }
        self.revoking = nil
        consumer.completeRevocation()
    }

    /// What of these partitions is not out yet is left to their next owner; what is out ends here, and is marked.
    private func abandon(_ partitions: Set<TopicPartition>) {
        events.forEach { event in
            if event.isOf(partitions) { event.audience.abandon() }
        }
        recipients.forEach { job in
            guard job.event.isOf(partitions), job.step != .finishing else { return }
            if job.step != .sending || job.devices.contains(where: \.isWaiting) { job.flags.insert(.unmarked) }
            supersedeWaiting(job)
            if job.open == 0, job.unackedRecords == 0 { done(job) } else { job.step = .sending }
        }
        // Now without members, they end.
        expandWaiting()
    }

    private func isDrained(_ partitions: [TopicPartition]) -> Bool {
        partitions.allSatisfy { ledger.unsettled(in: $0) == 0 }
    }

    func kafka(_ consumer: KafkaConsumer, didLearnCommitted offsets: [PartitionOffset]) {
        for one in offsets { ledger.noteCommitted(one.partition, offset: one.offset) }
    }

    func kafka(_ consumer: KafkaConsumer, didMeet event: KafkaConsumerEvent) {
        switch event {
        case .assigned(let partitions):
            for partition in partitions { ledger.assign(partition) }
            // New ones begin unpaused, whatever holds the others.
            let isHeld = intake.isPaused || intake.isClosing
            consumer.pause(isHeld ? partitions : partitions.filter { heldTopics.contains($0.topic) })
            metrics.assignedPartitions.set(consumer.assignment.count)
            log.info("partitions assigned", ["count": .int(partitions.count)])
        case .revoked(let partitions, let lost):
            revoking = nil
            for partition in partitions {
                ledger.revoke(partition)
                fullPartitions.remove(partition)
            }
            abandon(Set(partitions))
            metrics.assignedPartitions.set(consumer.assignment.count)
            log.info("partitions revoked", ["count": .int(partitions.count), "lost": .bool(lost)])
        case .committed(_, let error):
            if error == nil { metrics.commits.add() } else { metrics.commitFailures.add() }
            owner?.pipelineDidCommit()
        case .failed(let error, _):
            log.warning("Kafka reported an error", ["error": .string(error.name), "text": .string(error.text)])
        case .endReached:
            break
        case .fatal(let error):
            log.error("the Kafka client is dead for good", ["error": .string(error.name), "text": .string(error.text)])
            owner?.pipelineDidMeetFatalError()
        case .closed:
            owner?.pipelineDidClose()
        }
    }
}

/// An event of the present poll, read and not begun with.
struct FreshEvent {
    let event: Event
    /// The record; empty for a change of a user's state, which nobody reads again.
    let raw: [UInt8]
    let origin: EventJob.Origin
}

/// Partitions that the group wants back, and until when they may be drained.
struct Revocation {
    var partitions: [TopicPartition]
    var deadlineNanos: UInt64
}
