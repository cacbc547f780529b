import EventLoop
import PushCore
import Redis

/// Coalescing: alerts that wait for the end of their burst's window, and the look at each before one push tells of them.
///
/// Groups that are to be told lie in `merged`, oldest first; those of whom nothing is to be told in `dropped`.
final class Bursts {
    let merged = Tray<[WorkRef]>()
    let dropped = Tray<Dropped>()
    private let shard: ShardContext
    private let work: WorkTable
    private var table: BurstTable<WorkRef>

    /// One who waited and is not told: read, recalled or expired meanwhile, or finished by another.
    struct Dropped {
        var recipient: WorkRef
        /// Nil: finished by another.
        var reason: Reason?
    }

    init(_ shard: ShardContext, _ work: WorkTable) {
        self.shard = shard
        self.work = work
        table = BurstTable(waitingMax: shard.limits.recipientsMax / 2)
    }

    /// True: the push waits. It may be looked at as read, recalled or expired at the window's end, and is told then or
    /// never; the device's other pushes do not wait for it.
    func joins(_ job: RecipientJob, _ index: Int, _ token: BoundToken) -> Bool {
        guard job.event.digest == nil, !job.flags.contains(.leadsBurst),
            let message = job.event.message?.value,
            BurstRule.bypass(message, facts: job.facts, way: job.devices[index].route.way) == nil
        else { return false }
        if job.burst == nil {
            let key = BurstRule.key(app: job.event.app.id, uid: job.uid, conversation: job.event.conversationID)
            switch table.arrive(job.ref, of: key) {
            case .goesNow(let window):
                job.flags.insert(.leadsBurst)
                plan(key, window, of: job.event.app)
                return false
            case .waits: break
            case .waitsNoLonger(let window):
                shard.timers.schedule(.burst(key, window: window), dueNanos: shard.nowNanos)
            }
            job.burst = BurstPlace(key: key)
        }
        job.devices[index].token = token
        job.devices[index].machine.merge()
        return true
    }

    /// Alerts wait for the end of this burst's window.
    func isWaiting(_ key: PushID) -> Bool { table.isWaiting(key) }

    private func plan(_ key: PushID, _ window: UInt32, of app: AppContext) {
        shard.timers.schedule(.burst(key, window: window), dueNanos: shard.nowNanos &+ app.coalesceNanos)
    }

    // MARK: The window's end

    /// Claims each once more, which counts nothing again, and tells what was read or recalled meanwhile.
    func end(_ key: BurstTable<WorkRef>.Key, window: UInt32) {
        let members = table.end(key, window: window)
        for place in members.indices {
            guard let job = work.recipient(members[place]), let burst = job.burst,
                job.devices.contains(where: \.machine.isMerging)
            else {
                answer(key, place, isAlive: false)
                continue
            }
            burst.place = place
            do throws(RedisFault) {
                try shard.store.claim(job.claimRequest(nowMs: shard.nowMs), tag: job.tag(.burst))
            } catch {
                burst.place = nil
                answer(key, place, isAlive: true)
            }
        }
    }

    /// The recipient has ended, perhaps with the question still under way: nobody else would answer for him.
    func leave(_ job: RecipientJob) {
        guard let burst = job.burst.take(), let place = burst.place else { return }
        answer(burst.key, place, isAlive: false)
    }

    /// - Parameter claim: nil: Redis could not say. Then it is told: the push itself is checked once more before it goes.
    func didLook(_ ref: WorkRef, _ claim: ClaimReply?) {
        guard let job = work.recipient(ref), let burst = job.burst, let place = burst.place else { return }
        burst.place = nil
        var isAlive = true
        if let claim {
            // The script has marked it.
            job.flags.remove(.claimedPlainly)
            let reason = SendFacts(isRead: claim.isRead, isRevoked: claim.isRevoked)
                .reason(expireAtMs: job.event.expiresAtMs, now: shard.nowMs)
            isAlive = claim.state != .finished && reason == nil
            if !isAlive {
                dropped.append(Dropped(recipient: ref, reason: claim.state == .finished ? nil : reason))
                job.burst = nil
                shard.requestTurn()
            }
        }
        answer(burst.key, place, isAlive: isAlive)
    }

    private func answer(_ key: PushID, _ place: Int, isAlive: Bool) {
        switch table.answered(key, place: place, isAlive: isAlive) {
        case .pending, .nothing(endsNow: nil): break
        case .nothing(let window?): end(key, window: window)
        case .merged(let members, let window):
            let jobs = members.compactMap(work.recipient)
            if let app = jobs.first?.event.app { plan(key, window, of: app) } else { end(key, window: window) }
            for job in jobs { job.burst = nil }
            merged.append(jobs.map(\.ref))
            shard.requestTurn()
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
