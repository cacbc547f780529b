import APNs
import EventLoop
import JSON
import PushCore
import Telemetry

/// Step 17: what APNs said, and what follows for the token, the user and the operator.
extension Pipeline: APNsClientDelegate {
    /// Taken at the end of the turn, with all others that came in it.
    func apns(_ client: APNsClient, didFinish tag: UInt64, outcome: PushOutcome, attempts: Int) {
        guard let tag = Tag(tag) else { return }
        if finished.isEmpty { loop.atEndOfTurn { [weak self] in self?.takeFinished() } }
        finished.append(FinishedPush(tag: tag, outcome: outcome, attempts: attempts))
    }

    private func takeFinished() {
        finished.takeAll(take)
        recorded.takeAll(sealIfEnded)
    }

    private func take(_ push: FinishedPush) {
        let tag = push.tag
        if tag.stage == .clearPush { return didFinishClear(tag, push.outcome, attempts: push.attempts) }
        guard let job = job(tag.ref) else { return }
        let index = Int(tag.index)
        guard job.isPushing(index), let bound = job.devices[index].token else { return }
        let hasLane = !job.devices[index].isHeld
        let latency = loop.nowNanos &- job.devices[index].startedNanos
        let ending = Ending(push.outcome, token: bound, isForced: job.isForced)
        end(job, index, verdict: ending.verdict, reason: ending.reason) { record in
            record.label = ending.label
            record.apnsID = ending.apnsID
            record.status = ending.status
            record.badge = job.devices[index].badge
            record.attempts = push.attempts
            record.latencyMs = Int64(latency / 1_000_000)
        }
        let isAccepted = ending.verdict == .accepted
        if isAccepted {
            job.flags.insert(.accepted)
            noteAccepted(job, index)
            metrics.accepted(job.event.origin?.kafkaMs ?? 0, nowMs: loop.wallMs)
        }
        weigh(ending, of: bound, job)
        deliverCopy(job, index, accepted: isAccepted, alert: !isAccepted)
        concludeIfEnded(job)
        recorded.append(job)
        if hasLane { leaveLane(bound.record.hex) }
    }

    func apns(_ client: APNsClient, didHold tag: UInt64) {
        guard let tag = Tag(tag), tag.stage == .push, let job = job(tag.ref) else { return }
        hold(job, Int(tag.index))
    }

    func apns(_ client: APNsClient, stateChanged event: APNsClientEvent) {
        // The client logs its own news.
        if event == .hasRoom { retryStalled(client) }
    }

    /// A full client has room again.
    private func retryStalled(_ client: APNsClient) {
        for app in apps.values {
            for waiting in app.clients where waiting.apns === client {
                let devices = waiting.stalled
                waiting.stalled = []
                for device in devices { makeReady(device) }
            }
        }
    }

    /// While other devices of the user are open, a crash must not push this one again; and a started Live Activity
    /// runs from now. Best effort: what is lost with the connection costs at most one push too many.
    private func noteAccepted(_ job: RecipientJob, _ index: Int) {
        let now = loop.wallMs
        let app = job.event.app.id
        // Without a claim there is no mark that this could be written to.
        if job.open > 0 || job.flags.contains(.unmarked), !job.flags.contains(.unclaimed) {
            try? store.accepted(
                app: app, uid: job.recipient.uid, job.event.subject, device: job.devices[index].route.device,
                nowMs: now, tag: job.tag(.note))
        }
        if let activityID = job.event.begunActivityID {
            try? store.beginActivity(
                app: app, uid: job.recipient.uid, activityID: activityID, atMs: now, tag: job.tag(.note))
        }
    }

    /// A dead token goes, unless so many go for the same cause that the cause is more likely ours.
    private func weigh(_ ending: Ending, of token: BoundToken, _ job: RecipientJob) {
        let app = job.event.app
        let nowMs = Int64(loop.nowNanos / 1_000_000)
        guard let cause = ending.removal else {
            if ending.status != nil { app.brake.answered(nowMs: nowMs) }
            return
        }
        guard case .withhold(let isFirst) = app.brake.refused(cause, nowMs: nowMs) else {
            return remove(token, of: job, ending)
        }
        app.metrics.removalWithheld(cause.label)
        guard isFirst else { return }
        app.metrics.brake(cause.label, isEngaged: true)
        log.error(
            "so many tokens are dead for one cause that none is removed: is the topic, environment or key right?",
            ["app": .string(app.id), "cause": .string(cause.label)])
    }

