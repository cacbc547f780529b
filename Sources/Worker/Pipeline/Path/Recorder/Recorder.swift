// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import EventLoop
import JSON
import Kafka
import Payload
import PushCore
import Redis
import Telemetry

/// The output of each recipient: results, deliveries, feedback, SMS, traces, and finally the mark in Redis.
///
/// Recipients with an acknowledged last record are in `acknowledged`; recipients with a written mark are in `marked`.
final class Recorder {
    let acknowledged = Tray<RecipientJob>()
    let marked = Tray<RecipientJob>()
    let shard: ShardContext
    let work: WorkTable
    let topics: OutTopics
    let outbox: Outbox
    private let results: Configuration.Results
    /// Recipients with owed claims that the broker does not have yet.
    private(set) var owedCount = 0
    let removals: TokenRemovals
    /// Events with deliveries that wait for room on the way to the broker, and the bytes that are on it.
    private var undelivered: [WorkRef] = []
    private var deliveryBytes = 0
    /// Recipients with collected marks, by event, and with open writes.
    private var openMarks: [Batch<EventJob, RecipientJob>] = []
    private let memberMarks: Batches<EventJob, RecipientJob>
    private var rejectionLines = LogLimiter<BadRecord.Rule>()
    /// One buffer for the records of `push.results`, which are sent one by one.
    private var writer = JSONWriter(reservingCapacity: 1024)

    init(_ shard: ShardContext, _ work: WorkTable, topics: OutTopics, outbox: Outbox, results: Configuration.Results) {
        self.shard = shard
        self.work = work
        self.topics = topics
        self.outbox = outbox
        self.results = results
        removals = TokenRemovals(shard)
        memberMarks = Batches(capacity: shard.limits.recipientsMax)
    }

    // MARK: Results

    func write(_ record: consuming OutcomeRecord, of job: RecipientJob) {
        record.latencyMs = shard.latencyMs(sinceKafkaMs: job.event.origin?.source.kafkaMs ?? 0)
        note(record, of: job, record.verdict == .parked ? .isTraced : [.counts, .isTraced])
        // The channel is no device of anybody.
        if job.event.isBroadcast { record.device = nil }
        if !begin(record, of: job.event) { return }
        if TestBreak.isOn(.dropResult), let id = record.pushID, id.low & 15 == 0 { return }
        job.machine.recordSent()
        outbox.send(topics.results, key: record.uid, value: writer, tag: job.tag(.record))
    }

    /// A record of a badge update: `event_id` is the read's, and there is no message.
    func write(_ record: OutcomeRecord, app: AppContext, eventID: String, tag: UInt64) -> Bool {
        app.metrics.decided(record.verdict, record.label)
        countBadge(record, of: app)
        guard isWanted(record) else { return false }
        writer.clear()
        OutcomeRecord.begin(in: &writer, app: app.id, eventID: eventID, msgID: "")
        record.finish(in: &writer, atMs: shard.nowMs)
        outbox.send(topics.results, key: record.uid, value: writer, tag: tag)
        return true
    }

    /// An event was parked before it was decided about: one record, of its only recipient or of nobody. It is not final.
    func writeParked(_ parked: ParkedRecord, eventID: String, of app: AppContext?) {
        guard let app else { return }
        var record = OutcomeRecord(uid: parked.uid ?? "", verdict: .parked, reason: parked.cause.rawValue)
        record.latencyMs = shard.latencyMs(sinceKafkaMs: parked.source.kafkaMs)
        app.metrics.decided(record.verdict, record.label)
        if !isWanted(record) { return }
        writer.clear()
        let isActivity = parked.id.hasPrefix(PairKind.liveActivity.rawValue)
        OutcomeRecord.begin(
            in: &writer, app: app.id, eventID: eventID, msgID: isActivity ? "" : String(parked.id.dropFirst()))
        writer.member("traceparent", ifPresent: parked.source.traceparent?.text)
        record.finish(in: &writer, atMs: shard.nowMs)
        outbox.send(topics.results, key: record.uid, value: writer, tag: Tag.noteBits)
    }

