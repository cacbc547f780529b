import EventLoop
import PushCore
import Redis
import Telemetry

/// The decision, the claim that makes it ours, and what follows for each device.
extension Pipeline {
    func decide(_ job: RecipientJob) {
        voidPresence(of: job)
        let now = loop.wallMs
        noteLiveness(of: job, nowMs: now)
        let decision: Decision
        if let digest = job.event.digest {
            guard let told = decideDigest(digest, of: job) else { return leaveUndone(job) }
            decision = told
        } else if let message = job.event.message {
            decision = message.read { message in
                PushCore.decide(
                    message, sentMs: job.event.sentMs, for: job.recipient, policy: job.event.app.policy,
                    zones: zones, now: now, facts: &job.facts)
            }
        } else if let activity = job.event.activity?.value {
            decision = PushCore.decide(
                activity, sentMs: job.event.sentMs, for: job.recipient, startedMs: job.activityStartMs,
                now: now)
        } else {
            return done(job)
        }
        job.decision = decision
        if decision.alert == .allow(forced: true) { job.flags.insert(.forced) } else { job.flags.remove(.forced) }
        // Expired: nothing was done, so there is nothing to mark.
        if decision.alert == .deny(.expired) { expire(job) } else { claim(job) }
    }

    /// Nothing is to be done and nothing to be recorded.
    private func leaveUndone(_ job: RecipientJob) {
        decided(job)
        job.step = .sending
        job.flags.insert(.unmarked)
        concludeIfEnded(job)
    }

    /// No lease or another epoch: every presence on that gateway is void. And a connection that did not acknowledge.
    private func voidPresence(of job: RecipientJob) {
        leases.apply(to: &job.recipient, nowNanos: loop.nowNanos)
        for suspect in job.suspects {
            for index in job.recipient.presence.indices
            where job.recipient.presence[index].device == suspect.device
                && job.recipient.presence[index].connectionEpoch == suspect.connectionEpoch
            {
                job.recipient.presence[index].isSuspect = true
            }
        }
    }

    /// In a later round, each device that still waited expires; else the user does, once, with nothing claimed.
    private func expire(_ job: RecipientJob) {
        decided(job)
        flushDeliveries(of: job.event)
        if job.devices.isEmpty {
            write(OutcomeRecord(uid: job.recipient.uid, verdict: .expired, reason: .expired), of: job)
            // Nothing was claimed, so a mark is needed only for what it tells.
            if job.trace == nil { job.flags.insert(.unmarked) }
        }
        job.step = .sending
        for index in job.devices.indices where job.devices[index].isWaiting {
            end(job, index, verdict: .expired, reason: Reason.expired.rawValue)
        }
        concludeIfEnded(job)
    }

    /// Lets go of what only waits; pushes that are out stay.
    func supersedeWaiting(_ job: RecipientJob) {
        for index in job.devices.indices where job.devices[index].isWaiting { supersede(job, index) }
    }

    func didClaim(_ job: RecipientJob) {
        if job.flags.contains(.unclaimed) { recallUnclaimed(job) }
        guard let claim = job.claim else { return }
        if claim.tokenVersion != job.tokenVersion, claim.state != .finished, !job.flags.contains(.reread) {
            // A token was bound or unbound a moment ago: the routes may be wrong. Claiming again counts nothing.
            job.flags.insert(.reread)
            return read(job)
        }
        if claim.state != .finished, !takesPair(job) { return }
        if claim.state == .resume, job.devices.isEmpty {
            job.flags.insert(.resumed)
            // What an earlier try delivered may be acknowledged: a second delivery would alert twice.
            if !job.flags.contains(.knowsAcks), job.event.message != nil {
                job.awaiting = 1
                return askAcks(job)
            }
        }
        if claim.state == .finished { endFinished(job) } else { route(job) }
    }

    /// All was done before: nothing more.
    func endFinished(_ job: RecipientJob) {
        decided(job)
        metrics.duplicates.add()
        flushDeliveries(of: job.event)
        // In a later round another worker may have finished it; what is out still comes back to its device's lane.
        supersedeWaiting(job)
        job.step = .sending
        job.flags.insert(.unmarked)
        concludeIfEnded(job)
    }