    /// Once a second: removals that may go on.
    func releaseBrakes() {
        let nowMs = Int64(loop.nowNanos / 1_000_000)
        for app in apps.values {
            for cause in app.brake.release(nowMs: nowMs) {
                app.metrics.brake(cause.label, isEngaged: false)
                log.warning(
                    "dead tokens are removed again", ["app": .string(app.id), "cause": .string(cause.label)])
            }
        }
    }

    /// A dead token leaves its user, compared once more in Redis, and the backend is told.
    private func remove(_ token: BoundToken, of job: RecipientJob, _ ending: Ending) {
        let app = job.event.app
        app.metrics.tokenRemoved(ending.label)
        // Lost with the connection, the token is refused and removed with the next push.
        try? store.removeToken(
            app: app.policy.id, uid: job.recipient.uid, token: token, tag: job.tag(.note), ownerTag: job.tag(.note))
        var writer = JSONWriter(reservingCapacity: 320)
        writer.beginObject()
        writer.member("v", 1)
        writer.member("app", app.policy.id)
        writer.member("uid", job.recipient.uid)
        writer.member("device", token.device)
        writer.member("token", token.record.hex)
        writer.member("env", token.record.environment.rawValue)
        writer.member("topic", token.record.topic)
        writer.member("cause", ending.reason)
        if let timestampMs = ending.timestampMs { writer.member("timestamp_ms", timestampMs) }
        writer.member("bound_ms", token.record.boundMs)
        writer.member("at_ms", loop.wallMs)
        writer.endObject()
        job.unackedRecords += 1
        outbox?.send(topics.feedback, key: token.record.hex, value: writer, tag: job.tag(.record))
    }
}

/// What APNs said of one push.
struct FinishedPush {
    var tag: Tag
    var outcome: PushOutcome
    var attempts: Int
}

/// APNs' outcome in the words of `push.results`.
struct Ending {
    var verdict: Verdict
    var reason: String
    /// The reason as a metric's label: of a closed set.
    var label: String
    var status: Int?
    var apnsID: PushID?
    var timestampMs: Int64?
    /// Why the token goes; nil: it stays.
    var removal: RemovalBrake.Cause?

    init(_ outcome: PushOutcome, token: BoundToken, isForced: Bool) {
        switch outcome {
        case .accepted(let id):
            self.init(.accepted, (isForced ? Reason.forced : .ok).rawValue)
            status = 200
            apnsID = PushID(high: id.high, low: id.low)
        case .rejected(let status, let reason, let timestampMs):
            self.init(.rejected, reason.text, label: reason.label)
            self.status = status
            self.timestampMs = timestampMs
            switch outcome.tokenFate {
            case .keep: break
            case .remove: removal = reason.text == "DeviceTokenNotForTopic" ? .notForTopic : .badDeviceToken
            case .removeIfOlder: removal = token.record.isDead(sinceMs: timestampMs) ? .gone : nil
            }
        case .expired:
            self.init(.expired, Reason.expired.rawValue)
        case .deferred(let status, let reason, _):
            self.init(.rejected, reason.text, label: reason.label)
            self.status = status
        case .superseded:
            self.init(.suppressed, Reason.coalesced.rawValue)
        case .unprocessed:
            self.init(.rejected, "Unprocessed")
        case .unknown(_, let id):
            // Tried again as often as allowed, with the same apns-id: it may have arrived or not.
            self.init(.rejected, "Unanswered")
            apnsID = PushID(high: id.high, low: id.low)
        }
    }

    private init(_ verdict: Verdict, _ reason: String, label: String? = nil) {
        self.verdict = verdict
        self.reason = reason
        self.label = label ?? reason
    }
}