    /// - Returns: whether the configuration wants it.
    private func isWanted(_ record: OutcomeRecord) -> Bool {
        let isFailure = record.verdict == .rejected || record.verdict == .expired
        return results == .all || (results == .failures && isFailure)
    }

    /// - Returns: false if the configuration does not want it.
    private func begin(_ record: OutcomeRecord, of event: EventJob) -> Bool {
        event.app.metrics.decided(record.verdict, record.label)
        guard isWanted(record) else { return false }
        writer.clear()
        // For many recipients the beginning is written once.
        if let head = event.recordHead {
            writer.raw(head)
        } else {
            OutcomeRecord.begin(in: &writer, app: event.app.id, eventID: event.id, msgID: event.msgID)
            if event.hasManyRecipients { event.recordHead = writer.bytes }
        }
        // Separate, because a group may turn out to be giant later.
        writer.member("lane", event.lane)
        if let traceparent = event.origin?.source.traceparent { writer.member("traceparent", traceparent.text) }
        record.finish(in: &writer, atMs: shard.nowMs)
        return true
    }

    /// Removes a dead token from its user, unless it was bound again (`TokenRemovals`), or so many are removed for the same cause
    /// that the cause is probably ours.
    ///
    /// - Parameter recipient: waits for the record of the removal; nil: nobody does.
    /// - Returns: whether a record will come.
    func removeIfDead(
        _ ending: Ending, of token: BoundToken, app: AppContext, uid: String, recipient: WorkRef?
    ) -> Bool {
        let nowMs = Int64(shard.nowNanos / 1_000_000)
        guard let cause = ending.removal else {
            if ending.status != nil { app.brake.answered(nowMs: nowMs) }
            return false
        }
        if removals.isUnderWay(token, app: app.id) { return false }
        guard case .withhold(let isFirst) = app.brake.refused(cause, nowMs: nowMs) else {
            return removals.begin(of: recipient, app: app, uid: uid, token, cause, ending)
        }
        app.metrics.removalWithheld(cause.label)
        if !isFirst { return false }
        app.metrics.brake(cause.label, isEngaged: true)
        shard.log.error(
            "token removal stopped: too many dead tokens of one cause; check topic, environment and key",
            ["app": .string(app.id), "cause": .string(cause.label)])
        return false
    }

    private func didRetireToken(_ ref: WorkRef, isRetired: Bool) {
        let (removal, recipient) = removals.didRetire(ref, isRetired: isRetired)
        if let removal {
            outbox.send(
                topics.feedback, key: removal.topicKey, value: removal.feedback(atMs: shard.nowMs),
                tag: Tag(ref, .feedback).bits)
        }
        if let recipient { didSettleRecord(recipient) }
    }

    /// The broker has the feedback record of a dead token.
    func didSettleFeedback(_ ref: WorkRef) {
        if let recipient = removals.didSettle(ref) { didSettleRecord(recipient) }
    }

    /// A bad record goes to the dead-letter topic with reason and place (contract section 0).
    func writeDeadLetter(_ bad: RejectedRecord, tag: UInt64) {
        shard.metrics.deadLetter(bad.why.rule)
        // A producer with a wrong schema causes one per record.
        if let suppressed = rejectionLines.admit(bad.why.rule, nowNanos: shard.nowNanos) {
            var log = shard.log
            if let traceparent = bad.origin.source.traceparent {
                log = log.with(["traceparent": .string(traceparent.text)])
            }
            log.warning(
                "a record went to the dead-letter topic",
                [
                    "topic": .string(bad.topic), "partition": .int(Int(bad.origin.partition.partition)),
                    "offset": .int(Int(bad.offset)), "rule": .string(bad.why.rule.rawValue),
                    "suppressed": .int(Int(clamping: suppressed)),
                ])
        }
        outbox.sendRaw(
            topics.deadLetter, key: bad.key, value: bad.value,
            headers: DeadLetter.headers(
                bad.why, topic: bad.topic, partition: bad.origin.partition.partition, offset: bad.offset), tag: tag)
    }