    /// False: the same pair is in work here already, for an earlier delivery of the event. The claim cannot tell that
    /// from a pair that a crash left behind, so this one waits for the end of the other, and finds it finished.
    func takesPair(_ job: RecipientJob) -> Bool {
        if job.flags.contains(.holdsPair) { return true }
        // Mostly nobody holds it, so it is taken with one look, and given back where somebody does.
        guard let waiting = pairs.updateValue([], forKey: job.pair) else {
            job.flags.insert(.holdsPair)
            return true
        }
        pairs[job.pair] = waiting + [job.ref]
        // The others of this event must not wait for this one.
        flushDeliveries(of: job.event, evenIfUndecided: true)
        return false
    }

    private func leavePair(_ job: RecipientJob) {
        guard job.flags.contains(.holdsPair) else { return }
        for waiting in pairs.removeValue(forKey: job.pair) ?? [] {
            schedule(.retry(waiting), dueNanos: loop.nowNanos)
        }
    }

    /// The first decision of a recipient brings the event's deliveries a step nearer.
    func decided(_ job: RecipientJob) {
        guard !job.flags.contains(.decided) else { return }
        job.flags.insert(.decided)
        job.event.undecided -= 1
    }

    /// Step 11: each device on its way. A later round leaves alone what ended, is out, or may still be acknowledged.
    func route(_ job: RecipientJob) {
        decided(job)
        job.step = .sending
        guard let decision = job.decision else { return }
        for index in job.devices.indices where job.devices[index].state == .held { supersede(job, index) }
        if let reason = decision.finalReason { recordWithoutDevice(job, reason) }
        noteHeldBack(job)
        let first = job.devices.count
        // A device's index travels in a byte of its tags; nobody has so many devices.
        for route in decision.routes where !job.isTaken(route.device) && job.devices.count < 255 {
            job.devices.append(DeviceWork(route: route))
        }
        job.open += job.devices.count - first
        for index in first..<job.devices.count where !endAcknowledged(job, index) { begin(job, index) }
        // A push that ended at once may have been the last: then no device is left here.
        for index in job.devices.indices.dropFirst(first) where job.devices[index].isAcknowledged {
            endPhonesBehindDesktop(job, index)
        }
        dropWhatIsSent(job)
        scheduleAckLook(job)
        flushDeliveries(of: job.event)
        concludeIfEnded(job)
    }

    /// A route that a later round replaces.
    func supersede(_ job: RecipientJob, _ index: Int) {
        if job.devices[index].isMerging { job.event.unsent -= 1 }
        job.devices[index].state = .superseded
        job.open -= 1
    }

    /// A deny of steps 6-9, or `no_token`: one record for the user, once.
    private func recordWithoutDevice(_ job: RecipientJob, _ reason: Reason) {
        guard !job.flags.contains(.recordedWithoutDevice) else { return }
        job.flags.insert(.recordedWithoutDevice)
        write(OutcomeRecord(uid: job.recipient.uid, verdict: .suppressed, reason: reason), of: job)
        if reason == .noToken { offerSMS(job, reason: "no_token") }
    }

    /// True: the device has the message, as it said itself.
    private func endAcknowledged(_ job: RecipientJob, _ index: Int) -> Bool {
        if job.acknowledged.isEmpty { return false }
        guard job.acknowledged.contains(job.devices[index].route.device) else { return false }
        switch job.devices[index].route.way {
        case .connection(let presence, _, .some):
            job.devices[index].connection = LiveConnection(job.recipient.presence[presence])
        case .apns, .hold: break
        case .connection(_, _, nil), .none: return false
        }
        job.devices[index].isAcknowledged = true
        end(job, index, verdict: .online, reason: Reason.acked.rawValue)
        return true
    }

