import APNs
import EventLoop
import JSON
import Payload
import PushCore
import Telemetry

/// What leaves: pushes, deliveries over the long connection, records of outcomes.
extension Pipeline {
    // MARK: - Pushes

    /// Steps 13-16 for one device: the second look, then its turn among the device's pushes.
    func startPush(_ job: RecipientJob, _ index: Int, token: Int) {
        guard job.recipient.tokens.indices.contains(token) else {
            return end(job, index, verdict: .suppressed, reason: Reason.noToken.rawValue)
        }
        if let reason = recheck(job, token: token) {
            end(job, index, verdict: reason == .expired ? .expired : .suppressed, reason: reason.rawValue)
            return leaveToConnection(job, index, reason)
        }
        let bound = job.recipient.tokens[token]
        if job.event.app.coalesceNanos > 0 {
            job.devices[index].token = bound
            if joinsBurst(job, index) { return }
        }
        push(job, index, bound, isChecked: true)
    }

    /// - Parameter isChecked: the claim has just said that nothing stands against it; else it looks once more first.
    func push(_ job: RecipientJob, _ index: Int, _ bound: BoundToken, isChecked: Bool) {
        job.devices[index].pushID = job.pushIDPrefix.id(tokenHex: bound.record.hex)
        job.devices[index].token = bound
        job.devices[index].badge = job.claim.flatMap { badge($0, of: job) }
        if !job.devices[index].isMerging { job.event.unsent += 1 }
        job.devices[index].state = .pushing
        job.devices[index].startedNanos = loop.nowNanos
        job.devices[index].checkedNanos = isChecked ? loop.nowNanos : 0
        let device = DeviceRef(job: job.ref, device: index)
        if lanes.enter(bound.record.hex, device) { submit(job, index) }
    }

    /// Step 15, from what the claim saw a moment ago.
    private func recheck(_ job: RecipientJob, token: Int) -> Reason? {
        Recheck(
            isRead: job.claim?.isRead ?? false, isRevoked: job.claim?.isRevoked ?? false,
            isTokenOwned: !job.lostTokens.contains(token)
        ).reason(expireAtMs: job.event.expiresAtMs, now: loop.wallMs)
    }

    /// The number beside an alert: capped, and 0 is left out (contract section 5; a 0 would clear the app's alerts).
    func badge(_ claim: ClaimReply, of job: RecipientJob) -> Int64? {
        guard job.event.showsBadge, let badge = claim.badge else { return nil }
        return BadgeRule.besideAlert(badge, cap: job.event.app.policy.badgeCap)
    }

    /// The device's turn has come.
    func submit(_ job: RecipientJob, _ index: Int) {
        guard job.isPushing(index) else { return }
        guard job.event.expiresAtMs > loop.wallMs else {
            return stop(job, index, .expired)
        }
        let app = job.event.app
        let device = DeviceRef(job: job.ref, device: index)
        // The common case goes straight on.
        if app.paced.isEmpty, app.rate.isUnlimited { makeReady(device) } else { admit(device, of: app) }
    }

    /// Its push is made and sent at the end of the turn, with all others that came in it.
    func makeReady(_ device: DeviceRef) {
        if ready.isEmpty { loop.atEndOfTurn { [weak self] in self?.dispatchReady() } }
        ready.append(device)
    }

    private func dispatchReady() {
        ready.takeAll(dispatch)
        made.takeAll(send)
    }

    /// As fast as `limits.rate` lets it.
    func admit(_ device: DeviceRef, of app: AppContext) {
        if app.paced.isEmpty {
            guard let dueNanos = app.rate.take(nowNanos: loop.nowNanos) else { return makeReady(device) }
            pace(app, dueNanos)
        }
        app.paced.append(device)
    }

    /// On with a device, whatever it is that goes there.
    private func dispatch(_ device: DeviceRef) {
        if device.isClear {
            if let job = clearJob(device.job) { look(job, device.device) }
        } else if let job = job(device.job) {
            make(job, device.device)
        }
    }