    /// The broker has a record of a recipient (or it was given up with a log line).
    func didSettleRecord(_ ref: WorkRef) {
        guard let job = work.recipient(ref) else {
            return shard.mistake("a recipient has ended before its record is stored")
        }
        if !job.machine.recordAcknowledged() { return }
        acknowledged.append(job)
        shard.requestTurn()
    }

    // MARK: The mark

    /// Only records are awaited: the following mark is built now, while its data is in the cache, and the rest is
    /// released.
    func sealIfEnded(_ job: RecipientJob) {
        guard job.machine.awaitsRecordsOnly, job.machine.isMarked, job.mark == nil, job.burstPlace == nil,
            !job.flags.contains(.hasDelivery), !job.owesClaim
        else { return }
        seal(job)
        job.keepOnlyMark()
    }

    /// Builds the recipient's mark, once. The journal goes with it.
    private func seal(_ job: RecipientJob) {
        if job.mark != nil { return }
        let start = traceStart(of: job)
        job.mark =
            if job.usesGroupMarks {
                .inGroup(shard.store.memberMark(uid: job.uid) { writeJournal(of: job, traceStart: start, to: &$0) })
            } else {
                .own(
                    shard.store.preparedMark(
                        app: job.event.app.id, uid: job.uid, job.event.subject, nowMs: shard.nowMs,
                        seconds: start == nil ? 0 : shard.traces.lifeSeconds
                    ) { writeJournal(of: job, traceStart: start, to: &$0) })
            }
        count(job)
    }

    private func traceStart(of job: RecipientJob) -> Int? {
        if shard.traces.isOff { return nil }
        return job.journal.traceStart(isSampled: shard.traces.covers(app: job.event.app.id, uid: job.uid))
    }

    private func writeJournal(of job: RecipientJob, traceStart: Int?, to command: inout RedisCommand) {
        let event = job.event
        if let subject = event.counted.subject {
            MarkCounts.write(job.journal, record: event.recordName, subject, event.pushKind, event.lane) {
                command.part($0)
            }
        }
        guard let traceStart else { return }
        TraceBytes.write(
            job.journal, from: traceStart, sentMs: event.sentMs, id: event.subject.id, msgID: event.msgID,
            eventID: event.id, facts: job.facts
        ) { command.part($0) }
    }

    /// Marks a recipient as ended. A redelivery then writes nothing.
    ///
    /// A recipient with a refused claim is left to the reader of its record in `carillon.parked`.
    func mark(_ job: RecipientJob) {
        if job.owesClaim { return storeOwedClaim(job) }
        job.machine.beginMarking(writes: 1 + (job.heldUntilMs == nil ? 0 : 2))
        sendHeldBack(job)
        seal(job)
        if case .own(let command) = job.mark {
            ask(job) { (store) throws(RedisFault) in try store.writeMark(command, tag: job.tag(.writeMark)) }
        } else {
            gather(job)
        }
    }

    /// Messages held by DND are stored before the mark.
    private func sendHeldBack(_ job: RecipientJob) {
        guard let endMs = job.heldUntilMs else { return }
        let app = job.event.app.id
        ask(job) { (store) throws(RedisFault) in
            try store.holdForDigest(
                app: app, uid: job.uid, job.event.subject, untilMs: endMs, nowMs: shard.nowMs, tag: job.tag(.heldBack))
        }
        ask(job) { (store) throws(RedisFault) in
            try store.planDue(DueUser(app: app, uid: job.uid), atMs: endMs, tag: job.tag(.heldBack))
        }
    }

