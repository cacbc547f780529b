// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import PushCore
import Redis
import Telemetry

/// Reads the inputs of a decision: presence with its gateways' leases, settings, tokens, mute, read mark, the group's
/// level.
///
/// Plain pipelined reads, all of a candidate at once. Completely read candidates are in `known`.
final class Lookup {
    let known = Tray<RecipientJob>()
    let shard: ShardContext
    let work: WorkTable
    private let decider: Decider
    var leases = LeaseCache()
    var leaseQueries: SlotTable<LeaseQuery>
    /// The open query of each gateway.
    var leaseQueryOf: [UTF8Key: LeaseQuery] = [:]
    /// Recipients without an answer from Redis; they are read again together, in order.
    private var postponed: [RecipientJob] = []
    /// When the first of them is due; nil if none waits.
    private var postponedDueNanos: UInt64?
    private var oversized = OversizedKeys()
    var userGate = ReadGate()
    var presenceGate = ReadGate()
    private var order = OrderKeeper()
    /// Conversations with candidates that wait for each other.
    var openLines: Int { order.count }
    /// Own marks by one read, and members' marks by one read of their common key.
    let marks: Batches<Void, RecipientJob>
    let groupMarks: Batches<EventJob, RecipientJob>

    init(_ shard: ShardContext, _ work: WorkTable) {
        self.shard = shard
        self.work = work
        decider = Decider(shard)
        leaseQueries = SlotTable(capacity: shard.limits.recipientsMax)
        marks = Batches(capacity: shard.limits.recipientsMax)
        groupMarks = Batches(capacity: shard.limits.recipientsMax)
    }

    // MARK: Reading

    /// Reads a recipient for a decision. It waits while Redis is away.
    func read(_ job: RecipientJob) {
        guard let candidate = job.candidate else { return shard.late() }
        if !postponed.isEmpty, !shard.store.client.isReady { return postpone(job) }
        if pass(job, to: .reading) == .kept { return }
        // On a cluster the members' common mark is on a node of its own: a later message of the conversation may be
        // answered first.
        if job.event.readsGroupMark, shard.store.client.isCluster { keepPlace(job, at: .reading) }
        shard.waits?.took(.start, job.event.lane, nanos: shard.nowNanos &- job.event.begunNanos)
        isLikelyDenied(job, candidate) ? readDenied(job, candidate) : readAll(job, candidate)
    }

    private func readAll(_ job: RecipientJob, _ candidate: Candidate) {
        candidate.beginReading(.reading)
        job.endWaiting()
        job.readNanos = shard.nowNanos
        let event = job.event
        let app = event.app.id
        let uid = job.uid
        // The member scan gave the group's level; for a given uid, and in a later round, it must be read.
        let group = event.hasMembers && candidate.recipient.groupLevel == nil ? event.conversationID : nil
        let activity = event.updatedActivityID
        candidate.plainPast = mayClaimPlainly(job) ? 0 : nil
        // Flush first: a recipient that skips the mark read must not overtake.
        if candidate.plainPast == nil { sendGathered() }
        candidate.answers = Answers(3 + (group == nil ? 0 : 1) + (activity == nil ? 0 : 1))
        // Also for recipients that the script claims, because it does not read the common key.
        let asksMark = candidate.plainPast != nil || (event.readsGroupMark && job.devices.isEmpty)
        if asksMark { candidate.answers.expect() }
        ask(job) { (store) throws(RedisFault) in
            try store.readConversation(
                app: app, uid: uid, conversation: event.conversationID, tag: job.tag(.conversation))
        }
        let bucket = ReadGate.bucket(uid)
        askWhole(job, .user, bucket)
        askWhole(job, .presence, bucket)
        if asksMark { askMark(job, candidate) }
        if let group {
            ask(job) { (store) throws(RedisFault) in
                try store.readMember(app: app, group: group, uid: uid, tag: job.tag(.group))
            }
        }
        if let activity {
            ask(job) { (store) throws(RedisFault) in
                try store.activityState(app: app, uid: uid, activityID: activity, tag: job.tag(.activity))
            }
        }
    }

    /// For a member that will probably be denied: neither settings, tokens nor a claim, only facts that can change the
    /// denial: the user's own mute and read mark, a live device, and the mark of an earlier delivery.
    private func readDenied(_ job: RecipientJob, _ candidate: Candidate) {
        candidate.beginReading(.readingDenied)
        job.endWaiting()
        job.readNanos = shard.nowNanos
        candidate.answers = Answers(3)
        let event = job.event
        let app = event.app.id
        let uid = job.uid
        askMark(job, candidate)
        ask(job) { (store) throws(RedisFault) in
            try store.readDenied(
                app: app, uid: uid, conversation: event.conversationID, tag: job.tag(.conversation))
        }
        askWhole(job, .presence, ReadGate.bucket(uid))
    }