    /// Several go at once: each pause is long enough for a handful.
    private func pace(_ app: AppContext, _ dueNanos: UInt64) {
        schedule(.pace(app), dueNanos: max(dueNanos, loop.nowNanos &+ 5_000_000))
    }

    /// What `limits.rate` held back goes, as far as it may.
    func goOn(_ app: AppContext) {
        var gone = 0
        while gone < app.paced.count {
            if let dueNanos = app.rate.take(nowNanos: loop.nowNanos) {
                pace(app, dueNanos)
                break
            }
            gone += 1
            makeReady(app.paced[gone - 1])
        }
        app.paced.removeFirst(gone)
    }

    private func make(_ job: RecipientJob, _ index: Int) {
        guard job.isPushing(index), let token = job.devices[index].token else { return }
        if needsLook(job, index) { return lookAgain(job, index) }
        guard let client = job.event.app.client(for: token), let device = DeviceToken(token.record.hex) else {
            return stop(job, index, .noToken)
        }
        guard let content = content(of: job, index, token) else { return stop(job, index, .payloadTooLarge) }
        let push = Push(
            tag: job.tag(.push, index), token: device, headers: content.headers, id: content.id,
            payload: content.payload, expiresAtMs: job.event.expiresAtMs, lane: job.event.lane,
            isSuspect: job.event.app.suspects.isSuspect(boundMs: token.record.boundMs, nowMs: loop.wallMs))
        made.append(MadePush(job: job, device: index, client: client, push: push))
    }

    /// Into the APNs client's hands.
    private func send(_ made: MadePush) {
        let (job, index) = (made.job, made.device)
        guard job.isPushing(index) else { return }
        switch made.client.apns.send(made.push) {
        case .taken: taken(job, index)
        case .held:
            hold(job, index)
            taken(job, index)
        case .full: made.client.stalled.append(DeviceRef(job: job.ref, device: index))
        // The process ends: the record is not settled and comes again.
        case .closed: break
        case .unfit(let fault): unfit(job, index, fault)
        }
    }

    /// The device backs off: nothing of it is in flight, so that the next push may come and take this one's place.
    func hold(_ job: RecipientJob, _ index: Int) {
        guard job.isPushing(index), !job.devices[index].isHeld,
            let token = job.devices[index].token?.record.hex
        else { return }
        job.devices[index].isHeld = true
        leaveLane(token)
    }

    /// The APNs client has the push, or it ended without one: less has to be kept.
    func taken(_ job: RecipientJob, _ index: Int) {
        guard index < job.devices.count, !job.devices[index].isSent else { return }
        job.devices[index].isSent = true
        job.event.unsent -= 1
        dropWhatIsSent(job)
    }

    /// What nothing asks for any more once a recipient's pushes are all with the client.
    func dropWhatIsSent(_ job: RecipientJob) {
        guard job.step == .sending, job.decision != nil,
            job.devices.allSatisfy({ $0.isSent || $0.state == .superseded || $0.state == .ended })
        else { return }
        job.recipient = Recipient(uid: job.recipient.uid)
        job.decision = nil
        job.claim = nil
        job.event.dropContentIfSent()
    }

    /// Nil: too large, or with headers that cannot be sent.
    private func content(
        of job: RecipientJob, _ index: Int, _ token: BoundToken
    ) -> (headers: PushHeaders, id: PushID, payload: [UInt8])? {
        let merged = job.devices[index].merged
        guard let id = job.devices[index].pushID, let headers = job.event.headers(topic: token.record.topic, merged),
            let payload = job.event.payload(
                uid: job.recipient.uid, settings: job.recipient.settings, token: token, isForced: job.isForced,
                badge: job.devices[index].badge, id: id, mergedCount: merged?.count ?? job.event.digest?.count ?? 0)
        else { return nil }
        return (headers, PushID(high: id.high, low: id.low), payload)
    }