    private func ask(_ job: RecipientJob, _ send: (StateStore) throws(RedisFault) -> Void) {
        do throws(RedisFault) {
            try send(shard.store)
        } catch {
            didMark(job, failed: true)
        }
    }

    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        shard.noteWritten()
        switch tag.question {
        case .retireToken: didRetireToken(tag.ref, isRetired: reply.int64 == 1)
        case .writeMarks: forEachMember(tag.ref) { didReplyToMark($0) }
        default: didReplyToMark(tag.ref)
        }
    }

    func didFail(_ tag: Tag, _ fault: RedisFault) {
        switch tag.question {
        case .retireToken: didRetireToken(tag.ref, isRetired: false)
        case .writeMarks: forEachMember(tag.ref) { didFailToMark($0, fault) }
        default: didFailToMark(tag.ref, fault)
        }
    }

    private func didReplyToMark(_ ref: WorkRef) {
        guard let job = work.recipient(ref), job.machine.isMarking else { return shard.noteLate() }
        didMark(job, failed: false)
    }

    private func didFailToMark(_ ref: WorkRef, _ fault: RedisFault) {
        if fault.refusesWrite { shard.writes.refused(fault, nowNanos: shard.nowNanos) }
        guard let job = work.recipient(ref), job.machine.isMarking else { return shard.noteLate() }
        if fault.refusesWrite, !fault.isLasting { job.oweMark() }
        // A permanent fault delays nobody.
        didMark(job, failed: !fault.isLasting)
    }

    // MARK: Marks of many members

    /// Until they fill one command, or some milliseconds have passed.
    private func gather(_ job: RecipientJob) {
        guard let place = openMarks.firstIndex(where: { $0.head === job.event }) else {
            if openMarks.isEmpty {
                shard.timers.schedule(.memberMarks, dueNanos: shard.nowNanos &+ Self.gatherNanos)
            }
            let batch = Batch<EventJob, RecipientJob>(job.event)
            batch.append(job)
            return openMarks.append(batch)
        }
        openMarks[place].append(job)
        if openMarks[place].members.count >= shard.limits.claimsPerCall { send(openMarks.remove(at: place)) }
    }

    private static let gatherNanos: UInt64 = 5_000_000

    /// Sends the collected marks as they are.
    func sendGathered() {
        let batches = openMarks
        openMarks = []
        for batch in batches { send(batch) }
    }

    private func send(_ batch: Batch<EventJob, RecipientJob>) {
        let event = batch.head
        let fault = memberMarks.ask(batch, .writeMarks) { (tag) throws(RedisFault) in
            try shard.store.writeGroupMarks(
                app: event.app.id, event.subject, batch.members.compactMap { $0.mark?.inGroup },
                seconds: shard.marksSeconds(event.subject), tag: tag)
        }
        if let fault { for job in batch.members { didFailToMark(job.ref, fault) } }
    }

    private func forEachMember(_ ref: WorkRef, _ body: (WorkRef) -> Void) {
        guard let batch = memberMarks.answered(ref) else {
            return shard.mistake("an answer about marks that nobody wrote")
        }
        for job in batch.members { body(job.ref) }
    }

    private func storeOwedClaim(_ job: RecipientJob) {
        let event = job.event
        var owed = OwedClaim(job.claimRequest(nowMs: shard.nowMs), eventID: event.id)
        owed.note = finishedNote(of: job)
        let marks = OwedMarks(
            app: event.app.id, conversation: event.parkedConversation, part: event.parkedPart, claims: [owed])
        owedCount += 1
        shard.metrics.parked.add()
        outbox.sendRaw(
            topics.parked, key: Array(marks.key.utf8), value: marks.bytes, headers: [], tag: job.tag(.owedClaim))
    }

    /// The mark's bytes behind the state. A recipient whose mark is built has nothing else any more.
    private func finishedNote(of job: RecipientJob) -> [UInt8] {
        seal(job)
        if let value = job.mark?.value { return Array(value.dropFirst()) }
        shard.mistake("a mark without a value")
        return []
    }

    /// The broker has the record of a recipient's owed claim.
    func didStoreOwedClaim(_ ref: WorkRef) {
        owedCount -= 1
        guard let job = work.recipient(ref) else {
            return shard.mistake("a recipient has ended before its owed claim is stored")
        }
        marked.append(job)
    }

    private func didMark(_ job: RecipientJob, failed: Bool) {
        guard let isWritten = job.machine.didWrite(failed: failed) else { return }
        if isWritten { return marked.append(job) }
        job.failures += 1
        shard.timers.schedule(.retryStep(job.ref), dueNanos: shard.retryNanos(failures: Int(job.failures)))
    }

    // MARK: Deliveries
    // Records of `im.deliveries`: one per (event, gateway).

    /// The bytes of deliveries on the way to the broker; one record may exceed it.
    private static let deliveriesMax = 8 << 20

    func deliver(_ target: DeliveryTarget, gateway: String, of job: RecipientJob) {
        job.flags.insert(.hasDelivery)
        let event = job.event
        let batches = event.deliveries ?? GatewayBatches()
        event.deliveries = batches
        let full = batches.add(target, gateway: gateway, atMost: shard.limits.deliveryTargetsMax)
        if let full { produce(full, of: event) }
    }

    /// One record per gateway, when all recipients of the event are decided. A group with waiting members sends every
    /// second.
    func flushDeliveries(of event: EventJob, evenIfUndecided: Bool = false) {
        guard event.hasUnsentDeliveries, (event.undecided == 0 && event.audience.isEmpty) || evenIfUndecided
        else { return }
        if flush(event) { return }
        if !undelivered.contains(event.ref) { undelivered.append(event.ref) }
    }

    /// - Returns: false if the rest waits for room on the way to the broker.
    private func flush(_ event: EventJob) -> Bool {
        while deliveryBytes < Self.deliveriesMax {
            guard let batch = event.deliveries?.take() else { return true }
            produce(batch, of: event)
        }
        return !event.hasUnsentDeliveries
    }

    private func produce(_ batch: GatewayBatches.Batch, of event: EventJob) {
        let raw = event.raw
        var writer = JSONWriter(reservingCapacity: raw.count + 160 * batch.targets.count + 64)
        DeliveryTarget.writeRecord(
            of: batch.targets, gateway: batch.gateway, app: event.app.id, event: raw,
            traceparent: event.origin?.source.traceparent, to: &writer)
        event.openParts += 1
        event.unackedDeliveries += 1
        deliveryBytes += raw.count
        event.app.metrics.deliveries.add(UInt64(batch.targets.count))
        outbox.send(topics.deliveries, key: batch.gateway, value: writer, tag: event.tag(.delivery))
    }

    /// The broker has a delivery. Returns the recipients that waited for it.
    func didSettleDelivery(_ event: EventJob) -> [WorkRef] {
        event.unackedDeliveries -= 1
        deliveryBytes -= event.raw.count
        while let ref = undelivered.first {
            if let waiting = work.event(ref), !flush(waiting) { break }
            undelivered.removeFirst()
        }
        guard event.areDeliveriesSettled, let deliveries = event.deliveries else { return [] }
        defer { deliveries.waiting = [] }
        return deliveries.waiting
    }

    // MARK: SMS
    // The SMS supplement (mPaaS): requested if the sender allows it and no other way reaches the user.

    /// Notes an end without the alert. A read, revoked or ended message needs none.
    func noteFailure(of job: RecipientJob, verdict: Verdict, reason: String) {
        let isFailure =
            switch verdict {
            case .rejected: true
            case .suppressed: Self.failures.contains(reason)
            case .accepted, .expired, .online, .parked: false
            }
        if isFailure { job.flags.insert(.failed) }
    }

    private static var failures: [String] {
        [Reason.payloadTooLarge.rawValue, Reason.tokenMoved.rawValue, Reason.noToken.rawValue]
    }

    /// Every push failed, or no device had a usable token.
    func offerSMSIfAllFailed(_ job: RecipientJob) {
        if !job.event.wantsSMS { return }
        guard job.flags.contains(.failed) else { return job.showsNoAlerts ? offerSMS(job, .noToken) : () }
        offerSMS(job, job.parking != nil || job.devices.contains(where: \.isPush) ? .allFailed : .noToken)
    }

    /// Once per (event, user), in time, not while a device is live, and not for a user that was reached otherwise.
    func offerSMS(_ job: RecipientJob, _ reason: SMSRecord.Reason) {
        guard job.event.wantsSMS, job.flags.isDisjoint(with: [.live, .offeredSMS, .accepted, .reached]),
            job.event.expiresAtMs > shard.nowMs, let message = job.event.message, let variant = job.smsText?.variant
        else { return }
        job.flags.insert(.offeredSMS)
        let app = job.event.app
        let text = message.read { message in
            ShownText(
                message, variant: variant, rules: PayloadRules(message, policy: app.policy), templates: app.templates)
        }
        let record = SMSRecord(
            app: app.id, eventID: job.event.id, msgID: job.event.msgID, uid: job.uid, reason: reason,
            phone: job.settings.phone, text: text, atMs: shard.nowMs)
        var writer = JSONWriter(reservingCapacity: 512)
        record.write(to: &writer)
        job.machine.recordSent()
        outbox.send(topics.sms, key: job.uid, value: writer, tag: job.tag(.record))
    }

    // MARK: The journal
    // The source of the mark, the trace and the statistics of a recipient.

    /// - Parameter traits: besides those that the recipient has.
    private func note(_ outcome: borrowing OutcomeRecord, of job: RecipientJob, _ traits: Journal.Entry.Traits) {
        // Only the trace has waits.
        if outcome.verdict == .parked, shard.traces.isOff { return }
        var traits = traits
        if job.isResumed { traits.insert(.isResumed) }
        if outcome.verdict == .accepted, job.isAddedByClient { traits.insert(.isAddedByClient) }
        job.journal.append(
            Journal.Entry(
                device: outcome.device, verdict: outcome.verdict, reason: outcome.reason, atMs: shard.nowMs,
                pushID: outcome.pushID, badge: outcome.badge, status: Int32(truncatingIfNeeded: outcome.status ?? 0),
                attempts: Int32(truncatingIfNeeded: outcome.attempts), latencyMs: outcome.latencyMs,
                countedReason: CountedReason.code(outcome.label),
                credential: outcome.credential.map { MarkCounts.short($0) } ?? 0, traits: traits))
    }

    /// The device needs nothing more. Another try has recorded it, or nothing is to be recorded.
    ///
    /// - Parameter counted: how the other try counted it (`RecipientJob.outcome`).
    func noteUnrecorded(_ device: String, _ verdict: Verdict, counted: CountedOutcome? = nil, of job: RecipientJob) {
        let entry = counted.flatMap { Journal.Entry($0, device: device, nowMs: shard.nowMs) }
        job.journal.append(entry ?? Journal.Entry(unrecorded: device, verdict, atMs: shard.nowMs))
    }

    /// The cause of a device's wait: recorded only in the trace, because nothing has ended.
    func traceWait(_ job: RecipientJob, _ index: Int, _ why: TraceWait) {
        let device = job.devices[index].route.device
        note(OutcomeRecord(uid: job.uid, device: device, verdict: .parked, reason: why.rawValue), of: job, .isTraced)
    }

    /// Devices ended since the recipient's record in `carillon.parked` was written.
    func takeEnds(_ ends: [Journal.Entry], into job: RecipientJob) {
        let known = job.journal.endedDevices
        for end in ends where !known.containsSame(end.device ?? "") {
            job.journal.append(end)
            noteFailure(of: job, verdict: end.verdict, reason: end.reason)
            if end.reason.isSame(as: Reason.acked.rawValue) { job.flags.insert(.reached) }
        }
    }

    /// Another try of the same record finished the recipient: its mark tells about the devices that do not end here.
    func takeEnds(of mark: MarkCounts?, into job: RecipientJob) {
        // That mark also has the entries from the record of `carillon.parked`.
        if job.devices.isEmpty { job.journal = Journal() }
        guard let mark, job.event.counts(mark) else { return }
        let open = job.devices.lazy.filter(\.isOpen).map { MarkCounts.short($0.route.device) }
        var here = open + job.journal.entries.lazy.filter { $0.traits.contains(.counts) }.map(\.shortDevice)
        for outcome in mark.outcomes {
            if let place = here.firstIndex(of: outcome.device) {
                here.remove(at: place)
            } else if let entry = Journal.Entry(mark.counted(outcome), nowMs: shard.nowMs) {
                job.journal.append(entry)
            }
        }
    }

    // MARK: Statistics
    // The ends count with their event, once its record is settled.

    /// The recipient has ended: its ends count once. A recipient that waits in `carillon.parked` has taken its journal there.
    func count(_ job: RecipientJob) {
        let event = job.event
        if event.counted.subject != nil {
            job.journal.forEach { entry in
                guard entry.pointee.traits.contains(.counts), let kind = CountedOutcome.Kind(entry.pointee.verdict)
                else { return }
                let credential = shard.statistics.number(ofCredential: entry.pointee.credential, of: event.app)
                event.counted.tally.add(
                    CountedOutcome(
                        hour: entry.pointee.atMs / StatisticsKey.hourMs, kind, event.pushKind, event.lane,
                        reason: entry.pointee.countedReason, credential: credential, isSent: entry.pointee.isSent))
            }
        }
        job.journal = Journal()
    }

    /// The outcome of a badge update, which no record of the events topic has: it counts at once.
    private func countBadge(_ record: borrowing OutcomeRecord, of app: AppContext) {
        guard let kind = CountedOutcome.Kind(record.verdict) else { return }
        var counted = RecordCounts(subject: shard.statistics.subject(of: app, name: "badge", task: nil))
        counted.tally.add(
            CountedOutcome(
                hour: shard.nowMs / StatisticsKey.hourMs, kind, .badge, .silent,
                reason: CountedReason.code(record.label),
                credential: shard.statistics.number(ofCredential: record.credential),
                isSent: record.attempts > 0 || kind == .accepted))
        shard.statistics.settled(counted, at: .none)
    }
}

