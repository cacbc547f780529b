// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import EventLoop
import PushCore
import Redis
import Telemetry

/// Step 17: APNs' answer, and its consequences for the token, the user and the operator.
extension Dispatcher {
    func didEnd(_ push: EndedPush) {
        let index = Int(push.tag.index)
        guard let job = work.recipient(push.tag.ref), job.isPushing(index),
            let ended = job.devices[index].pushParts()
        else { return shard.late() }
        let bound = ended.token
        if case .deferred(_, _, let retryAfterMs) = push.outcome, job.mayPark {
            park(job, index, .retryAfter, dueMs: shard.steadyMs &+ retryAfterMs)
            return endIfComplete(job)
        }
        let latency = shard.nowNanos &- ended.startedNanos
        let ending = Ending(push.outcome, token: bound, isForced: job.isForced)
        let isAccepted = ending.verdict == .accepted
        if isAccepted {
            job.flags.insert(.accepted)
            if job.flags.contains(.clearsBadge), ended.badge != nil {
                toldByAlert.append(ToldBadge(job, device: bound.device))
            }
            noteAccepted(job, index)
            if parking.devices.hasHeld { release(job.event.app.id, job.uid, bound.device) }
            if job.isAddedByClient { sender.addedAlerts.insert(job.addedAlert(index, job.event.subject.id)) }
            shard.waits?.took(.push, job.event.lane, nanos: latency)
            shard.metrics.accepted(job.event.origin?.source.kafkaMs ?? 0, job.event.lane, nowMs: shard.nowMs)
        }
        end(job, index, ending.verdict, ending.reason) { record in
            record.label = ending.label
            record.apnsID = ending.apnsID
            record.status = ending.status
            record.badge = ended.badge ?? job.event.senderBadge
            record.attempts = push.attempts
            record.credential = push.credential
        }
        if isAccepted { noteShownBadge(job, index, bound) }
        if ending.verdict == .rejected { noteRejected(job, index) }
        if !job.event.isBroadcast,
            recorder.removeIfDead(ending, of: bound, app: job.event.app, uid: job.uid, recipient: job.ref)
        {
            job.machine.recordSent()
        }
        deliverCopy(job, index, accepted: isAccepted, alert: push.outcome.alertsByCopy)
        endIfComplete(job)
        recorded.append(job)
    }

    /// APNs takes pushes of the device again: its other pushes need not wait any longer.
    func release(_ app: String, _ uid: String, _ device: String) {
        let released = ReleasedDevice(app: app, uid: uid, device: device)
        guard parking.devices.isHeld(released.key) else { return }
        parking.release(released)
        sender.queues.release(released)
        // If this is lost, later pushes wait as long as the note says.
        try? shard.store.hastenParked(app: app, uid: uid, device: device, nowMs: shard.nowMs, tag: Tag.noteBits)
    }

    /// While other devices of the user are open, another owner takes over, or the broker accepts no records, the next
    /// try must not push this device again. A started Live Activity runs from now. Best effort: a loss with the
    /// connection costs at most one extra push.
    private func noteAccepted(_ job: RecipientJob, _ index: Int) {
        noteActivity(job)
        job.devices[index].push?.isAccepted = true
        let isLast = job.machine.openDevices <= 1 && job.machine.isMarked && job.machine.isOpen
        job.unmarkedDevice = Int32(index)
        if !isLast || recorder.outbox.isBehind || job.flags.contains(.handedBack) { markAccepted(job) }
    }

    /// APNs accepted a push about a Live Activity: a start begins it, an end ends it for all devices of the user. Before the marks,
    /// so that none of them says that the push is done while this is not known.
    func noteActivity(_ job: RecipientJob) {
        guard let (action, id) = job.event.activity, action != .update, !job.event.isBroadcast else { return }
        let (app, sentMs) = (job.event.app.id, job.event.sentMs)
        if action == .start {
            try? shard.store.beginActivity(
                app: app, uid: job.uid, activityID: id, sentMs: sentMs, nowMs: shard.nowMs, tag: job.tag(.note))
        } else {
            try? shard.store.endActivity(
                app: app, uid: job.uid, activityID: id, sentMs: sentMs, nowMs: shard.nowMs, tag: job.tag(.note))
        }
    }

    /// Records for the next try which device was pushed last.
    func markAccepted(_ job: RecipientJob) {
        // Without a claim there is no mark to write this to.
        let index = Int(job.unmarkedDevice)
        job.unmarkedDevice = -1
        guard job.devices.indices.contains(index), !job.flags.contains(.owesClaim) else { return }
        markClaimed(job)
        let device = job.devices[index]
        let push = EarlierPush(
            device.route.device, device.push?.id, badge: device.push?.badge, isForced: job.isForced)
        note(.accepted, push.device, push: push, of: job)
    }

    /// Whether a device has a token tells a redelivery that the device was addressed. Of a connection without one the mark
    /// says so, where the user has other devices.
    func noteAddressed(_ job: RecipientJob, _ index: Int, _ candidate: Candidate) {
        let device = job.devices[index].route.device
        guard job.devices.count > 1, !job.flags.contains(.owesClaim),
            !candidate.recipient.tokens.contains(where: { $0.record.type == .alert && $0.device.isSame(as: device) })
        else { return }
        markClaimed(job)
        note(.addressed, device, of: job)
    }

