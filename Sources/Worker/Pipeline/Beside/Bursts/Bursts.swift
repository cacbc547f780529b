// SPDX-License-Identifier: Apache-2.0
import EventLoop
import PushCore
import Redis

/// Coalescing: alerts that wait for the end of their burst's window, and the check of each before one push merges them.
///
/// Groups to push are in `merged`, oldest first; alerts that are not pushed in `dropped`.
final class Bursts {
    let merged = Tray<[WorkRef]>()
    let dropped = Tray<Dropped>()
    private let shard: ShardContext
    private let work: WorkTable
    private var table: BurstTable<WorkRef>

    /// A waiting alert that is not pushed: read, revoked or expired since, or finished by another worker.
    struct Dropped {
        var recipient: WorkRef
        /// Nil if another worker finished it.
        var reason: Reason?
    }

    init(_ shard: ShardContext, _ work: WorkTable) {
        self.shard = shard
        self.work = work
        table = BurstTable(waitingMax: shard.limits.recipientsMax / 2)
    }

    /// Adds the push to its conversation's burst, which keeps it to the end of the window. By then it may be read, revoked or
    /// expired, and is pushed then or never. The device's other pushes do not wait for it.
    ///
    /// - Parameter endsNow: the window ends with it.
    func join(_ job: RecipientJob, _ index: Int, _ token: BoundToken, endsNow: Bool = false) -> Passage {
        if case .leads = job.burst { return .goesOn }
        guard job.event.digest == nil, let message = job.event.message?.value,
            BurstRule.bypass(message, facts: job.facts, way: job.devices[index].route.way) == nil
        else { return .goesOn }
        if case .none = job.burst {
            let key = Self.key(of: job)
            switch table.arrive(job.ref, of: key, endsNow: endsNow) {
            case .goesNow(let window):
                job.burst = .leads
                plan(key, window, of: job.event.app)
                return .goesOn
            case .waits: break
            case .waitsNoLonger(let window):
                shard.timers.schedule(.burst(key, window: window), dueNanos: shard.nowNanos)
            }
            job.burst = .waits(BurstPlace(key: key))
        }
        job.devices[index].merge(token)
        return .kept
    }

    /// Whether messages that never were in the topic wait for the end of its burst: it would return from there before them.
    func isBehindNew(_ job: RecipientJob) -> Bool {
        job.event.parked == nil
            && table.waiting(Self.key(of: job)).contains { work.recipient($0)?.event.parked == nil }
    }

    private static func key(of job: RecipientJob) -> PushID {
        BurstRule.key(app: job.event.app.id, uid: job.uid, conversation: job.event.conversationID)
    }

    /// - Returns: whether alerts wait for the end of this burst's window.
    func isWaiting(_ key: PushID) -> Bool { table.isWaiting(key) }

    private func plan(_ key: PushID, _ window: UInt32, of app: AppContext) {
        shard.timers.schedule(.burst(key, window: window), dueNanos: shard.nowNanos &+ app.coalesceNanos)
    }

    // MARK: The window's end

    /// Claims each alert again, which counts nothing twice, and shows which were read or revoked.
    func end(_ key: BurstTable<WorkRef>.Key, window: UInt32) {
        let members = table.end(key, window: window)
        for place in members.indices {
            guard let job = work.recipient(members[place]), let burst = job.burstPlace,
                job.devices.contains(where: \.isMerging)
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

    /// The recipient has ended, possibly with an open check. Nothing else would answer for it.
    func leave(_ job: RecipientJob) {
        guard let burst = job.burstPlace else { return }
        job.burst = .none
        guard let place = burst.place else { return }
        answer(burst.key, place, isAlive: false)
    }

    /// - Parameter claim: nil if Redis could not answer. The alert is then pushed, because the push itself is checked
    ///   again before it is sent.
    func didLook(_ ref: WorkRef, _ claim: ClaimReply?) {
        guard let job = work.recipient(ref), let burst = job.burstPlace, let place = burst.place else {
            return shard.noteLate()
        }
        burst.place = nil
        var isAlive = true
        if let claim {
            // The script has marked it.
            job.noteMark()
            let reason = SendFacts(isRead: claim.isRead, isRevoked: claim.isRevoked)
                .reason(expireAtMs: job.event.expiresAtMs, now: shard.nowMs)
            isAlive = claim.state != .ended && reason == nil
            if !isAlive {
                dropped.append(Dropped(recipient: ref, reason: claim.state == .ended ? nil : reason))
                job.burst = .none
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
            for job in jobs { job.leaveBurst() }
            merged.append(jobs.map(\.ref))
            shard.requestTurn()
        }
    }
}

/// The place of a waiting recipient: its burst, and its index during the check at the window's end.
final class BurstPlace {
    let key: PushID
    var place: Int?

    init(key: PushID) {
        self.key = key
    }
}

/// The other messages of a merged push.
final class MergedPush {
    /// Oldest first.
    let others: [DeviceRef]
    /// The oldest one's `msg_id`. The collapse id derives from it, so that another attempt has the same.
    let oldestID: String

    init(others: [DeviceRef], oldestID: String) {
        self.others = others
        self.oldestID = oldestID
    }

    var count: Int { others.count + 1 }
}