/// Reasons that only a trace has.
enum TraceWait: String, CaseIterable {
    /// A delivery without a timely ack; the decision was made again.
    case noAck = "no_ack"
    /// The user's desktop comes first.
    case desktopFirst = "desktop_first"
    /// The window of a burst is open.
    case burst
}

extension DeviceWork {
    fileprivate var isPush: Bool { if case .apns = route.way { true } else { false } }
    fileprivate var showsNoAlerts: Bool { route.way == .none(.alertsOff) }
}

extension RecipientJob {
    /// Nothing but devices that show no alerts is left: their tokens are of no use, as none would be.
    fileprivate var showsNoAlerts: Bool {
        devices.contains(where: \.showsNoAlerts) && devices.allSatisfy { $0.showsNoAlerts || $0.phase == .replaced }
    }
}

extension RecipientJob {
    /// The outcome of the device in the mark of another worker, if that worker had the same record. It has the short name of the
    /// credential in place of its number.
    func outcome(ofDevice index: Int, in mark: MarkCounts?) -> CountedOutcome? {
        guard let mark, event.counts(mark) else { return nil }
        let device = MarkCounts.short(devices[index].route.device)
        return mark.outcomes.first { $0.device == device }.map(mark.counted)
    }
}

extension EventJob {
    /// The name of its record in marks.
    fileprivate var recordName: UInt16 { parked?.place.name ?? origin?.place.name ?? 0 }

    /// Its record, or the one that it was parked from, made the mark.
    fileprivate func counts(_ mark: MarkCounts) -> Bool {
        if mark.record == recordName { return true }
        guard let record = parked?.record else { return false }
        if record.formerNames.contains(mark.record) { return true }
        return record.facts.contains(.countsSource)
            && mark.record == record.event.chunkName
                ?? RecordPlace.name(.events, record.source.partition, record.source.offset)
    }

    fileprivate var pushKind: CountedOutcome.PushKind {
        if activity != nil { return .liveActivity }
        return lane == .urgent ? .voip : lane == .silent ? .background : .alert
    }
}