    /// The first round of a message: whether it is an ordinary one is known only after all reads.
    private func mayClaimPlainly(_ job: RecipientJob) -> Bool {
        job.event.subject.kind == .message && job.event.digest == nil && job.parking == nil
            && job.firstClaim == .none && !job.isDecided && !job.flags.contains(.owesClaim)
            && shard.writes.refusal == nil
    }

    /// - Returns: false if the key was found too large less than a minute ago.
    func admitRead(_ job: RecipientJob, _ question: Question) -> Bool {
        oversized.isEmpty || oversized.admit(job.key(question), nowNanos: shard.nowNanos)
    }

    /// A message that the group's level or the sender denies. There are three exceptions. With `dnd_mode: chain`, a DND
    /// window (part of the settings) may allow a message in spite of the level. A revoke may lower a badge. While Redis
    /// refuses writes, only the full path handles a missing mark.
    private func isLikelyDenied(_ job: RecipientJob, _ candidate: Candidate) -> Bool {
        let event = job.event
        guard !job.isDecided, !job.flags.contains(.owesCount), shard.writes.refusal == nil,
            let level = candidate.recipient.groupLevel, event.subject.kind == .message,
            event.digest == nil, event.app.policy.dndMode == .independent,
            event.isSwitchedOff || (level != .unset && level != .all)
        else { return false }
        // A recipient without a mention or force cannot pass its level, so the verdict is not computed twice.
        return event.isWithoutMentionAndForce || decider.denial(of: candidate, event) != nil
    }

    /// Sends one command of the present phase. A command that cannot be sent counts as answered at once.
    func ask(_ job: RecipientJob, _ send: (StateStore) throws(RedisFault) -> Void) {
        do throws(RedisFault) {
            try send(shard.store)
        } catch {
            answered(job, failed: true)
        }
    }