    /// A refused push may cost the device its token: the mark says that its end is recorded, while other devices are open.
    func noteRejected(_ job: RecipientJob, _ index: Int) {
        if job.machine.openDevices == 0 || job.flags.contains(.owesClaim) { return }
        markClaimed(job)
        note(.addressed, job.devices[index].route.device, of: job)
    }

    func note(_ note: EarlierNotes.Note, _ content: String, push: EarlierPush? = nil, of job: RecipientJob) {
        try? shard.store.note(
            note, content, push: push, app: job.event.app.id, uid: job.uid, job.event.subject, nowMs: shard.nowMs,
            tag: job.tag(.note))
    }

    /// A plain claim that takes longer than a push gets its mark, which gives `resume` more information.
    func markClaimed(_ job: RecipientJob) {
        if job.openMark != .notYet { return }
        job.openMark = .mayExist
        try? shard.store.markClaimed(job.claimRequest(nowMs: shard.nowMs), tag: job.tag(.note))
    }

    /// The device shows the number of the push. Another worker may have claimed a higher one while the push was out, or a later
    /// round of this message may have counted it.
    private func noteShownBadge(_ job: RecipientJob, _ index: Int, _ token: BoundToken) {
        if job.flags.contains(.countedLate) { return noteBadge(job, index, token, job.devices[index].push?.badge ?? 0) }
        job.devices[index].push?.mayShowLower = true
        guard let badge = job.devices[index].push?.badge else {
            // The number of a message that counts is not 0.
            if job.isCounted, job.event.app.policy.clearOnRead { noteBadge(job, index, token, nil) }
            return
        }
        if !shard.share.isWhole { noteBadge(job, index, token, badge) }
    }

    /// A later round counted the message: the devices that an earlier one pushed are to show that.
    func noteLateBadges(_ job: RecipientJob) {
        for index in job.devices.indices {
            guard let push = job.devices[index].push, push.mayShowLower, let token = push.token else { continue }
            job.devices[index].push?.mayShowLower = false
            noteBadge(job, index, token, push.badge ?? 0)
        }
    }

    /// - Parameter badge: nil: it was withheld.
    private func noteBadge(_ job: RecipientJob, _ index: Int, _ token: BoundToken, _ badge: Int64?) {
        let app = job.event.app
        if !job.event.showsBadge || token.record.type != .alert || app.policy.badge != .server { return }
        let burst =
            app.coalesceNanos == 0
            ? nil : BurstRule.key(app: app.id, uid: job.uid, conversation: job.event.conversationID)
        acceptedBadges.append(
            AcceptedBadge(
                app: app, uid: job.uid, eventID: job.event.id, token: token, badge: badge ?? 0,
                isWithheld: badge == nil, asOfMs: job.event.sentMs,
                mayHaveReport: job.devices[index].push?.mayHaveReport ?? true, burst: burst))
    }

    /// Once a second: removals that may continue.
    func releaseBrakes(of apps: some Sequence<AppContext>) {
        let nowMs = Int64(shard.nowNanos / 1_000_000)
        for app in apps {
            for cause in app.brake.release(nowMs: nowMs) {
                app.metrics.brake(cause.label, isEngaged: false)
                shard.log.warning(
                    "token removal resumed", ["app": .string(app.id), "cause": .string(cause.label)])
            }
        }
    }
}

/// The reason in `push.results` if APNs gave none, in the style of Apple's reasons.
enum NoAnswer: String, CaseIterable {
    /// APNs certainly never processed it, and no further attempt was allowed.
    case unprocessed = "Unprocessed"
    /// Sent as often as allowed, without an answer: it may have arrived.
    case unanswered = "Unanswered"
    /// Not sent: APNs would have refused a header or the kind of credential.
    case unfit = "Unfit"
}

/// APNs' outcome in the words of `push.results`.
struct Ending {
    var verdict: Verdict
    var reason: String
    /// The reason as a metric's label, from a closed set.
    var label: String
    var status: Int?
    var apnsID: PushID?
    var timestampMs: Int64?
    /// The cause of the token's removal; nil if it stays.
    var removal: RemovalBrake.Cause?

    init(_ outcome: PushOutcome, token: BoundToken, isForced: Bool) {
        switch outcome {
        case .accepted(let id):
            self.init(.accepted, (isForced ? Reason.forced : .ok).rawValue)
            status = 200
            apnsID = id
        case .rejected(let status, let reason, let time):
            self.init(.rejected, reason.text, label: reason.label)
            self.status = status
            timestampMs = time.milliseconds
            switch outcome.tokenFate {
            case .keep: break
            case .remove: removal = reason.text == "DeviceTokenNotForTopic" ? .notForTopic : .badDeviceToken
            case .removeIfOlder:
                // A time that cannot be read proves nothing.
                removal = time != .unreadable && token.record.isDead(sinceMs: timestampMs) ? .gone : nil
            }
        case .expired:
            self.init(.expired, Reason.expired.rawValue)
        case .deferred(let status, let reason, _):
            self.init(.rejected, reason.text, label: reason.label)
            self.status = status
        case .superseded:
            self.init(.suppressed, Reason.coalesced.rawValue)
        case .unprocessed:
            self.init(.rejected, NoAnswer.unprocessed.rawValue)
        case .unknown(_, let id):
            // Tried as often as allowed, with the same apns-id: it may have arrived.
            self.init(.rejected, NoAnswer.unanswered.rawValue)
            apnsID = id
        }
    }

    private init(_ verdict: Verdict, _ reason: String, label: String? = nil) {
        self.verdict = verdict
        self.reason = reason
        self.label = label ?? reason
    }
}
