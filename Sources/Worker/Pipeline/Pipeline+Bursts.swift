import EventLoop
import PushCore
import Redis
import Telemetry

/// Coalescing: alerts that wait for the end of their burst's window, and the one push that tells of them.
extension Pipeline {
    /// True: the push waits. It may be looked at as read, recalled or expired at the window's end, and is told then or
    /// never; the device's other pushes do not wait for it.
    func joinsBurst(_ job: RecipientJob, _ index: Int) -> Bool {
        guard mayWait(job, index) else { return false }
        if job.burst == nil {
            let key = PushID.make(
                app: job.event.app.id, uid: job.recipient.uid, msgID: job.event.conversationID, kind: "burst",
                tokenHex: "")
            switch bursts.arrive(job.ref, of: key) {
            case .goesNow(let window):
                job.flags.insert(.leadsBurst)
                plan(key, window, of: job.event.app)
                return false
            case .waits: break
            case .waitsNoLonger(let window): due.insert(.burst(key, window), dueNanos: loop.nowNanos)
            }
            job.burst = BurstPlace(key: key)
            armDue()
        }
        job.devices[index].state = .merging
        noteWait(job, index, .burst)
        job.event.unsent += 1
        return true
    }

    /// What bypasses: mentions, forced, voip and silent pushes, recalls; and a live device's push by strategy 4, whose
    /// message would have to wait with it. All devices of a message do the same.
    private func mayWait(_ job: RecipientJob, _ index: Int) -> Bool {
        guard !intake.isClosing, job.event.digest == nil, !job.flags.contains(.leadsBurst),
            job.facts.isDisjoint(with: [.forced, .mentionsMe, .mentionsAll]),
            let message = job.event.message?.value, message.kind == .message, !message.push.voip, !message.push.silent
        else { return false }
        if case .apns(_, .some) = job.devices[index].route.way { return false }
        return true
    }

    private func plan(_ key: PushID, _ window: UInt32, of app: AppContext) {
        schedule(.burst(key, window), dueNanos: loop.nowNanos &+ app.coalesceNanos)
    }

    // MARK: - The window's end

    /// Claims each once more, which counts nothing again, and tells what was read or recalled meanwhile.
    func endBurst(_ key: PushID, _ window: UInt32) {
        let members = bursts.end(key, window: window)
        let nowMs = loop.wallMs
        for place in members.indices {
            guard let job = job(members[place]), let burst = job.burst, job.devices.contains(where: \.isMerging) else {
                answerBurst(key, place, isAlive: false)
                continue
            }
            burst.place = place
            do throws(RedisFault) {
                try store.claim(ClaimRequest(job, nowMs: nowMs), tag: job.tag(.burst))
            } catch {
                burst.place = nil
                answerBurst(key, place, isAlive: true)
            }
        }
    }

    /// The recipient is done, perhaps with the question still under way: nobody else would answer for him.
    func leaveBurst(_ job: RecipientJob) {
        guard let burst = job.burst.take(), let place = burst.place else { return }
        answerBurst(burst.key, place, isAlive: false)
    }

    /// Every open window ends now, for what is merged has to go before the partitions do.
    func endAllBursts() {
        for burst in bursts.open { endBurst(burst.key, burst.window) }
    }

    /// Nil: Redis could not say. Then it is told: the push itself looks once more before it goes.
    func didLookInBurst(_ job: RecipientJob, _ claim: ClaimReply?) {
        guard let burst = job.burst, let place = burst.place else { return }
        burst.place = nil
        var reason: Reason?
        if let claim {
            reason = Recheck(isRead: claim.isRead, isRevoked: claim.isRevoked)
                .reason(expireAtMs: job.event.expiresAtMs, now: loop.wallMs)
        }
        let isFinished = claim?.state == .finished
        let isAlive = !isFinished && reason == nil
        if !isAlive {
            if isFinished { job.flags.insert(.unmarked) }
            for index in job.devices.indices where job.devices[index].isMerging {
                end(
                    job, index, verdict: reason == .expired ? .expired : .suppressed,
                    reason: (reason ?? .ok).rawValue, isRecorded: !isFinished)
            }
            job.burst = nil
            concludeIfEnded(job)
        }
        answerBurst(burst.key, place, isAlive: isAlive)
    }

    private func answerBurst(_ key: PushID, _ place: Int, isAlive: Bool) {
        switch bursts.answered(key, place: place, isAlive: isAlive) {
        case .pending, .nothing(endsNow: nil): break
        case .nothing(let window?): endBurst(key, window)
        case .merged(let members, let window):
            let jobs = members.compactMap(job)
            if let app = jobs.first?.event.app { plan(key, window, of: app) } else { endBurst(key, window) }
            merge(jobs)
        }
    }

    // MARK: - The push

    /// One push per device: the newest message carries it, with the number of all that wait for that device.
    private func merge(_ jobs: [RecipientJob]) {
        var devices: [(name: String, refs: [DeviceRef])] = []
        for job in jobs {
            job.burst = nil
            for index in job.devices.indices where job.devices[index].isMerging {
                let name = job.devices[index].route.device
                let ref = DeviceRef(job: job.ref, device: index)
                if let known = devices.firstIndex(where: { $0.name == name }) {
                    devices[known].refs.append(ref)
                } else {
                    devices.append((name, [ref]))
                }
            }
        }
        for device in devices { sendMerged(device.refs) }
    }

    /// The newest goes; the others wait for its outcome.
    private func sendMerged(_ refs: [DeviceRef]) {
        var rest = refs
        while let carrier = rest.popLast() {
            guard let job = job(carrier.job), job.isMerging(carrier.device),
                let token = job.devices[carrier.device].token
            else { continue }
            // Alone it goes with its own text.
            if let oldest = rest.first.flatMap({ self.job($0.job) }) {
                job.devices[carrier.device].merged = MergedPush(others: rest, oldestID: oldest.event.msgID)
            }
            return push(job, carrier.device, token, isChecked: false)
        }
    }

    /// The push that told of others has ended. Did it end before APNs had a word in it (its own message was read or
    /// recalled at the last moment), the next newest carries the rest.
    func follow(_ merged: MergedPush, _ verdict: Verdict) {
        switch verdict {
        case .suppressed, .expired, .parked:
            sendMerged(merged.others)
        case .accepted, .rejected, .online:
            for ref in merged.others {
                guard let job = job(ref.job), job.isMerging(ref.device) else { continue }
                job.event.app.metrics.coalesced.add()
                // The merged push was this message's alert, too: whether an SMS is wanted goes by what became of it.
                job.flags.insert(verdict == .accepted ? .accepted : .failed)
                end(job, ref.device, verdict: .suppressed, reason: Reason.coalesced.rawValue)
                concludeIfEnded(job)
            }
        }
    }
}

/// Where a recipient waits: its burst, and its place in it while it is asked at the window's end.
final class BurstPlace {
    let key: PushID
    var place: Int?

    init(key: PushID) {
        self.key = key
    }
}

/// What a push tells of beside its own message.
final class MergedPush {
    /// Oldest first.
    let others: [DeviceRef]
    /// The oldest one's `msg_id`: what the collapse id is made of, so that another try has the same.
    let oldestID: String

    init(others: [DeviceRef], oldestID: String) {
        self.others = others
        self.oldestID = oldestID
    }

    var count: Int { others.count + 1 }
}