    // MARK: Answers

    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        switch tag.question {
        case .marks: if let batch = marks.answered(tag.ref) { didReadMarks(batch, reply) }
        case .groupMarks: if let batch = groupMarks.answered(tag.ref) { didReadGroupMarks(batch, reply) }
        case .lease: didReadLease(tag.ref, epoch: reply.isNull ? nil : reply.int64)
        default: didRead(tag, reply)
        }
    }

    /// One of a recipient's own reads.
    private func didRead(_ tag: Tag, _ reply: borrowing RedisReply) {
        if tag.question == .presence || tag.question == .user { releaseWhole(tag) }
        guard let job = work.recipient(tag.ref), let candidate = job.candidate else { return shard.late() }
        switch tag.question {
        case .presence:
            let emptyCount = RecipientReplies.presence(reply, into: &candidate.recipient)
            if emptyCount > 0 { shard.metrics.emptyDevices.add(UInt64(emptyCount)) }
        case .user: RecipientReplies.user(reply, into: &candidate.recipient)
        case .conversation where candidate.phase == .readingDenied:
            RecipientReplies.denied(reply, into: &candidate.recipient)
        case .conversation:
            candidate.tokenVersion = RecipientReplies.conversation(reply, into: &candidate.recipient)
            if candidate.plainPast != nil { candidate.plainPast = RecipientReplies.past(reply, at: job.event.subject) }
            candidate.areOwnersKnown = KnownOwners.holds(
                reply[4], version: candidate.tokenVersion, reign: shard.reign(of: job))
        case .group: RecipientReplies.member(reply, into: &candidate.recipient)
        case .activity: candidate.activity = ActivityState(reply)
        case .mark: return takeMark(reply, job)
        default: return
        }
        if !oversized.isEmpty { oversized.forget(job.key(tag.question)) }
        answered(job, failed: false)
    }

    /// - Parameter isAbsent: no device is live, no level is set. Other faults are retried.
    func didFail(_ tag: Tag, _ fault: RedisFault, isAbsent: Bool) {
        switch tag.question {
        case .marks: if let batch = marks.answered(tag.ref) { didFailMarks(batch, fault) }
        case .groupMarks: if let batch = groupMarks.answered(tag.ref) { didFailGroupMarks(batch, isAbsent: isAbsent) }
        case .lease: didFailLease(tag.ref, isAbsent: isAbsent)
        default: didFailToRead(tag, fault, isAbsent: isAbsent)
        }
    }

    private func didFailToRead(_ tag: Tag, _ fault: RedisFault, isAbsent: Bool) {
        // Before the next one of the user is read.
        if fault.code == .tooLarge, let job = work.recipient(tag.ref) {
            oversized.note(job.key(tag.question), nowNanos: shard.nowNanos)
        }
        if tag.question == .presence || tag.question == .user { releaseWhole(tag) }
        guard let job = work.recipient(tag.ref), let candidate = job.candidate else { return shard.late() }
        candidate.plainPast = nil
        answered(job, failed: !isAbsent)
    }

    /// The user, message or gateway of a question, for the log; nil if its work has ended.
    func subject(of tag: Tag) -> String? {
        switch tag.question {
        case .lease: leaseQueries.find(tag.ref).map { "gateway \($0.gateway)" }
        case .groupMarks:
            groupMarks.find(tag.ref).map { "message \($0.head.app.id):\($0.head.subject.id)" }
        default: work.recipient(tag.ref).map { "\($0.event.app.id):\($0.uid)" }
        }
    }

    func answered(_ job: RecipientJob, failed: Bool) {
        guard let candidate = job.candidate else { return shard.mistake("an answer to a read without a candidate") }
        if !candidate.answers.take(failed: failed) { return }
        if candidate.answers.hasFailed { return postpone(job) }
        switch candidate.phase {
        case .reading: readLeases(job, candidate)
        case .readingDenied, .readingLeases: known.append(job)
        case .claiming, .readingAcks, .postponed: break
        }
    }

    // MARK: Order

    /// Redis could not answer: the candidate is read again after a pause. Nothing is guessed and nothing is lost.
    func postpone(_ job: RecipientJob) {
        guard let candidate = job.candidate else { return shard.late() }
        stepOut(job)
        candidate.failures += 1
        // Rounded up, so that thousands are read again together.
        let dueNanos = shard.retryNanos(failures: Int(candidate.failures))
        candidate.dueNanos = (dueNanos / Self.postponedStepNanos + 1) * Self.postponedStepNanos
        postponed.append(job)
        if candidate.dueNanos < postponedDueNanos ?? .max { schedulePostponed(candidate.dueNanos) }
    }

    private static let postponedStepNanos: UInt64 = 50_000_000

    private func schedulePostponed(_ dueNanos: UInt64) {
        postponedDueNanos = dueNanos
        shard.timers.schedule(.postponedCandidates, dueNanos: dueNanos)
    }

    /// Its decision waits for something else; later recipients of its user and conversation wait behind it.
    func stepOut(_ job: RecipientJob) {
        guard let candidate = job.candidate else { return shard.mistake("a recipient steps out without a candidate") }
        candidate.phase = .postponed
        job.beginWaiting()
        keepPlace(job, at: .waiting)
    }

    /// A token changed between read and claim, or a likely denial does not hold: reads everything, and later recipients
    /// of its conversation wait.
    func readAgain(_ job: RecipientJob) {
        guard let candidate = job.candidate else {
            return shard.mistake("a recipient is read again without a candidate")
        }
        keepPlace(job, at: .reading)
        readAll(job, candidate)
    }

    /// It has a query with an answer that may come after those for later recipients of its conversation: they wait.
    func keepPlace(_ job: RecipientJob, at step: OrderKeeper.Step) {
        order.stepOut(job.ref, order: job.order, key: job.orderKey, to: step)
    }

    /// Takes the candidate to a step. It is kept behind an earlier candidate of the same user and conversation that is out of
    /// order and not as far.
    func pass(_ job: RecipientJob, to step: OrderKeeper.Step) -> Passage {
        guard !order.isEmpty, let candidate = job.candidate else { return .goesOn }
        let passage = order.pass(job.ref, order: candidate.order, key: job.orderKey, to: step)
        if passage == .kept {
            candidate.phase = .postponed
            job.beginWaiting()
        }
        return passage
    }

    /// The candidate is claimed, or its recipient has ended: recipients behind it continue.
    func passed(_ job: RecipientJob) {
        if order.isEmpty { return }
        let key = job.orderKey
        let next = order.goOn(job.ref, key: key).compactMap(work.recipient).filter { $0.candidate?.phase == .postponed }
        // All of them before the first read: each keeps its place before later ones.
        for job in next { order.stepOut(job.ref, order: job.order, key: key, to: .waiting) }
        for job in next { read(job) }
    }

    /// Reads candidates with an expired pause again in order; all of them when Redis is ready again.
    func readPostponed(evenIfEarly: Bool) {
        if postponed.isEmpty { return }
        let now = shard.nowNanos
        var jobs: [RecipientJob] = []
        var waiting: [RecipientJob] = []
        var nextNanos: UInt64?
        for job in postponed {
            guard work.recipient(job.ref) === job, let candidate = job.candidate, candidate.phase == .postponed else {
                continue
            }
            if evenIfEarly || candidate.dueNanos <= now {
                jobs.append(job)
            } else {
                waiting.append(job)
                nextNanos = min(nextNanos ?? .max, candidate.dueNanos)
            }
        }
        postponed = waiting
        postponedDueNanos = nil
        if let nextNanos { schedulePostponed(nextNanos) }
        jobs.sort { ($0.candidate?.order ?? 0) < ($1.candidate?.order ?? 0) }
        for job in jobs where work.recipient(job.ref) === job && job.candidate?.phase == .postponed { read(job) }
    }
}

extension RecipientJob {
    fileprivate var orderKey: OrderKeeper.Key {
        OrderKeeper.key(app: event.app.id, uid: uid, conversation: event.conversationID)
    }

    /// The user's key that a question reads.
    fileprivate func key(_ question: Question) -> OversizedKeys.Key {
        OversizedKeys.key(app: event.app.id, uid: uid, question: question)
    }
}