    /// Ours to prevent, so it is told.
    private func unfit(_ job: RecipientJob, _ index: Int, _ fault: PushFault) {
        log.error("a push was unfit to be sent", ["fault": .string(fault.text), "app": .string(job.event.app.id)])
        if case .payloadTooLarge = fault {
            stop(job, index, .payloadTooLarge)
        } else {
            end(job, index, verdict: .rejected, reason: "Unfit")
            deliverCopy(job, index, accepted: false, alert: true)
            leaveLane(job.devices[index].token?.record.hex ?? "")
            concludeIfEnded(job)
        }
    }

    /// Ends a device that has the lane without a push.
    func stop(_ job: RecipientJob, _ index: Int, _ reason: Reason) {
        end(job, index, verdict: reason == .expired ? .expired : .suppressed, reason: reason.rawValue)
        leaveToConnection(job, index, reason)
        leaveLane(job.devices[index].token?.record.hex ?? "")
        concludeIfEnded(job)
    }

    /// The device is free: its next push goes.
    func leaveLane(_ token: String) {
        guard lanes.leave(token) else { return }
        while let turn = lanes.nextTurn() {
            if turn.item.isClear {
                if let job = clearJob(turn.item.job) { submit(job, turn.item.device) } else { lanes.pass(turn) }
                continue
            }
            guard let job = job(turn.item.job), job.isPushing(turn.item.device) else {
                lanes.pass(turn)
                continue
            }
            submit(job, turn.item.device)
        }
    }

    // MARK: - Deliveries

    func deliver(_ job: RecipientJob, _ index: Int, presence: Int, alert: Bool, ackWithinMs: Int64?) {
        let target = job.recipient.presence[presence]
        job.devices[index].connection = LiveConnection(target)
        job.devices[index].startedNanos = loop.nowNanos
        add(
            DeliveryTarget(
                uid: job.recipient.uid, device: target.device, connectionEpoch: target.connectionEpoch, alert: alert,
                pushed: false, ackByMs: ackWithinMs.map { loop.wallMs &+ $0 }), gateway: target.gateway, of: job)
        if let ackWithinMs {
            let dueNanos = loop.nowNanos &+ UInt64(max(0, ackWithinMs)) &* 1_000_000
            job.devices[index].state = .awaitingAck(dueNanos: dueNanos)
        } else {
            // Nobody waits for an ack of what raises no alert. A denied recipient has its record already.
            end(
                job, index, verdict: .online, reason: Reason.ok.rawValue,
                isRecorded: job.decision?.finalReason == nil)
        }
    }

    /// Strategy 4, and nothing was pushed: the live device still gets the message, unless it expired.
    private func leaveToConnection(_ job: RecipientJob, _ index: Int, _ reason: Reason) {
        if reason == .expired { return }
        // What is read or recalled raises no alert any more.
        deliverCopy(job, index, accepted: false, alert: reason != .alreadyRead && reason != .revoked)
    }

    /// Strategy 4: the live device gets a copy after the push's outcome.
    func deliverCopy(_ job: RecipientJob, _ index: Int, accepted: Bool, alert: Bool) {
        guard case .apns(_, .some) = job.devices[index].route.way, let target = job.devices[index].connection else {
            return
        }
        add(
            DeliveryTarget(
                uid: job.recipient.uid, device: target.device, connectionEpoch: target.epoch,
                alert: alert, pushed: accepted, pushID: accepted ? job.devices[index].pushID : nil),
            gateway: target.gateway, of: job)
        flushDeliveries(of: job.event)
    }

    private func add(_ target: DeliveryTarget, gateway: String, of job: RecipientJob) {
        job.flags.insert(.hasDelivery)
        let event = job.event
        let index =
            event.deliveries.firstIndex { $0.gateway == gateway }
            ?? {
                event.deliveries.append(EventJob.GatewayBatch(gateway: gateway, targets: []))
                return event.deliveries.count - 1
            }()
        event.deliveries[index].targets.append(target)
        if event.deliveries[index].targets.count >= limits.deliveryTargetsMax {
            produce(event.deliveries.remove(at: index), of: event)
        }
    }

