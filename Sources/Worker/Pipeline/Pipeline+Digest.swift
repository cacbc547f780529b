import EventLoop
import PushCore
import Redis
import Telemetry

/// The digest after quiet hours: one push per user that tells how many of the messages held back are unread.
///
/// What is due stands in Redis, so it survives workers; whoever finds it takes a lease. A digest travels as a message of
/// this worker's own, on the same path as every other: claimed once, decided, pushed, recorded under the event id
/// `digest-…`.
extension Pipeline {
    /// How long a digest may take before another worker tries it.
    private static let leaseMs: Int64 = 120_000
    /// Nobody wants to hear in the evening of what was quiet in the night.
    private static let lifetimeMs: Int64 = 12 * 3_600_000
    private static let claimMax = 64

    // MARK: - Held back

    /// Remembers a message that quiet hours held back, before its mark says that it is finished.
    func noteHeldBack(_ job: RecipientJob) {
        guard job.event.app.sendsDigest, job.event.digest == nil, job.decision?.counted ?? false,
            job.decision?.alert == .deny(.dnd), let message = job.event.message?.value, message.kind == .message,
            let endMs = QuietHours.endMs(
                for: job.recipient, policy: job.event.app.policy, zones: zones, now: loop.wallMs)
        else { return }
        job.heldUntilMs = endMs
    }

    /// Two of the commands of the finishing step.
    func sendHeldBack(_ job: RecipientJob) {
        guard let endMs = job.heldUntilMs else { return }
        let app = job.event.app.id
        let uid = job.recipient.uid
        ask(job) { (store) throws(RedisFault) in
            try store.holdForDigest(app: app, uid: uid, job.event.subject, tag: job.tag(.heldBack))
        }
        ask(job) { (store) throws(RedisFault) in
            try store.planDue(DueUser(app: app, uid: uid), atMs: endMs, tag: job.tag(.heldBack))
        }
    }

    // MARK: - Due

    /// Once a second: a few of the queues, so that each is looked at every few seconds.
    func pollDigests() {
        guard sendsDigests, !intake.isClosing, hasRoom, store.client.isReady else { return }
        let leaseMs = loop.wallMs &+ Self.leaseMs
        for _ in 0..<4 {
            let bucket = nextDueBucket
            nextDueBucket = (nextDueBucket + 1) % DueUser.buckets
            try? store.claimDue(
                bucket: bucket, nowMs: loop.wallMs, leaseMs: leaseMs, count: Self.claimMax,
                tag: Tag(slot: bucket, generation: dueRound(leaseMs), stage: .due).bits)
        }
    }

    /// The lease's end travels by its place among the last rounds: a tag has no room for it.
    private func dueRound(_ leaseMs: Int64) -> UInt32 {
        if dueLeases.last?.leaseMs != leaseMs {
            dueLeases.append((nextDueRound, leaseMs))
            nextDueRound = (nextDueRound &+ 1) & 0xFF_FFFF
            if dueLeases.count > 64 { dueLeases.removeFirst() }
        }
        return dueLeases.last?.round ?? 0
    }

    func didClaimDue(_ tag: Tag, _ reply: borrowing RedisReply) {
        guard let leaseMs = dueLeases.first(where: { $0.round == tag.generation })?.leaseMs else { return }
        var found: [DigestJob] = []
        reply.forEach { element in
            guard let user = DueUser(member: element.bytes), let app = apps[user.app] else { return }
            found.append(DigestJob(app: app, user: user, leaseMs: leaseMs))
        }
        for job in found {
            (job.slot, job.generation) = digests.insert(job)
            do throws(RedisFault) {
                try store.takeDigest(
                    app: job.user.app, uid: job.user.uid,
                    tag: Tag(slot: job.slot, generation: job.generation, stage: .digest).bits)
            } catch {
                digests.remove(slot: job.slot)
            }
        }
    }

    /// - Parameter count: nil: Redis could not say; the lease's end brings it back.
    func didTakeDigest(_ tag: Tag, count: Int64?, oldestMs: Int64) {
        guard let job = digests.find(slot: tag.slot, generation: tag.generation) else { return }
        digests.remove(slot: tag.slot)
        guard let count else { return }
        guard count > 0, job.app.sendsDigest else { return ended(job) }
        job.count = Int(clamping: count)
        start(EventJob(job, oldestMs: oldestMs, nowMs: loop.wallMs, expireAtMs: loop.wallMs &+ Self.lifetimeMs))
    }

    /// Nil: not now. Quiet hours that hold again put it off, and who has a phone in hand sees for himself.
    func decideDigest(_ digest: DigestJob, of job: RecipientJob) -> Decision? {
        guard let message = job.event.message else { return nil }
        // Levels are of conversations; those of the messages that it tells of let them through.
        var policy = digest.app.policy
        policy.defaultLevels = [:]
        let now = loop.wallMs
        let decision = message.read { message in
            PushCore.decide(
                message, sentMs: job.event.sentMs, for: job.recipient, policy: policy, zones: zones, now: now,
                facts: &job.facts)
        }
        if decision.alert == .deny(.dnd) {
            digest.putOffToMs = QuietHours.endMs(for: job.recipient, policy: policy, zones: zones, now: now)
            return nil
        }
        return job.recipient.hasMobileInForeground(at: now) ? nil : decision
    }

    /// Everything of it is recorded. What is lost with the connection comes back with the lease, and is found finished.
    func ended(_ digest: DigestJob) {
        if let atMs = digest.putOffToMs {
            try? store.planDue(digest.user, atMs: atMs, tag: Self.noteTag)
        } else {
            try? store.endDigest(of: digest.user, leaseMs: digest.leaseMs, tag: Self.noteTag)
        }
    }

    private static var noteTag: UInt64 { Tag(slot: 0, generation: 0, stage: .note).bits }
}

/// One user's digest under a lease.
final class DigestJob {
    let app: AppContext
    let user: DueUser
    let leaseMs: Int64
    var slot = 0
    var generation: UInt32 = 0
    /// Unread messages that it tells of.
    var count = 0
    /// Quiet hours hold again: it is looked at then, Unix ms.
    var putOffToMs: Int64?

    init(app: AppContext, user: DueUser, leaseMs: Int64) {
        self.app = app
        self.user = user
        self.leaseMs = leaseMs
    }
}

extension EventJob {
    /// A digest as a message from nobody: the same id for every try, so that it is claimed and pushed once.
    convenience init(_ digest: DigestJob, oldestMs: Int64, nowMs: Int64, expireAtMs: Int64) {
        let id = "digest-\(oldestMs)"
        var message = Message(
            msgID: id, expireAtMs: expireAtMs, conversation: Conversation(id: "digest", type: .system),
            from: .init(uid: ""), to: .init(uids: [digest.user.uid]))
        message.push.badge = false
        message.push.prefix = false
        message.push.strategy = .apnsOnly
        let shared = SharedMessage(message)
        self.init(
            shared, of: Event(app: digest.app.id, id: id, sentMs: nowMs, body: .message(shared)), app: digest.app,
            raw: [], origin: nil)
        self.digest = digest
    }
}
