// SPDX-License-Identifier: Apache-2.0
import EventLoop
import PushCore
import Redis
import Telemetry

/// The digest after DND: one push per user with the number of held messages that are unread.
///
/// Due digests are in Redis, so they survive workers; a worker that finds one takes a lease. A digest is a message of
/// the worker's own on the ordinary path: claimed once, decided, pushed, recorded with the event id `digest-…`. Events
/// to begin are in `events`.
final class Digests {
    let events = Tray<EventJob>()
    private let shard: ShardContext
    private var apps: [String: AppContext]
    private var isUsed: Bool { apps.values.contains(where: \.sendsDigest) }
    private var jobs: SlotTable<DigestJob>
    private var nextBucket = 0
    /// The ends of the last requested leases, by the number of their round, because a tag has no room for a time.
    private var leases: [(round: UInt32, leaseMs: Int64)] = []
    private var nextRound: UInt32 = 0

    /// Time after which another worker tries a digest.
    private static let leaseMs: Int64 = 120_000
    /// Between two attempts at a digest while APNs is away.
    static let againMs: Int64 = 10_000
    /// The life of a digest from the start of each try.
    private static let lifetimeMs: Int64 = 12 * 3_600_000
    private static let claimMax = 64

    init(_ shard: ShardContext, apps: [String: AppContext]) {
        self.shard = shard
        self.apps = apps
        jobs = SlotTable(capacity: shard.limits.recipientsMax)
    }

    func add(_ app: AppContext) { apps[app.id] = app }

    /// Once a second: a few of the queues, so that each is checked every few seconds.
    func poll() {
        if !isUsed || !shard.store.client.isReady { return }
        let leaseMs = shard.nowMs &+ Self.leaseMs
        for _ in 0..<4 {
            let bucket = nextBucket
            nextBucket = (nextBucket + 1) % DueUser.buckets
            let place = WorkRef(slot: bucket, generation: round(leaseMs))
            try? shard.store.claimDue(
                bucket: bucket, nowMs: shard.nowMs, leaseMs: leaseMs, count: Self.claimMax, tag: Tag(place, .due).bits)
        }
    }

    private func round(_ leaseMs: Int64) -> UInt32 {
        if leases.last?.leaseMs != leaseMs {
            leases.append((nextRound, leaseMs))
            nextRound = (nextRound &+ 1) & 0xFF_FFFF
            if leases.count > 64 { leases.removeFirst() }
        }
        return leases.last?.round ?? 0
    }

    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        if tag.question == .due { return didClaimDue(tag, reply) }
        didTake(tag.ref, count: reply[0].int64, oldestMs: reply[1].int64 ?? 0)
    }

    func didFail(_ tag: Tag, _ fault: RedisFault) {
        if tag.question == .due { didFailDue(fault) } else { didTake(tag.ref, count: nil, oldestMs: 0) }
    }

    private func didClaimDue(_ tag: Tag, _ reply: borrowing RedisReply) {
        guard let leaseMs = leases.first(where: { $0.round == tag.ref.generation })?.leaseMs else {
            return shard.noteLate()
        }
        var found: [DigestJob] = []
        reply.forEach { element in
            guard let user = DueUser(member: element.bytes), let app = apps[user.app] else { return }
            found.append(DigestJob(app: app, user: user, leaseMs: leaseMs))
        }
        for job in found {
            job.ref = jobs.insert(job)
            do throws(RedisFault) {
                try shard.store.takeDigest(app: job.user.app, uid: job.user.uid, tag: Tag(job.ref, .digest).bits)
            } catch {
                jobs.remove(job.ref)
            }
        }
    }

    /// The queue is checked again at its turn. A permanent fault is logged.
    private func didFailDue(_ fault: RedisFault) {
        if !fault.isLasting { return }
        shard.writes.report(
            fault, "a queue of digests cannot be read: its users get no digest", nowNanos: shard.nowNanos)
    }

    /// - Parameter count: nil if Redis could not answer; it returns at the end of the lease.
    private func didTake(_ ref: WorkRef, count: Int64?, oldestMs: Int64) {
        guard let job = jobs.find(ref) else { return shard.mistake("an answer to a digest that nobody asked for") }
        jobs.remove(ref)
        guard let count else { return }
        guard count > 0, job.app.sendsDigest else { return end(job) }
        job.count = Int(clamping: count)
        events.append(
            job.event(oldestMs: oldestMs, nowMs: shard.nowMs, expireAtMs: shard.nowMs &+ Self.lifetimeMs))
        shard.requestTurn()
    }

    /// The digest is over: its outcomes are recorded, it is empty, or DND puts it off. A digest lost with the connection returns with the lease, and is found finished.
    func end(_ digest: DigestJob) {
        if let atMs = digest.putOffToMs {
            try? shard.store.putOffDigest(of: digest.user, toMs: atMs, nowMs: shard.nowMs, tag: Tag.noteBits)
        } else {
            try? shard.store.endDigest(of: digest.user, leaseMs: digest.leaseMs, tag: Tag.noteBits)
        }
    }
}