    /// One record per gateway, when everyone of the event is decided; a group whose members wait for room sends each second.
    func flushDeliveries(of event: EventJob, evenIfUndecided: Bool = false) {
        guard !event.deliveries.isEmpty, (event.undecided == 0 && event.audience.isEmpty) || evenIfUndecided
        else { return }
        let batches = event.deliveries
        event.deliveries = []
        for batch in batches { produce(batch, of: event) }
    }

    private func produce(_ batch: EventJob.GatewayBatch, of event: EventJob) {
        var writer = JSONWriter(reservingCapacity: event.raw.count + 160 * batch.targets.count + 64)
        DeliveryTarget.writeRecord(
            of: batch.targets, gateway: batch.gateway, app: event.app.id, event: event.raw, to: &writer)
        event.holds += 1
        event.unackedDeliveries += 1
        event.app.metrics.deliveries.add(UInt64(batch.targets.count))
        outbox?.send(topics.deliveries, key: batch.gateway, value: writer, tag: event.tag(.delivery))
    }

    // MARK: - Records

    /// Who is not finished before the broker has the record.
    enum RecordHolder {
        case recipient(RecipientJob)
        case event(EventJob)
    }

    func write(_ record: OutcomeRecord, of job: RecipientJob) {
        if !traces.isOff { note(record, of: job) }
        write(record, of: job.event, holder: .recipient(job))
    }

    /// Whether the configuration wants it.
    func isWritten(_ record: OutcomeRecord) -> Bool {
        let isFailure = record.verdict == .rejected || record.verdict == .expired
        return results == .all || (results == .failures && isFailure)
    }

    func write(_ record: OutcomeRecord, of event: EventJob, holder: RecordHolder) {
        event.app.metrics.decided(record.verdict, record.label)
        guard isWritten(record) else { return }
        recordWriter.clear()
        beginRecord(of: event)
        record.finish(in: &recordWriter, atMs: loop.wallMs)
        let tag: UInt64
        switch holder {
        case .recipient(let job):
            job.unackedRecords += 1
            tag = job.tag(.record)
        case .event(let event):
            event.holds += 1
            tag = event.tag(.eventRecord)
        }
        outbox?.send(topics.results, key: record.uid, value: recordWriter, tag: tag)
    }

    /// Of many recipients the beginning is written once.
    private func beginRecord(of event: EventJob) {
        if let head = event.recordHead { return recordWriter.raw(head) }
        OutcomeRecord.begin(in: &recordWriter, app: event.app.id, eventID: event.id, msgID: event.msgID)
        if event.hasManyRecipients { event.recordHead = recordWriter.bytes }
    }

    /// The broker has a record (or it was given up by name).
    func recordSettled(_ bits: UInt64) {
        guard let tag = Tag(bits) else { return }
        switch tag.stage {
        case .record:
            guard let job = job(tag.ref) else { return }
            job.unackedRecords -= 1
            if job.unackedRecords == 0 { concludeIfEnded(job) }
        case .eventRecord:
            guard let event = event(tag.ref) else { return }
            release(event)
        case .delivery:
            guard let event = event(tag.ref) else { return }
            deliverySettled(event)
        case .clearRecord:
            if let job = clearJob(tag.ref) { clearRecordSettled(job) }
        case .deadLetter:
            guard let change = change(tag.ref) else { return }
            done(change)
        default:
            break
        }
    }

    private func deliverySettled(_ event: EventJob) {
        event.unackedDeliveries -= 1
        if event.areDeliveriesSettled {
            let waiting = event.waitingForDeliveries
            event.waitingForDeliveries = []
            for case let job? in waiting.map(job) { concludeIfEnded(job) }
        }
        release(event)
    }
}