    private func begin(_ job: RecipientJob, _ index: Int) {
        switch job.devices[index].route.way {
        case .apns(let token, let copyTo):
            if let copyTo {
                job.devices[index].connection = LiveConnection(job.recipient.presence[copyTo])
                job.event.hasConnections = true
            }
            startPush(job, index, token: token)
        case .connection(let presence, let alert, let ackWithinMs):
            job.event.hasConnections = true
            deliver(job, index, presence: presence, alert: alert, ackWithinMs: ackWithinMs)
        case .hold(let token, let holdMs):
            job.event.hasConnections = true
            hold(job, index, token: token, holdMs: holdMs)
        case .none(let reason):
            end(job, index, verdict: .suppressed, reason: reason.rawValue)
        }
    }

    // MARK: - Ends

    /// One device has its end: a record of it, and with the last one the recipient's.
    func end(
        _ job: RecipientJob, _ index: Int, verdict: Verdict, reason: String, isRecorded: Bool = true,
        _ fill: (inout OutcomeRecord) -> Void = { _ in }
    ) {
        guard job.devices[index].state != .ended else { return }
        let wasPushing = job.devices[index].state == .pushing || job.devices[index].isMerging
        job.devices[index].state = .ended
        job.open -= 1
        if wasPushing { taken(job, index) }
        if verdict != .accepted { noteFailure(of: job, verdict: verdict, reason: reason) }
        let merged = job.devices[index].merged.take()
        defer { if let merged { follow(merged, verdict) } }
        guard isRecorded else { return }
        var record = OutcomeRecord(
            uid: job.recipient.uid, device: job.devices[index].route.device, verdict: verdict, reason: reason)
        record.pushID = job.devices[index].pushID
        fill(&record)
        write(record, of: job)
    }

    /// All devices ended, all records with the broker, the deliveries too: then the mark that stops a redelivery.
    func concludeIfEnded(_ job: RecipientJob) {
        let isUnmarked = job.flags.contains(.unmarked)
        guard job.step == .sending, job.open == 0 else { return }
        offerSMSIfAllFailed(job)
        guard job.unackedRecords == 0 else { return }
        if job.flags.contains(.hasDelivery), !job.event.areDeliveriesSettled {
            job.event.waitingForDeliveries.append(job.ref)
            return
        }
        if isUnmarked { done(job) } else { finish(job) }
    }

    func finish(_ job: RecipientJob) {
        job.step = .finishing
        job.hasFailed = false
        let isMarked = !job.flags.contains(.unmarked)
        if isMarked, job.flags.contains(.unclaimed) { return payOwed(job) }
        // The rest is left to the partition's next owner, and so is the trace.
        guard isMarked else { return done(job) }
        job.awaiting = 1 + (job.heldUntilMs == nil ? 0 : 2)
        sendHeldBack(job)
        let mark = job.mark ?? finishMark(of: job)
        ask(job) { (store) throws(RedisFault) in try store.finish(mark, tag: job.tag(.finish)) }
    }

    private func finishMark(of job: RecipientJob) -> PreparedCommand {
        store.finishMark(
            app: job.event.app.id, uid: job.recipient.uid, job.event.subject, nowMs: loop.wallMs,
            trace: job.trace.map { FinishTrace(bytes: $0.bytes, seconds: traces.lifeSeconds) })
    }

    /// Nothing but records is waited for: the mark that follows them is put together now, while all that it tells is in
    /// the cache, and the rest goes. To be called last: `devices` is empty afterwards.
    func sealIfEnded(_ job: RecipientJob) {
        guard job.step == .sending, job.open == 0, job.unackedRecords > 0, job.mark == nil, job.burst == nil,
            job.flags.isDisjoint(with: [.unmarked, .hasDelivery, .unclaimed])
        else { return }
        job.keepOnly(finishMark(of: job))
    }

    /// The recipient is finished; the slot is free for another.
    func done(_ job: RecipientJob) {
        if job.flags.contains(.owing) { owing -= 1 }
        leavePair(job)
        recipients.remove(slot: job.slot)
        if job.burst != nil { leaveBurst(job) }
        release(job.event)
        expandAtEndOfTurn()
    }
}
